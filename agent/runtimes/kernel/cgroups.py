"""Cgroups of executions of plain processes: where this agent may make some, and what they limit.

Under systemd they are in the unit's own subtree (`Delegate=yes`). What is not there is told, and does without: limits
of memory and processes need it, and that all of an execution ends does not.
"""

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from agent.mounts import mounts_in
from agent.runtimes.kernel.confinement import kill, members, write
from agent.runtimes.kernel.pids import process

LEAF = "agent"
"""Where systemd puts the agent itself (`DelegateSubgroup=`), as a cgroup that hands out limits has no processes."""

LIMITING = ("memory", "pids", "cpu")
"""Controllers that are used."""

WEIGHT_OF_A_CPU, MOST_WEIGHT = 100, 10_000
SHARES_OF_A_CPU = 1024
MILLIS_OF_A_CPU = 1000
"""The same of the first version of cgroups."""

CPU_PERIOD = 100_000
"""Microseconds in which an execution gets no more than its limit of CPUs."""

LINKS_OF_A_LEAF = 2
"""Links of a cgroup without others below it: each of those is one more."""

CGROUP_REMOVAL_LIMIT = 2.0
CGROUP_REMOVAL_PAUSE = 0.01
"""Seconds between attempts to remove a cgroup whose processes have ended just now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupLimits:
    """What an execution may use at most, and how much it weighs where CPUs are short."""

    memory: int | None
    """Bytes; None: as much as there is."""
    pids: int
    cpu_millis: int
    cpu_limit: int | None = None
    """Thousandths of a CPU; None: as many as nobody else uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """A mounted tree of cgroups, and where this agent is in it."""

    own: Path
    """The directory of the agent's own cgroup."""
    root: Path
    """Where the tree is mounted."""
    controllers: frozenset[str]
    """Which it has, with the first version; the second one's are asked for."""
    unified: bool
    """Whether it is of the second version."""

    @property
    def base(self) -> Path:
        """The directory below which executions have theirs."""
        beside = self.unified and self.own.name == LEAF and self.own.parent.name.endswith(".service")
        return self.own.parent if beside else self.own

    @property
    def may_hand_out(self) -> bool:
        """Whether the kernel lets limits begin below it, which it does where it has no processes of its own."""
        return not self.unified or self.base != self.own or self.own == self.root


def hierarchies(mounts: str, memberships: str) -> tuple[Hierarchy, ...]:
    """The trees of cgroups, from `/proc/self/mountinfo` and `/proc/self/cgroup`."""
    paths = {names: path for _, names, path in (line.split(":", 2) for line in memberships.splitlines() if line)}
    found = []
    for mount in mounts_in(mounts):
        if mount.kind not in {"cgroup", "cgroup2"}:
            continue
        unified = mount.kind == "cgroup2"
        has = mount.options & frozenset(LIMITING)
        path = paths.get("") if unified else next((paths[each] for each in paths if has & set(each.split(","))), None)
        if path is None or ".." in path or not (unified or has):
            continue
        inside, root = mount.inside, mount.root
        below = path.removeprefix(inside) if inside != "/" else path
        own = root / below.lstrip("/")
        found.append(Hierarchy(own=own, root=root, controllers=frozenset() if unified else has, unified=unified))
    return tuple(found)


