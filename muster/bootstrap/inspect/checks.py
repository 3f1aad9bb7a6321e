"""What is right and wrong with a computer that is to be a node: facts in, findings with their remedies out."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from muster.bootstrap.inspect.facts import MachineFacts
from muster.bootstrap.request import MachineRequest

MIN_PYTHON = (3, 11)
MIN_FROZEN_GLIBC = (2, 28)
"""Where the bundle does not say what its frozen build needs."""
MIN_SYSTEMD = 235
"""The first with `StateDirectory=` and `AmbientCapabilities=` as the unit uses them."""
MIN_DOCKER = 20
ROOM = 1 << 30
"""Free bytes below which an installation could fail half-way."""
ROOM_FOR_JOBS = 10 << 30
"""Free bytes of state below which outputs and logs soon fill the disk."""
SMALL_MEMORY = 1 << 30
SMALL_SHM = 1 << 30
"""Data loaders of most frameworks pass their batches through /dev/shm."""
CLOCK_WARN = 1.0
CLOCK_ERROR = 240.0
"""Seconds; certificates begin five minutes before they are made."""
ARCHITECTURES = ("x86_64", "aarch64")

_DOCKER_RPM = "https://docs.docker.com/engine/install/"


class Severity(StrEnum):
    """How bad it is."""

    OK = "ok"  #: as it should be
    WARNING = "warning"  #: it works, but worse than it could
    ERROR = "error"  #: it cannot work; nothing is installed


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    id: str
    """A name for programs, like `docker.live-restore`; it stays the same from version to version."""
    severity: Severity
    sentence: str
    remedy: str = ""
    """What to do; empty where there is nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleOffer:
    """What a bundle installs."""

    version: str
    platforms: frozenset[str] = frozenset()
    """Platforms of its wheels, like `cp311-x86_64`."""
    wheels_glibc: tuple[int, ...] = ()
    """The lowest glibc that the wheels run with."""
    frozen: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Architectures for which it has a frozen build, and the lowest glibc that it runs with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a computer is judged against."""

    wish: MachineRequest
    coordinator: str | None = None
    """`host:port` where nodes join; None: that is not looked at."""
    offer: BundleOffer | None = None
    """What would be installed; None: nothing."""
    present: frozenset[str] = frozenset()
    """Names of nodes that are connected now."""
    enrolled: frozenset[str] = frozenset()
    """Names that belong to nodes that have joined."""
    coordinator_clock: float | None = None
    """Seconds by which the coordinator's clock is ahead of ours."""


def check(facts: MachineFacts, situation: Situation) -> tuple[Finding, ...]:
    """Everything that can be said of one computer, in the order in which it would be mended."""
    return tuple(finding for look in _LOOKS for finding in look(facts, situation))


def compare(fleet: Sequence[MachineFacts]) -> tuple[tuple[Finding, ...], ...]:
    """What strikes when several computers are seen side by side; findings for each."""
    names, sizes = Counter(facts.hostname for facts in fleet), Counter(facts.mtu for facts in fleet if facts.mtu)
    usual = sizes.most_common(1)[0][0] if sizes else None
    return tuple((*_alone(facts, names), *_mtu(facts, usual)) for facts in fleet)


def worst(findings: Sequence[Finding]) -> Severity:
    """The worst severity among findings."""
    order = list(Severity)
    return max((finding.severity for finding in findings), key=order.index, default=Severity.OK)


def _ok(name: str, sentence: str) -> Finding:
    return Finding(id=name, severity=Severity.OK, sentence=sentence)


def _warn(name: str, sentence: str, remedy: str) -> Finding:
    return Finding(id=name, severity=Severity.WARNING, sentence=sentence, remedy=remedy)


def _error(name: str, sentence: str, remedy: str) -> Finding:
    return Finding(id=name, severity=Severity.ERROR, sentence=sentence, remedy=remedy)


def _system(facts: MachineFacts, _: Situation) -> Iterator[Finding]:
    about = f"{facts.os_name or 'an unknown system'}, kernel {facts.kernel}, {facts.architecture}"
    if facts.architecture not in ARCHITECTURES:
        yield _error("system.architecture", f"runs {about}", f"Muster is built for {' and '.join(ARCHITECTURES)}")
    else:
        yield _ok("system.architecture", about)
    if facts.systemd is None:
        yield _error(
            "system.systemd",
            f"process 1 is {facts.init or 'unknown'}, not systemd",
            "use a system with systemd, or start `muster-agent` by a supervisor of your own (docs/nodes.md)",
        )
    elif facts.systemd < MIN_SYSTEMD:
        yield _error("system.systemd", f"systemd {facts.systemd} is too old", f"upgrade to {MIN_SYSTEMD} or newer")
    else:
        yield _ok("system.systemd", f"systemd {facts.systemd}")
    if facts.missing:
        names = " and ".join(facts.missing)
        yield _error(
            "system.tools",
            f"{names} not installed",
            "install them with the system's packages (coreutils, tar, sed, grep)",
        )
    if not facts.root:
        yield _warn("system.root", "was looked at without being root, so not everything was seen", "log in as root")


