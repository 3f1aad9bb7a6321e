"""What holds a program apart from its supervisor: cgroups of its own, and its own place in line when memory is short.

Supervisors and the killer use it: it needs no event loop, and nothing but the standard library.
"""

import os
from collections.abc import Sequence
from contextlib import suppress

CGROUP_PROCESSES = "cgroup.procs"
CGROUP_KILL = "cgroup.kill"
MEMORY_EVENTS = "memory.events"
OOM_CONTROL = "memory.oom_control"
"""The same of the first version of cgroups."""

SCORE = "/proc/self/oom_score_adj"
PROGRAM_SCORE = 0
"""What the kernel adds to a program's badness when memory is short; the agent's own may be lower."""

LONGEST_CGROUP_FILE = 1 << 20


class Confinement:
    """The cgroups of one program, each with the one to which its supervisor returns.

    A supervisor is in the program's cgroups until the end, as a child begins where its parent is, and nothing can start
    outside. It enters them early and leaves them late: while the kernel moves a process, nobody on the node can fork.
    So it may rest in them between one program and the next.
    """

    def __init__(self, groups: Sequence[Sequence[str]], score: str = SCORE) -> None:
        self._groups = tuple((group, home) for group, home in groups)
        self._entered = 0
        """How many of them the supervisor is in, counted from the first."""
        self._ready = False
        """Whether what starts now is confined."""
        self._counters: tuple[str, ...] | None = None
        """Files in which the kernel counts kills for want of memory; None: not looked for yet."""
        self._kills_before = 0
        """Kills of programs before this one."""
        self._score_file = score
        self._score = int(_read(score))

    def moved(self, groups: Sequence[Sequence[str]]) -> "Confinement":
        """Have the supervisor in these cgroups or on its way to them; it stays where it is if these are the same."""
        if self._entered == len(self._groups) and self._groups == tuple((group, home) for group, home in groups):
            return self
        self.leave()
        return Confinement(groups, self._score_file)

    def enter(self) -> None:
        """Confine what starts from here on; harmless when repeated. Raises OSError."""
        if self._ready:
            return
        if self._entered < len(self._groups):
            for group, _ in self._groups[self._entered :]:
                write(f"{group}/{CGROUP_PROCESSES}", b"0")
                self._entered += 1
            self._kills_before = self._kills()
        if self._score < PROGRAM_SCORE:
            write(self._score_file, str(PROGRAM_SCORE).encode())
        self._ready = True

    def outlive(self) -> None:
        """Have the supervisor be killed after the program where memory is short; harmless when repeated."""
        if self._ready and self._score < PROGRAM_SCORE:
            with suppress(OSError):  # whoever started the agent may forbid it
                write(self._score_file, str(self._score).encode())
        self._ready = False

    def rest(self) -> None:
        """Stay in the cgroups for another program, of which nothing is known yet; harmless when repeated."""
        self.outlive()
        self._kills_before = self._kills()

    def leave(self) -> None:
        """Return to where the supervisor came from; harmless when repeated."""
        self.outlive()
        for _, home in self._groups[: self._entered]:
            with suppress(OSError):  # then its agent cannot remove the cgroup, and the next one tries again
                write(f"{home}/{CGROUP_PROCESSES}", b"0")
        self._entered = 0

    def out_of_memory(self) -> bool:
        """Whether the kernel has killed anything of this program because their memory was used up."""
        return self._kills() > self._kills_before

    def _kills(self) -> int:
        if self._counters is None:
            files = (f"{group}/{name}" for group, _ in self._groups for name in (MEMORY_EVENTS, OOM_CONTROL))
            self._counters = tuple(file for file in files if os.access(file, os.R_OK))
        return sum(map(_oom_kills, self._counters))


def members(group: str) -> set[int]:
    """The numbers of all processes in a cgroup and those below it; none where it is gone."""
    found: set[int] = set()
    for directory, _, _ in os.walk(group):
        with suppress(OSError):
            found |= {int(pid) for pid in _read(f"{directory}/{CGROUP_PROCESSES}").split()}
    return found - {0}  # a process that this namespace does not see


def kill(group: str) -> None:
    """Kill all processes in a cgroup at once, where the kernel can do that."""
    with suppress(OSError):
        write(f"{group}/{CGROUP_KILL}", b"1")


def _oom_kills(file: str) -> int:
    with suppress(OSError, ValueError):
        lines = (line.split() for line in _read(file).splitlines())
        return next((int(line[1]) for line in lines if line[0] == b"oom_kill"), 0)
    return 0


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, LONGEST_CGROUP_FILE)
    finally:
        os.close(descriptor)


def write(path: str, content: bytes) -> None:
    """Write a file of the kernel by one call. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)