class Cgroups:
    """Makes and removes the cgroups of one node's executions."""

    def __init__(self, found: Sequence[Hierarchy], name: str) -> None:
        self._prefix = f"muster-{name[:8]}-"
        """Tells them from those of other agents on this machine."""
        self._own = f"{self._prefix}{os.urandom(4).hex()}-"
        """Tells them from those of earlier agents of this node."""
        self._numbers = count(1)
        ours = [(each, _handed_out(each)) for each in found if _is_ours(each)]
        counted = any("pids" in each.controllers for each, _ in ours)
        # Beside a tree of the first version that each execution is in anyway, one without limits would only cost time.
        self._found = [(each, limiting) for each, limiting in ours if limiting or not counted]
        self._beginnings = [(f"{each.base}/{self._prefix}", limiting, each.unified) for each, limiting in self._found]

    @property
    def limiting(self) -> frozenset[str]:
        """The controllers whose limits hold."""
        return frozenset(name for _, controllers in self._found for name in controllers)

    @property
    def says(self) -> str:
        """What of all this works here, for people."""
        if not self._found:
            return "no cgroups"
        limited = [name for name in LIMITING if name in self.limiting]
        return f"cgroups with limits of {', '.join(limited)}" if limited else "cgroups without limits"

    def make(self, limits: CgroupLimits | None = None) -> tuple[tuple[str, str], ...]:
        """New cgroups, each with the one to which a supervisor returns; only those that the limits need, if given.

        Raises OSError.
        """
        made: list[tuple[str, str]] = []
        name = f"{self._own}{next(self._numbers)}"
        for hierarchy, controllers in self._found:
            if limits is None or hierarchy.unified or _needed(limits, controllers):
                group = f"{hierarchy.base}/{name}"
                try:
                    os.mkdir(group)  # noqa: PTH102 (path objects cost more than the calls)
                except OSError:
                    self.remove([group for group, _ in made])
                    raise
                made.append((group, str(hierarchy.own)))
        return tuple(made)

    def limit(self, groups: Sequence[str], limits: CgroupLimits) -> None:
        """Have an execution get no more than its limits. Raises OSError."""
        for group, controllers, unified in self._of(groups):
            for name, value in _settings(limits, controllers, unified=unified):
                with suppress(FileNotFoundError):  # a kernel that does not count what is swapped out
                    write(f"{group}/{name}", value.encode())

    def weigh(self, groups: Sequence[str], cpu_millis: int) -> None:
        """Have an execution that has started get its part of the CPUs where they are short.

        Before, its supervisor would be held up as well: a gang of small jobs would start late on a busy node.
        """
        if cpu_millis != MILLIS_OF_A_CPU:
            with suppress(OSError):  # it may have ended, and been cleared away
                self._weigh(groups, cpu_millis)

    def renew(self, groups: Sequence[str], limits: CgroupLimits) -> bool:
        """Make cgroups that had these limits fit for another program; whether they are, as if they were made anew.

        They are not if they had a limit of memory or CPUs, if the next one might need others as well, or if there are
        cgroups below them, which the program has made. Raises OSError.
        """
        if limits.memory is not None or limits.cpu_limit is not None or len(groups) != len(self._found):
            return False
        if any(os.stat(group).st_nlink > LINKS_OF_A_LEAF for group in groups):  # noqa: PTH116 (as above)
            return False
        if limits.cpu_millis != MILLIS_OF_A_CPU:
            self._weigh(groups, MILLIS_OF_A_CPU)
        return True

    def remove(self, groups: Sequence[str]) -> None:
        """Remove them with all that is below them, once nothing runs in them; harmless when repeated."""
        for group in groups:
            _remove(group)

    def strangers(self, known: Collection[str]) -> Mapping[str, set[int]]:
        """The cgroups that earlier agents made and nobody knows of, with the processes in them."""
        found = (path for hierarchy, _ in self._found for path in hierarchy.base.glob(f"{self._prefix}*"))
        unknown = (path for path in found if not path.name.startswith(self._own) and str(path) not in known)
        return {str(path): members(str(path)) for path in unknown}

    def clear(self, group: str) -> None:
        """End and remove what nobody knows of."""
        kill(group)
        for pid in members(group):  # where the kernel cannot do that for all at once
            with suppress(PermissionError):
                process(pid).kill()
        _remove(group)

    def _weigh(self, groups: Sequence[str], cpu_millis: int) -> None:
        for group, controllers, unified in self._of(groups):
            if "cpu" in controllers:
                name, value = _weight(cpu_millis, unified=unified)
                write(f"{group}/{name}", value.encode())

    def _of(self, groups: Sequence[str]) -> Iterator[tuple[str, frozenset[str], bool]]:
        """Each with the controllers whose limits hold in it, and whether it is of the second version."""
        for beginning, controllers, unified in self._beginnings:
            for group in groups:
                if group.startswith(beginning):
                    yield group, controllers, unified