def _python(facts: MachineFacts, situation: Situation) -> Iterator[Finding]:
    versions = ", ".join(_dotted(python.version) for python in facts.pythons) or "none"
    usable = [python for python in facts.pythons if python.version >= MIN_PYTHON and python.venv]
    offer = situation.offer
    fitting = [python for python in usable if offer is None or _fits(python.version, facts, offer)]
    if fitting:
        yield _ok("python", f"Python {_dotted(fitting[0].version)} with venv")
    elif offer is None:
        yield _warn(
            "python",
            f"no Python {_dotted(MIN_PYTHON)} with venv (there is: {versions})",
            "nothing, if the bundle has a frozen build for this computer; otherwise install python3",
        )
    elif facts.architecture in offer.frozen:
        yield from _frozen(facts, offer, versions)
    else:
        has = ", ".join(sorted(offer.platforms)) or "nothing"
        yield _error(
            "python",
            f"the bundle (for {has}) does not fit: Python here is {versions}, {facts.architecture}",
            "make one that does with `muster bundles create`, or install a Python that it is for, with venv",
        )


def _frozen(facts: MachineFacts, offer: BundleOffer, versions: str) -> Iterator[Finding]:
    needed = offer.frozen[facts.architecture] or MIN_FROZEN_GLIBC
    if facts.glibc is None:
        remedy = f"install Python {_dotted(MIN_PYTHON)} with venv"
        yield _error("python", f"no fitting Python ({versions}), and the frozen build needs glibc", remedy)
    elif facts.glibc < needed:
        yield _error(
            "python",
            f"no fitting Python ({versions}), and glibc {_dotted(facts.glibc)} is older than the frozen build needs",
            f"install Python {_dotted(MIN_PYTHON)} with venv, or a system with glibc {_dotted(needed)}",
        )
    else:
        yield _ok("python", f"no fitting Python ({versions}); the frozen build is installed")


def _docker(facts: MachineFacts, _: Situation) -> Iterator[Finding]:
    docker = facts.docker
    if facts.docker_problem is not None:
        remedy = "`systemctl status docker` there says why; root must be able to ask `docker info`"
        yield _warn("docker", f"Docker is there but does not work: {facts.docker_problem}", remedy)
        return
    if docker is None:
        remedy = f"`apt-get install docker.io`, or {_DOCKER_RPM}; without it only jobs without an image run here"
        yield _warn("docker", "no Docker Engine", remedy)
        return
    if _major(docker.version) < MIN_DOCKER:
        yield _warn("docker", f"Docker {docker.version} is old", f"upgrade to {MIN_DOCKER}.10 or newer")
    else:
        yield _ok("docker", f"Docker {docker.version}")
    if docker.live_restore:
        yield _ok("docker.live-restore", "containers outlive a restart of the Docker Engine")
    else:
        remedy = 'put {"live-restore": true} into /etc/docker/daemon.json and `systemctl reload docker`'
        yield _warn("docker.live-restore", "a restart of the Docker Engine stops all containers", remedy)
    if docker.cgroup_version == "2" and docker.cgroup_driver != "systemd":
        remedy = 'put {"exec-opts": ["native.cgroupdriver=systemd"]} into /etc/docker/daemon.json and restart docker'
        yield _warn("docker.cgroup", f"Docker uses the cgroup driver {docker.cgroup_driver} beside systemd", remedy)


