"""The contract of a runtime; `tests/contract/test_runtime.py` holds every runtime to it."""

from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from agent.executions.layout import ExecutionDirectory
from agent.logs.spool import LogSpool
from agent.telemetry.cgroups import CgroupCounts
from muster.domain.fleet.node import RuntimeOffer
from muster.domain.gangs.plan import Assignment, Launch
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import RuntimeKind
from muster.domain.jobs.stopping.preemption import PreemptSignal

Progress = Callable[[str], None]
"""Called from the event loop with what a sandbox is doing, for people: `pulling image 41 %`."""


class Sandbox(Protocol):
    """One execution in a runtime, from `prepare` to `remove`.

    Calls come one at a time, except `attach`, `counts`, `cpu_seconds`, `exited`, `drained`, `own` and `vacate`, which
    may wait beside any other call.
    Whatever goes wrong before user code runs is raised as ExecutionError with the kind and a sentence for the user.
    """

    @property
    def execution(self) -> ExecutionId:
        """The execution to which this sandbox belongs."""
        ...

    @property
    def ended(self) -> bool:
        """Whether user code is known to have ended; of what was recovered only a daemon may know, which may be away."""
        ...

    @property
    def vacant(self) -> bool:
        """Whether it is known that user code has ended and left nothing running, so that there is nothing to vacate."""
        ...

    async def arm(self, launch: Launch) -> None:
        """Bring everything to the point where `start` has nothing left that can fail for lack of something.

        Writes the role's inline files and `launch.config_files` (mode 0644), creates the container.
        User code does not run. A second `arm` replaces what the first one made.
        """
        ...

    async def start(self) -> None:
        """Start user code. The caller has let go of held ports just before. Starting twice starts once."""
        ...

    async def attach(self, ticket: str) -> None:
        """Start a companion in this execution, which shows the ticket at the door; returns once it was started.

        It finds what user code found at its start: user, cgroup, namespaces, rights, limits, devices, environment and
        secrets. It ends with user code at the latest, and with it what it has started. Its program and the door lie in
        the directory of the execution. Only while user code runs, also of what was recovered; one attach at a time.
        Raises ExecutionError, and user code is none the worse for it.
        """
        ...

    async def exited(self) -> Exit:
        """Wait until user code has ended; every call gives the same answer. Only after `start`."""
        ...

    async def drained(self) -> None:
        """Wait until all that user code printed is in the spool; after `exited`."""
        ...

    async def vacate(self) -> None:
        """End what user code left running, once its output is drained; returns when nothing runs.

        After `exited`, whatever came of that. Raises ExecutionError where it cannot be done.
        """
        ...

    async def cpu_seconds(self) -> float | None:
        """Seconds of CPU that all of it has used since its start, about; None: not known. Raises ExecutionError.

        Only after `start`. Of processes that have ended, those count whose parent still runs.
        """
        ...

    async def counts(self) -> CgroupCounts:
        """What the kernel has counted of all of it since its start; what it does not count is None.

        Only after `start`. Raises ExecutionError.
        """
        ...

    async def own(self, pids: Collection[int]) -> frozenset[int]:
        """Which of these processes belong to it. Only after `start`. Raises ExecutionError."""
        ...

    async def stop(self, grace: timedelta, signal: PreemptSignal | None = PreemptSignal.TERM) -> None:
        """The signal to user code, SIGKILL to all of it after `grace`; returns when nothing runs.

        None: it got its signal before, so that only the rest of its grace is waited for. Never started: does nothing.
        """
        ...

    async def remove(self) -> None:
        """Kill what runs and clear everything of it away, whatever state it is in. Removing twice is harmless."""
        ...


class Runtime(Protocol):
    """Makes sandboxes."""

    @property
    def kind(self) -> RuntimeKind:
        """Which runtime it is."""
        ...

    async def offer(self) -> RuntimeOffer:
        """Whether it works here, and its version; never raises."""
        ...

    async def prepare(
        self,
        assignment: Assignment,
        directory: ExecutionDirectory,
        spool: LogSpool,
        ports: Sequence[PortLease],
        progress: Progress,
    ) -> Sandbox:
        """Fetch the image and get everything ready that does not depend on the other members of the job.

        On bridge networking the host ports in `ports` are free to be published from here on. The directories of
        `directory` exist. Raises ExecutionError; then nothing of it is left behind. May be cancelled at any point.
        """
        ...

    async def recover(self, executions: Path) -> Sequence[tuple[Sandbox, LogSpool, bool]]:
        """What is left from before a restart of the agent: sandbox, its spool, and whether user code was started.

        For started ones `exited` tells the exact exit code, also of those that ended meanwhile, and `drained`
        resumes the log without a lost or doubled record. What cannot be adopted is removed. Called once, first of all.
        """
        ...

    async def close(self) -> None:
        """Let go of connections; sandboxes stay as they are."""
        ...
