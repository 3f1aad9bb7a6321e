"""What the processes of one cgroup use, with either version of cgroups, or both on one host.

Formats: https://docs.kernel.org/admin-guide/cgroup-v2.html, https://docs.kernel.org/admin-guide/cgroup-v1/index.html.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from agent.mounts import mounts_in

_NANOSECONDS = 1_000_000_000
_MICROSECONDS = 1_000_000
_CONTROLLERS = ("cpuacct", "memory", "blkio", "pids")
"""What is read of the first version; the second has all of it in one tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupCounts:
    """What the kernel has counted of a cgroup; None: it does not."""

    cpu_seconds: float | None = None
    memory: int | None = None
    """Bytes that it holds, without pages of files that can go at any time."""
    read_bytes: int | None = None
    written_bytes: int | None = None
    processes: int | None = None


class MountedTree(NamedTuple):
    """A tree of cgroups, where it is mounted."""

    root: Path
    """Where the tree is mounted."""
    inside: str
    """The cgroup that is mounted there; `/` for the whole tree."""
    controllers: frozenset[str]
    """Which it has, with the first version."""
    unified: bool
    """Whether it is of the second version."""


def mounted_trees(mountinfo: str) -> tuple[MountedTree, ...]:
    """The trees of cgroups that `/proc/self/mountinfo` tells."""
    return tuple(
        MountedTree(mount.root, mount.inside, mount.options & {*_CONTROLLERS}, mount.kind == "cgroup2")
        for mount in mounts_in(mountinfo)
        if mount.kind in {"cgroup", "cgroup2"}
    )


class CgroupCounters:
    """Reads the counts of the cgroup that a process is in; blocks for as long as the kernel takes to count."""

    def __init__(self, trees: tuple[MountedTree, ...], membership: str) -> None:
        """`membership`: what `/proc/PID/cgroup` says of the process."""
        self._unified: Path | None = None
        self._by_controller: dict[str, Path] = {}
        paths = dict(_paths(membership))
        for tree in trees:
            if tree.unified:
                self._unified = _directory(tree, paths.get(""))
            for controller in tree.controllers:
                if (directory := _directory(tree, paths.get(controller))) is not None:
                    self._by_controller[controller] = directory
        if self._unified is not None and not (self._unified / "cgroup.controllers").exists():
            self._unified = None

    def read(self) -> CgroupCounts:
        """The counts now; all are None once the cgroup is gone."""
        return CgroupCounts(
            cpu_seconds=self._cpu_seconds(),
            memory=self._memory(),
            read_bytes=self._transferred("rbytes", "Read"),
            written_bytes=self._transferred("wbytes", "Write"),
            processes=_number(self._file("pids", "pids.current", "pids.current")),
        )

    def _cpu_seconds(self) -> float | None:
        if (usage := _number(self._first("cpuacct", "cpuacct.usage"))) is not None:
            return usage / _NANOSECONDS
        told = _facts(self._second("cpu.stat")).get("usage_usec")
        return None if told is None else told / _MICROSECONDS

    def _memory(self) -> int | None:
        if (used := _number(self._first("memory", "memory.usage_in_bytes"))) is not None:
            going = _facts(self._first("memory", "memory.stat")).get("total_inactive_file", 0)
        elif (used := _number(self._second("memory.current"))) is not None:
            going = _facts(self._second("memory.stat")).get("inactive_file", 0)
        else:
            return None
        return max(0, used - going)

    def _transferred(self, second: str, first: str) -> int | None:
        """Bytes of one direction, of all disks together."""
        told = self._first("blkio", "blkio.throttle.io_service_bytes")
        if told is not None:
            fields = (line.split() for line in told.splitlines())
            return sum(int(each[2]) for each in fields if len(each) == 3 and each[1] == first)  # noqa: PLR2004 - disk, direction, bytes
        told = self._second("io.stat")
        if told is None:
            return None
        pairs = (pair.partition("=") for line in told.splitlines() for pair in line.split()[1:])
        return sum(int(value) for name, _, value in pairs if name == second)

    def _file(self, controller: str, first: str, second: str) -> str | None:
        told = self._first(controller, first)
        return self._second(second) if told is None else told

    def _first(self, controller: str, name: str) -> str | None:
        return _text(self._by_controller.get(controller), name)

    def _second(self, name: str) -> str | None:
        return _text(self._unified, name)


def counters_of(pid: int, name: str, proc: Path = Path("/proc")) -> CgroupCounters:
    """The counters of the cgroup of a process, whose path has this name in it; others, and gone ones, count nothing.

    By its name it is known that the number of the process is not somebody else's by now.
    """
    try:
        mounts, membership = (proc / "self" / "mountinfo").read_text(), (proc / str(pid) / "cgroup").read_text()
    except OSError:
        return CgroupCounters((), "")
    return CgroupCounters(mounted_trees(mounts), membership if name in membership else "")


def in_cgroup(pids: Iterable[int], name: str, proc: Path = Path("/proc")) -> frozenset[int]:
    """Which of these processes are in a cgroup whose path has this name in it."""
    found = set()
    for pid in pids:
        with suppress(OSError):
            if name in (proc / str(pid) / "cgroup").read_text():
                found.add(pid)
    return frozenset(found)


def _paths(membership: str) -> Iterator[tuple[str, str]]:
    """The path of the cgroup by controller; under no name that of the second version."""
    for line in membership.splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        for controller in controllers.split(","):
            yield controller, path


def _directory(tree: MountedTree, path: str | None) -> Path | None:
    """The directory of a cgroup of a tree; None where it is not to be seen there."""
    if path is None or ".." in path.split("/"):
        return None
    if tree.inside != "/":
        if path != tree.inside and not path.startswith(f"{tree.inside}/"):
            return None
        path = path.removeprefix(tree.inside)
    return tree.root / path.lstrip("/")


def _text(directory: Path | None, name: str) -> str | None:
    if directory is None:
        return None
    with suppress(OSError):  # gone, or a controller that the cgroup does not have
        return (directory / name).read_text()
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdigit() else None


def _facts(text: str | None) -> Mapping[str, int]:
    """Names and numbers, one pair a line."""
    pairs = (line.split() for line in (text or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}  # noqa: PLR2004 - a pair
