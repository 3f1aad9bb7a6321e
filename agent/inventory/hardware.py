"""What the node is besides its GPUs, and the address at which other nodes reach it."""

import ipaddress
import os
import platform
import re
import shutil
import socket
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from agent.core.launching.site import NetworkInterface
from agent.inventory.interfaces import running_interfaces
from muster.domain.errors import MusterError, UnavailableError

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Interfaces = Mapping[str, Sequence[IpAddress]]
"""The addresses of each interface that is up, those of version 4 first."""

DISCARD_PORT = 9
"""Stands in where the coordinator's port is not given; nothing is sent to it."""

NOT_FOR_OTHERS = "docker0"
"""Docker's default bridge has the same address on every node."""


class NoDataAddressError(MusterError):
    """No address of this node can be told to the other nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareFacts:
    """What the operating system tells."""

    cpus: int
    memory: int
    disk_total: int
    disk_free: int
    kernel: str
    os: str
    architecture: str
    addresses: tuple[str, ...]


def facts(state: Path) -> HardwareFacts:
    """Look at the node; the disk is the one that holds (or will hold) the agent's state. Blocks."""
    disk = shutil.disk_usage(_existing(state))
    return HardwareFacts(
        cpus=os.cpu_count() or 1,
        memory=_memory(),
        disk_total=disk.total,
        disk_free=disk.free,
        kernel=platform.release(),
        os=_os(),
        architecture=platform.machine(),
        addresses=tuple(str(address) for own in interfaces().values() for address in own if _is_told(address)),
    )


def interfaces() -> Interfaces:
    """List the interfaces that are up, with their addresses. Blocks."""
    return {name: [each.ip for each in found] for name, found in running_interfaces().items()}


def interface_of(address: str) -> NetworkInterface | None:
    """Find the interface that has an address; any address of 127.0.0.0/8 is loopback's. Blocks."""
    wanted = _address(address)
    for name, own in running_interfaces().items():
        for each in own:
            if each.ip == wanted or (wanted.is_loopback and each.ip.is_loopback):
                return NetworkInterface(name=name, subnet=str(each.network))
    return None


def data_address(coordinator: str, wanted: str | None) -> str:
    """Find the address at which other nodes reach this one.

    `wanted` names an interface, a CIDR or an address; without it, it is the address from which the coordinator
    (`host:port`) is reached. Nothing is sent. Blocks while the coordinator's name is looked up.
    """
    source = _route_source(coordinator)
    return str(choose_address(interfaces(), source, wanted))


def choose_address(found: Interfaces, source: IpAddress, wanted: str | None) -> IpAddress:
    """Choose among the node's interfaces; `source` is the address from which the coordinator is reached.

    Loopback is for fleets on one node only, where the coordinator is reached over it too.
    """
    chosen = _wanted(found, wanted) if wanted else source
    if source.is_loopback:
        return chosen
    if chosen.is_loopback or chosen in found.get(NOT_FOR_OTHERS, ()):
        raise NoDataAddressError(
            f"other nodes cannot reach this one at {chosen}; name an interface, a CIDR or an address instead: "
            f"{_listing(found)}"
        )
    return chosen


def _wanted(found: Interfaces, wanted: str) -> IpAddress:
    if wanted in found:
        return _of_interface(found, wanted)
    try:
        network = ipaddress.ip_network(wanted, strict=False)
    except ValueError:
        raise NoDataAddressError(
            f"{wanted!r} is no interface that is up, no CIDR and no address; there is: {_listing(found)}"
        ) from None
    if "/" not in wanted and network.is_loopback:
        return network.network_address  # all of 127.0.0.0/8 is there without being listed
    for addresses in found.values():
        for address in addresses:
            if address in network:
                return address
    raise NoDataAddressError(f"no interface has an address in {wanted}; there is: {_listing(found)}")


def _of_interface(found: Interfaces, name: str) -> IpAddress:
    for address in found[name]:
        if not address.is_link_local:
            return address
    raise NoDataAddressError(f"the interface {name} has no address; there is: {_listing(found)}")


def _listing(found: Interfaces) -> str:
    useful = [(name, own) for name, own in found.items() if name != NOT_FOR_OTHERS]
    return ", ".join(f"{name} {address}" for name, own in useful for address in own if _is_told(address)) or "none"


def _is_told(address: IpAddress) -> bool:
    return not (address.is_loopback or address.is_link_local)


def _route_source(coordinator: str) -> IpAddress:
    """Let the kernel choose a route; connecting a UDP socket does that and sends nothing."""
    reasons = []
    name, port = _split(coordinator)
    for target in _resolve(name):
        family = socket.AF_INET6 if isinstance(target, ipaddress.IPv6Address) else socket.AF_INET
        with closing(socket.socket(family, socket.SOCK_DGRAM)) as probe:
            try:
                probe.connect((str(target), port))
            except OSError as error:
                reasons.append(str(error))
            else:
                return _address(probe.getsockname()[0])
    raise UnavailableError(f"there is no route to the coordinator at {coordinator}: {'; '.join(reasons)}")


def _resolve(name: str) -> list[IpAddress]:
    try:
        return [_address(str(answer[4][0])) for answer in socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)]
    except OSError as error:
        raise UnavailableError(f"the coordinator's name {name} cannot be looked up: {error}") from error


def _address(text: str) -> IpAddress:
    return ipaddress.ip_address(text.partition("%")[0])


def _split(coordinator: str) -> tuple[str, int]:
    """Take `host:port` apart; `host`, `[::1]:port`, and gRPC's `dns:///host:port` will do too."""
    match = re.fullmatch(r"(?:.*/)?(?:\[(?P<v6>[^]]+)\]|(?P<name>[^:]+))(?::(?P<port>\d+))?", coordinator)
    if not match:
        raise NoDataAddressError(f"{coordinator!r} is no address of a coordinator; it is written like host:port")
    return match["v6"] or match["name"], int(match["port"] or DISCARD_PORT)


def _existing(path: Path) -> Path:
    """The path, or the nearest directory above it that is there."""
    return next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())


def _memory() -> int:
    """Bytes of memory, as containers of machines are told them as well."""
    told = re.search(r"^MemTotal:\s+(\d+) kB$", Path("/proc/meminfo").read_text(encoding="ascii"), re.MULTILINE)
    assert told, "every kernel tells it"
    return int(told[1]) * 1024


def _os() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.system()
