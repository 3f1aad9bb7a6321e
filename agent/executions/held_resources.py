"""What executions have of the node and nobody else may have meanwhile: fixed ports, and the GPUs they were assigned.

The coordinator gives away what an execution had as soon as it hears of its end. Something of it may still run then:
what user code left running, or a container of which the engine does not tell. Whoever comes next waits for its end.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence

from agent.core.launching.launch import port_requests
from agent.executions.ports import PortLedger
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import Network

KILL_LIMIT = 30.0
"""Seconds; a process that survives SIGKILL for so long hangs in the kernel and will not go by itself."""

LEASE_PATIENCE = KILL_LIMIT + 5.0
"""Seconds that an execution waits at most. What outlives user code may print for two of them, and is then killed."""


class HeldResources:
    """The ports and GPUs of one node's executions; an execution that ends comes to `leave`, and then to `vacate`."""

    def __init__(
        self, ports: PortLedger, gpus: Callable[[ExecutionId], Collection[GpuUuid]], patience: float = LEASE_PATIENCE
    ) -> None:
        self._ports = ports
        self._gpus = gpus
        """The GPUs of executions that are here."""
        self._patience = patience
        self._leaving: dict[ExecutionId, asyncio.Event] = {}
        """Executions that have ended and of which something may run; each with what is set when nothing does."""

    async def lease(self, assignment: Assignment, progress: Callable[[str], None]) -> tuple[PortLease, ...]:
        """Ports for an execution, held until it starts; raises ExecutionError that names who is in the way.

        Executions that have ended are waited for, others are not.
        """
        if self._leaving:
            await self._wait(assignment, progress)
        execution, bridge = assignment.execution, assignment.network is Network.BRIDGE
        leases = self._ports.hold(execution, port_requests(assignment), bridge=bridge)
        if bridge:
            self._ports.let_go(execution)  # from here on the holder container holds them
        return leases

    def let_go(self, execution: ExecutionId) -> None:
        """User code is about to bind its ports."""
        self._ports.let_go(execution)

    def adopt(self, execution: ExecutionId, leases: Sequence[PortLease], *, published: bool) -> None:
        """Take over what an execution had under an earlier agent."""
        self._ports.adopt(execution, leases, published=published)

    def leave(self, execution: ExecutionId, *, vacant: bool) -> None:
        """Note that an execution has ended; unless `vacant`, something of it may still run. Harmless when repeated."""
        if vacant:
            self.vacate(execution)
        else:
            self._leaving.setdefault(execution, asyncio.Event())

    def vacate(self, execution: ExecutionId) -> None:
        """Nothing of it runs: its ports are free, but for those that its holder container publishes until the end."""
        self._ports.vacate(execution)
        self._left(execution)

    def free(self, execution: ExecutionId) -> None:
        """Nothing of it is there any more."""
        self._ports.free(execution)
        self._left(execution)

    def _left(self, execution: ExecutionId) -> None:
        gone = self._leaving.pop(execution, None)
        if gone is not None:
            gone.set()

    async def _wait(self, assignment: Assignment, progress: Callable[[str], None]) -> None:
        """Until nobody who leaves has what it needs. Where that takes too long, a port is refused by its ledger."""
        try:
            async with asyncio.timeout(self._patience):
                while (culprit := self._in_the_way(assignment)) is not None:
                    progress(f"waiting until nothing of execution {culprit} runs any more, which has ended")
                    await self._leaving[culprit].wait()
        except TimeoutError:
            self._refuse_gpus(assignment)

    def _in_the_way(self, assignment: Assignment) -> ExecutionId | None:
        owners = self._owners(assignment)
        return next((each for each in self._leaving if each in owners or self._shared(each, assignment)), None)

    def _owners(self, assignment: Assignment) -> Collection[ExecutionId | None]:
        """Executions with the ports that it asks for by number; on bridge networking these are its container's own."""
        if assignment.network is Network.BRIDGE:
            return ()
        requests = port_requests(assignment)
        return {self._ports.owner(request.port) for request in requests if request.port is not None}

    def _shared(self, leaving: ExecutionId, assignment: Assignment) -> Collection[GpuUuid]:
        return set(assignment.gpus).intersection(self._gpus(leaving)) if assignment.gpus else ()

    def _refuse_gpus(self, assignment: Assignment) -> None:
        for each in self._leaving:
            shared = self._shared(each, assignment)
            if shared:
                message = f"GPU {min(shared)} is taken by execution {each}, which has ended and left something running"
                raise ExecutionError(FailureKind.GPU, message)