def _gpus(facts: MachineFacts, _: Situation) -> Iterator[Finding]:
    if not facts.pci_gpus and not facts.gpus and facts.gpu_problem is None:
        yield _ok("gpu", "no NVIDIA GPUs")
        return
    if facts.gpu_problem is not None:
        remedy = "reboot if the driver was upgraded since; otherwise `dmesg | grep -i nvrm` there says why"
        yield _error("gpu", f"the NVIDIA driver does not answer: {facts.gpu_problem}", remedy)
        return
    if not facts.gpus:
        remedy = "install the driver (Debian: nvidia-driver, Ubuntu: `ubuntu-drivers install --gpgpu`) and reboot"
        yield _error("gpu", f"{facts.pci_gpus} NVIDIA GPUs, but no driver", remedy)
        return
    models = ", ".join(f"{count}x {model}" for model, count in Counter(facts.gpus).items())
    if facts.pci_gpus > len(facts.gpus):
        remedy = "`nvidia-smi` and `dmesg | grep -i xid` there say more; a reset or reboot often helps"
        yield _warn("gpu", f"the driver shows {len(facts.gpus)} of {facts.pci_gpus} GPUs", remedy)
    else:
        yield _ok("gpu", f"{models}, driver {facts.gpu_driver}")
    if facts.docker is None:
        return
    if facts.toolkit is None:
        remedy = (
            "install nvidia-container-toolkit, then `nvidia-ctk runtime configure --runtime=docker`, restart docker"
        )
        yield _error("gpu.toolkit", "containers cannot be given GPUs: no NVIDIA container toolkit", remedy)
    elif "nvidia" not in facts.docker.runtimes and not facts.cdi:
        remedy = "`nvidia-ctk runtime configure --runtime=docker && systemctl restart docker`"
        yield _error("gpu.toolkit", "the container toolkit is there, but Docker does not know it", remedy)
    else:
        yield _ok("gpu.toolkit", f"NVIDIA container toolkit {facts.toolkit}")


def _sizes(facts: MachineFacts, _: Situation) -> Iterator[Finding]:
    for name, place, free in (("disk.opt", "/opt", facts.opt_free), ("disk.state", "/var/lib", facts.state_free)):
        if free is not None and free < ROOM:
            yield _error(name, f"{_size(free)} free at {place}", f"make room for {_size(ROOM)} or more")
        elif name == "disk.state" and free is not None and free < ROOM_FOR_JOBS:
            yield _warn(name, f"{_size(free)} free at {place}", "outputs and logs of jobs are kept there; make room")
        elif free is not None:
            yield _ok(name, f"{_size(free)} free at {place}")
    if facts.memory is not None and facts.memory < SMALL_MEMORY:
        yield _warn("memory", f"{_size(facts.memory)} of memory", "jobs will find little room beside the system")
    elif facts.memory is not None:
        yield _ok("memory", f"{_size(facts.memory)} of memory")
    if facts.shm is not None and facts.shm < SMALL_SHM:
        remedy = (
            "`mount -o remount,size=50% /dev/shm`, and so in /etc/fstab; containers ask for theirs by resources.shm"
        )
        yield _warn("shm", f"{_size(facts.shm)} of shared memory (/dev/shm)", remedy)
    elif facts.shm is not None:
        yield _ok("shm", f"{_size(facts.shm)} of shared memory (/dev/shm)")
    limit = facts.docker_memlock or facts.memlock
    if facts.infiniband and limit not in ("", "infinity", "unlimited", str(2**64 - 1)):
        remedy = "`systemctl edit docker`: [Service] LimitMEMLOCK=infinity; then restart docker"
        sentence = f"{', '.join(facts.infiniband)} for RDMA, but only {limit} of memory may be locked"
        yield _warn("memlock", sentence, remedy)


def _clock(facts: MachineFacts, situation: Situation) -> Iterator[Finding]:
    remedy = "`timedatectl set-ntp true` there (package systemd-timesyncd or chrony)"
    if facts.clock is None:
        return
    others = [("this computer", facts.clock)]
    if situation.coordinator_clock is not None:
        others.append(("the coordinator", facts.clock - situation.coordinator_clock))
    for whose, ahead in others:
        sentence = f"its clock is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} that of {whose}"
        if abs(ahead) > CLOCK_ERROR:
            yield _error("clock", sentence, remedy)
        elif abs(ahead) > CLOCK_WARN and whose == "this computer":
            yield _warn("clock", sentence, remedy)
    if all(abs(ahead) <= CLOCK_WARN for _, ahead in others[:1]):
        yield _ok("clock", "its clock is right")
    if facts.clock_synchronised is False:
        yield _warn("clock.synchronised", "nothing keeps its clock right", remedy)


def _network(facts: MachineFacts, situation: Situation) -> Iterator[Finding]:
    if facts.wanted_missing is not None:
        sentence = f"has no interface and no address {facts.wanted_missing}"
        yield _error("address", sentence, "`ip addr` there shows what it has; give that with --address")
    elif facts.address:
        yield _ok("address", f"other nodes reach it at {facts.address} ({facts.interface}, MTU {facts.mtu})")
    yield from _reach(facts, situation)
    yield from _ports(facts, situation.wish.ports)
    if facts.firewalls:
        first, last = situation.wish.ports
        remedy = f"let the other nodes in at TCP {first}-{last}, and to the agent's port (docs/nodes.md)"
        yield _warn("firewall", f"a firewall is active ({', '.join(facts.firewalls)})", remedy)


