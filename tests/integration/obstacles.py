"""The process runtime with obstacles in its way: an action waits at a gate, or fails as often as told."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import timedelta
from pathlib import Path

from agent.executions.layout import ExecutionDirectory
from agent.logs.spool import LogSpool
from agent.runtimes.process.runtime import ProcessRuntime
from agent.runtimes.runtime import Progress, Sandbox
from agent.telemetry.cgroups import CgroupCounts
from muster.domain.fleet.node import RuntimeOffer
from muster.domain.gangs.plan import Assignment, Launch
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import RuntimeKind
from muster.domain.jobs.stopping.preemption import PreemptSignal


class Gate:
    """Open, until a test closes it."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        """Set once somebody stands before the gate."""
        self.faults: list[Exception] = []
        """Raised one by one, each once, by those who pass."""
        self._open = asyncio.Event()
        self._open.set()

    @property
    def stands_open(self) -> bool:
        """Whether all may pass."""
        return self._open.is_set()

    def close(self) -> None:
        """Let nobody pass."""
        self._open.clear()

    def open(self) -> None:
        """Let all pass."""
        self._open.set()

    async def pass_through(self) -> None:
        """Wait for the gate, and meet the next fault."""
        self.reached.set()
        await self._open.wait()
        if self.faults:
            raise self.faults.pop(0)


class RuntimeWithObstacles:
    """Runs processes; every action passes the gate of its name first."""

    kind = RuntimeKind.PROCESS

    def __init__(self) -> None:
        self.gates: defaultdict[str, Gate] = defaultdict(Gate)
        self._runtime = ProcessRuntime()

    async def offer(self) -> RuntimeOffer:
        return await self._runtime.offer()

    async def prepare(
        self,
        assignment: Assignment,
        directory: ExecutionDirectory,
        spool: LogSpool,
        ports: Sequence[PortLease],
        progress: Progress,
    ) -> "SandboxWithObstacles":
        progress("standing before a gate")
        await self.gates["prepare"].pass_through()
        sandbox = await self._runtime.prepare(assignment, directory, spool, ports, progress)
        return SandboxWithObstacles(sandbox, self.gates)

    async def recover(self, executions: Path) -> Sequence[tuple[Sandbox, LogSpool, bool]]:
        return await self._runtime.recover(executions)

    async def close(self) -> None:
        await self._runtime.close()


class SandboxWithObstacles:
    """A sandbox of processes, behind gates."""

    def __init__(self, sandbox: Sandbox, gates: defaultdict[str, Gate]) -> None:
        self._sandbox = sandbox
        self._gates = gates

    @property
    def execution(self) -> ExecutionId:
        return self._sandbox.execution

    @property
    def ended(self) -> bool:
        return self._sandbox.ended

    @property
    def vacant(self) -> bool:
        return self._gates["vacate"].stands_open and self._sandbox.vacant

    async def arm(self, launch: Launch) -> None:
        await self._gates["arm"].pass_through()
        await self._sandbox.arm(launch)

    async def start(self) -> None:
        await self._gates["start"].pass_through()
        await self._sandbox.start()

    async def attach(self, ticket: str) -> None:
        await self._sandbox.attach(ticket)

    async def cpu_seconds(self) -> float | None:
        return await self._sandbox.cpu_seconds()

    async def counts(self) -> CgroupCounts:
        return await self._sandbox.counts()

    async def own(self, pids: Collection[int]) -> frozenset[int]:
        return await self._sandbox.own(pids)

    async def exited(self) -> Exit:
        return await self._sandbox.exited()

    async def drained(self) -> None:
        await self._sandbox.drained()

    async def vacate(self) -> None:
        await self._gates["vacate"].pass_through()
        await self._sandbox.vacate()

    async def stop(self, grace: timedelta, signal: PreemptSignal | None = PreemptSignal.TERM) -> None:
        await self._gates["stop"].pass_through()
        await self._sandbox.stop(grace, signal)

    async def remove(self) -> None:
        await self._gates["remove"].pass_through()
        await self._sandbox.remove()
