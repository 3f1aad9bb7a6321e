"""What the probe found out about a computer, as a value."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.domain.errors import MusterError

_KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Python:
    """A Python that is installed there."""

    path: str
    version: tuple[int, ...]
    venv: bool
    """Whether it can make virtual environments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Docker:
    """The Docker Engine that answers there."""

    version: str
    live_restore: bool = False
    cgroup_driver: str = ""
    cgroup_version: str = ""
    runtimes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """The Muster that is there already."""

    version: str | None = None
    """The version that `current` points to."""
    unit: str = ""
    """What systemd says of the agent, like `active`."""
    config: str | None = None
    """SHA-256 of the agent's configuration."""
    name: str | None = None
    """The node's name in the configuration."""
    joined: bool = False
    coordinator: bool = False
    """Whether a coordinator is installed, too."""
    job_user: str | None = None
    """`UID:GID` as which jobs run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """A computer; what could not be found out is None or empty."""

    hostname: str
    root: bool = True
    """Whether the probe could look at everything."""
    architecture: str = ""
    os_id: str = ""
    os_version: str = ""
    os_name: str = ""
    kernel: str = ""
    glibc: tuple[int, ...] | None = None
    """None: another C library, like musl."""
    init: str = ""
    """The program that runs as process 1."""
    systemd: int | None = None
    """The version of systemd, where it runs."""
    pythons: tuple[Python, ...] = ()
    missing: tuple[str, ...] = ()
    """Programs that the installer needs and that are not there."""
    docker: Docker | None = None
    docker_problem: str | None = None
    pci_gpus: int = 0
    """GPUs of NVIDIA that are plugged in, whether there is a driver or not."""
    gpus: tuple[str, ...] = ()
    """Models that the driver shows."""
    gpu_driver: str | None = None
    gpu_problem: str | None = None
    toolkit: str | None = None
    cdi: bool = False
    """Whether there is a description of the GPUs for containers."""
    memory: int | None = None
    """Bytes, like all sizes here."""
    opt_free: int | None = None
    state_free: int | None = None
    shm: int | None = None
    clock: float | None = None
    """Seconds by which its clock is ahead of ours."""
    clock_synchronised: bool | None = None
    interface: str = ""
    address: str = ""
    """The address by which the other nodes would reach it."""
    mtu: int | None = None
    wanted_missing: str | None = None
    """The interface or address that was asked for and is not there."""
    ephemeral: tuple[int, int] | None = None
    """Ports that the kernel gives to whoever asks for any."""
    reserved: str = ""
    """Ports that it gives to nobody by itself."""
    reachable: Mapping[int, bool] | None = None
    """Ports of the coordinator, and whether they can be reached from there."""
    firewalls: tuple[str, ...] = ()
    infiniband: tuple[str, ...] = ()
    memlock: str = ""
    docker_memlock: str = ""
    muster: Installed = Installed()


def parse(text: str, *, asked_at: float, answered_at: float) -> MachineFacts:
    """The facts in what the probe printed; the times are ours, in seconds since 1970.

    Raises MusterError for what is not the whole answer of a probe.
    """
    said: dict[str, list[str]] = defaultdict(list)
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            said[key].append(value.strip())
    if "done" not in said or not said["hostname"]:
        raise MusterError("the probe did not get to its end there; is /bin/sh a POSIX shell?")
    one = {key: values[0] for key, values in said.items()}
    clock = _number(one.get("clock"))
    ports = {int(key.removeprefix("reach_")): value == "open" for key, value in one.items() if key.startswith("reach_")}
    drivers, models = _gpus(said["gpu"])
    return MachineFacts(
        hostname=one["hostname"].split(".")[0],
        root=one.get("uid") == "0",
        architecture=one.get("architecture", ""),
        os_id=one.get("os_id", ""),
        os_version=one.get("os_version", ""),
        os_name=one.get("os_name", ""),
        kernel=one.get("kernel", ""),
        glibc=_version(one.get("glibc")),
        init=one.get("init", ""),
        systemd=_whole(one.get("systemd")),
        pythons=_pythons(said["python"]),
        missing=tuple(said["missing"]),
        docker=_docker(one),
        docker_problem=one.get("docker_problem"),
        pci_gpus=_whole(one.get("pci_gpus")) or 0,
        gpus=models,
        gpu_driver=drivers[0] if drivers else None,
        gpu_problem=one.get("gpu_problem"),
        toolkit=one.get("toolkit"),
        cdi="cdi" in one,
        memory=_kib(one.get("memory_kib")),
        opt_free=_kib(one.get("opt_free_kib")),
        state_free=_kib(one.get("state_free_kib")),
        shm=_kib(one.get("shm_kib")),
        # It was read soon after the question was there, long before the last answer.
        clock=None if clock is None else _ahead(clock, asked_at, answered_at),
        clock_synchronised={"yes": True, "no": False}.get(one.get("clock_synchronised", "")),
        interface=one.get("interface", ""),
        address=one.get("address", ""),
        mtu=_whole(one.get("mtu")),
        wanted_missing=one.get("wanted_missing"),
        ephemeral=_range(one.get("ephemeral")),
        reserved=one.get("reserved", ""),
        reachable=ports or None,
        firewalls=tuple(said["firewall"]),
        infiniband=tuple(one.get("infiniband", "").split()),
        memlock=one.get("memlock", ""),
        docker_memlock=one.get("docker_memlock", ""),
        muster=_installed(one),
    )


def _installed(one: Mapping[str, str]) -> Installed:
    return Installed(
        version=one.get("muster"),
        unit=one.get("agent_unit", ""),
        config=one.get("config_sha256"),
        name=one.get("config_name"),
        joined="joined" in one,
        coordinator="coordinator_unit" in one,
        job_user=one.get("job_user"),
    )


def _docker(one: Mapping[str, str]) -> Docker | None:
    if "docker" not in one:
        return None
    return Docker(
        version=one["docker"],
        live_restore=one.get("docker_live_restore") == "true",
        cgroup_driver=one.get("docker_cgroup_driver", ""),
        cgroup_version=one.get("docker_cgroup_version", ""),
        runtimes=tuple(one.get("docker_runtimes", "").split()),
    )


def _pythons(lines: Sequence[str]) -> tuple[Python, ...]:
    """Each once, the newest first."""
    found: dict[str, Python] = {}
    for line in lines:
        path, version, able = line.rsplit(" ", 2)
        found.setdefault(version, Python(path=path, version=_version(version) or (), venv=able == "venv"))
    return tuple(sorted(found.values(), key=lambda python: python.version, reverse=True))


def _gpus(lines: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    pairs = [line.partition(",") for line in lines]
    return tuple(driver.strip() for driver, _, _ in pairs), tuple(model.strip() for _, _, model in pairs)


def _ahead(clock: float, asked_at: float, answered_at: float) -> float:
    """How far a clock is ahead that was read at some time between two of ours: at least so far."""
    if asked_at <= clock <= answered_at:
        return 0.0
    return clock - answered_at if clock > answered_at else clock - asked_at


def _version(text: str | None) -> tuple[int, ...] | None:
    return tuple(map(int, re.findall(r"\d+", text)))[:3] if text else None


def _number(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"\d+(\.\d*)?", text) else None


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _kib(text: str | None) -> int | None:
    whole = _whole(text)
    return None if whole is None else whole * _KIB


def _range(text: str | None) -> tuple[int, int] | None:
    words = (text or "").split()
    return (int(words[0]), int(words[1])) if len(words) > 1 and all(map(str.isdecimal, words)) else None