def _reach(facts: MachineFacts, situation: Situation) -> Iterator[Finding]:
    if situation.coordinator is None or facts.reachable is None:
        return
    closed = [port for port, reached in sorted(facts.reachable.items()) if not reached]
    host = situation.coordinator.rpartition(":")[0]
    if closed:
        ports = " and ".join(map(str, closed))
        remedy = "open the way (firewall, routing), or say with --reach HOST:PORT where nodes reach the coordinator"
        yield _error("coordinator", f"cannot reach the coordinator at {host}, TCP {ports}", remedy)
    else:
        yield _ok("coordinator", f"reaches the coordinator at {host}, TCP {' and '.join(map(str, facts.reachable))}")


def _ports(facts: MachineFacts, ports: tuple[int, int]) -> Iterator[Finding]:
    first, last = ports
    if facts.ephemeral is None or last < facts.ephemeral[0] or facts.ephemeral[1] < first:
        yield _ok("ports", f"ports {first}-{last} are for executions")
    elif f"{first}-{last}" in re.split("[ ,]", facts.reserved):
        yield _ok("ports", f"ports {first}-{last} are for executions, and reserved")
    else:
        low, high = facts.ephemeral
        yield _warn(
            "ports",
            f"ports {first}-{last} overlap those that the kernel gives to outgoing connections ({low}-{high})",
            f"`sysctl -w net.ipv4.ip_local_reserved_ports={first}-{last}` (and in /etc/sysctl.d), or other --ports",
        )


def _membership(facts: MachineFacts, situation: Situation) -> Iterator[Finding]:
    name = situation.wish.name or facts.hostname
    own = facts.muster.joined and facts.muster.name == name
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", name):
        yield _error("name", f"{name!r} cannot be the name of a node", "give another with --name")
    elif name in situation.present and not own:
        remedy = "give another name with --name, or `muster nodes revoke` the one that has it"
        yield _error("name", f"another node is called {name}", remedy)
    elif name in situation.enrolled and not facts.muster.joined:
        sentence = f"the name {name} belongs to the key with which a node has joined before; it is not there any more"
        yield _error("name", sentence, f"`muster nodes revoke {name}`, then try again")
    else:
        yield _ok("name", f"its name is {name}")
    installed = facts.muster
    if installed.version is None:
        yield _ok("muster", "Muster is not installed")
        return
    unit = f", the agent is {installed.unit}" if installed.unit else ""
    if installed.unit == "failed":
        remedy = "`journalctl -u muster-agent -n 50` there says why"
        yield _warn("muster", f"Muster {installed.version} is installed{unit}", remedy)
    else:
        yield _ok("muster", f"Muster {installed.version} is installed{unit}")


_LOOKS: Sequence[Callable[[MachineFacts, Situation], Iterator[Finding]]] = (
    _system,
    _python,
    _docker,
    _gpus,
    _sizes,
    _clock,
    _network,
    _membership,
)


def _alone(facts: MachineFacts, names: Counter[str]) -> Iterator[Finding]:
    if names[facts.hostname] > 1:
        remedy = "`hostnamectl hostname NAME` there, or give each its own --name (or `name:` in the inventory)"
        yield _warn("hostname", f"{names[facts.hostname]} computers are called {facts.hostname}", remedy)


def _mtu(facts: MachineFacts, usual: int | None) -> Iterator[Finding]:
    if facts.mtu is not None and facts.mtu != usual:
        remedy = f"`ip link set {facts.interface} mtu {usual}`, and so in the network's configuration"
        sentence = f"the MTU of {facts.interface} is {facts.mtu}, of most others {usual}; large messages may get lost"
        yield _warn("mtu", sentence, remedy)


def _fits(version: tuple[int, ...], facts: MachineFacts, offer: BundleOffer) -> bool:
    platform = f"cp{version[0]}{version[1]}-{facts.architecture}"
    return platform in offer.platforms and facts.glibc is not None and facts.glibc >= offer.wheels_glibc


def _major(version: str) -> int:
    digits = re.match(r"\d+", version)
    return int(digits[0]) if digits else 0


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 1 << 30 else f"{count / 2**20:.0f} MiB"