def own_cgroups(name: str) -> Cgroups:
    """Cgroups that this process may make; `name` tells them from other agents'."""
    try:
        mounts, memberships = (Path(f"/proc/self/{each}").read_text() for each in ("mountinfo", "cgroup"))
    except OSError:
        return Cgroups((), name)
    return Cgroups(hierarchies(mounts, memberships), name)


def _is_ours(hierarchy: Hierarchy) -> bool:
    """Whether this process may make cgroups there and move processes into them."""
    return all(os.access(path, os.W_OK) for path in (hierarchy.base, hierarchy.base / "cgroup.procs"))


def _handed_out(hierarchy: Hierarchy) -> frozenset[str]:
    """The controllers that limit what is below the base; those of the second version are switched on."""
    if not hierarchy.unified:
        return hierarchy.controllers
    control = hierarchy.base / "cgroup.subtree_control"
    for name in LIMITING if hierarchy.may_hand_out else ():
        with suppress(OSError):
            control.write_text(f"+{name}")
    try:
        return frozenset(control.read_text().split()) & frozenset(LIMITING)
    except OSError:
        return frozenset()


def _settings(limits: CgroupLimits, controllers: frozenset[str], *, unified: bool) -> Iterator[tuple[str, str]]:
    """The files to be written, in order, and what into them."""
    if "pids" in controllers:
        yield "pids.max", str(limits.pids + 1)  # the supervisor is in there, too
    if "memory" in controllers and limits.memory is not None:
        yield "memory.max" if unified else "memory.limit_in_bytes", str(limits.memory)
        yield ("memory.swap.max", "0") if unified else ("memory.memsw.limit_in_bytes", str(limits.memory))
    if "cpu" in controllers and limits.cpu_limit is not None:
        quota = limits.cpu_limit * CPU_PERIOD // MILLIS_OF_A_CPU
        if unified:
            yield "cpu.max", f"{quota} {CPU_PERIOD}"
        else:
            yield "cpu.cfs_period_us", str(CPU_PERIOD)
            yield "cpu.cfs_quota_us", str(quota)


def _needed(limits: CgroupLimits, controllers: frozenset[str]) -> bool:
    """Whether a tree of the first version limits any of it."""
    settings = any(_settings(limits, controllers, unified=False))
    return settings or ("cpu" in controllers and limits.cpu_millis != MILLIS_OF_A_CPU)


def _weight(cpu_millis: int, *, unified: bool) -> tuple[str, str]:
    """The file that weighs an execution, and what into it."""
    if unified:
        return "cpu.weight", str(max(1, min(MOST_WEIGHT, cpu_millis * WEIGHT_OF_A_CPU // MILLIS_OF_A_CPU)))
    return "cpu.shares", str(max(2, cpu_millis * SHARES_OF_A_CPU // MILLIS_OF_A_CPU))


def _remove(group: str) -> None:
    until = time.monotonic() + CGROUP_REMOVAL_LIMIT
    while True:
        try:
            os.rmdir(group)  # noqa: PTH106 - the files in it are the kernel's
        except FileNotFoundError:
            return
        except OSError:
            _remove_below(group)
            if time.monotonic() >= until:
                return  # the next agent tries again
            time.sleep(CGROUP_REMOVAL_PAUSE)
        else:
            return


def _remove_below(group: str) -> None:
    for directory, _, _ in os.walk(group, topdown=False):
        if directory != group:
            with suppress(OSError):  # the next try finds it again
                os.rmdir(directory)  # noqa: PTH106 - as above
