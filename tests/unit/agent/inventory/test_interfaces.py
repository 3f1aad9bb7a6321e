"""The interfaces of a node, out of what the kernel tells."""

import ipaddress
import socket
import struct

import psutil

from agent.inventory.interfaces import interfaces_told, running_interfaces

UP_AND_RUNNING, ONLY_UP = 0x41, 0x01


def _message(kind: int, body: bytes) -> bytes:
    whole = struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body
    return whole + bytes(-len(whole) % 4)


def _attribute(kind: int, value: bytes) -> bytes:
    whole = struct.pack("=HH", 4 + len(value), kind) + value
    return whole + bytes(-len(whole) % 4)


def _link(index: int, name: str, flags: int = UP_AND_RUNNING) -> bytes:
    own = _attribute(4, b"\0\0\0\0") + _attribute(3, name.encode() + b"\0")
    return _message(16, struct.pack("=BxHiII", 0, 1, index, flags, 0) + own)


def _address(index: int, address: str, *, peer: str | None = None) -> bytes:
    told = ipaddress.ip_interface(address)
    family = socket.AF_INET if told.version == 4 else socket.AF_INET6
    attributes = _attribute(1, ipaddress.ip_address(peer).packed if peer else told.ip.packed)
    if told.version == 4:
        attributes += _attribute(2, told.ip.packed)
    return _message(20, struct.pack("=BBBBI", family, told.network.prefixlen, 0, 0, index) + attributes)


END = _message(3, bytes(4))


def _told(links: bytes, addresses: bytes) -> dict[str, list[str]]:
    return {name: [str(each) for each in own] for name, own in interfaces_told(links + END, addresses + END).items()}


def test_addresses_come_with_their_networks_and_those_of_version_4_first() -> None:
    addresses = _address(2, "2001:db8::5/64") + _address(2, "10.0.0.5/24") + _address(1, "127.0.0.1/8")
    assert _told(_link(1, "lo") + _link(2, "eth0"), addresses) == {
        "eth0": ["10.0.0.5/24", "2001:db8::5/64"],
        "lo": ["127.0.0.1/8"],
    }


def test_an_interface_without_its_cable_is_left_out_and_one_without_addresses_is_not() -> None:
    links = _link(1, "lo") + _link(2, "eth0", ONLY_UP) + _link(3, "ib0")
    assert _told(links, _address(1, "127.0.0.1/8") + _address(2, "10.0.0.5/24")) == {"ib0": [], "lo": ["127.0.0.1/8"]}


def test_the_own_end_of_a_tunnel_is_told_and_not_the_other_one() -> None:
    assert _told(_link(4, "tun0"), _address(4, "10.8.0.2/32", peer="10.8.0.1")) == {"tun0": ["10.8.0.2/32"]}


def test_an_answer_that_is_cut_off_gives_what_is_whole() -> None:
    whole = _address(1, "127.0.0.1/8")
    assert _told(_link(1, "lo"), whole + b"\x04\0\0\0" + bytes(20)) == {"lo": ["127.0.0.1/8"]}


def test_this_machine_has_the_interfaces_and_addresses_that_others_see_as_well() -> None:
    up = [name for name, stats in psutil.net_if_stats().items() if stats.isup]
    seen = {
        name: {each.address.partition("%")[0] for each in found if each.family in {socket.AF_INET, socket.AF_INET6}}
        for name, found in psutil.net_if_addrs().items()
        if name in up
    }
    assert {name: {str(each.ip) for each in own} for name, own in running_interfaces().items() if own} == {
        name: own for name, own in seen.items() if own
    }
