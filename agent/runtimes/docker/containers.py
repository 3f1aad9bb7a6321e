"""The containers of one execution, found by their labels and nobody else's touched."""

import asyncio
import contextlib
from collections.abc import Collection, Iterator

from agent.core.containers.faults import fault
from agent.core.containers.spec import EXECUTION_LABEL, IDENTITY_LABEL, PART_LABEL, Body, ContainerPart, container_name
from agent.runtimes.docker.engine.connection import EngineAwayError, EngineError
from agent.runtimes.docker.engine.containers import EngineContainers
from agent.telemetry.cgroups import CgroupCounters, CgroupCounts, counters_of, in_cgroup
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind

_LOOK_PATIENCE = 5.0
"""Seconds for a question to the engine on which nobody waits."""


class Containers:
    """Makes and removes them."""

    def __init__(self, containers: EngineContainers, identity: str, execution: ExecutionId) -> None:
        self.execution = execution
        self._containers = containers
        self._counters: CgroupCounters | None = None
        """Counters of the container that somebody asked about; None: nobody has."""
        self._id = ""
        """The id of that container; empty: nobody has asked about its processes."""
        self._labels = {IDENTITY_LABEL: identity, EXECUTION_LABEL: execution}

    async def create(self, part: ContainerPart, body: Body) -> str:
        """The id of a new container, which replaces what this agent left under its name."""
        name = container_name(self.execution, part)
        try:
            return await self._containers.create(name, body)
        except EngineError as error:
            if not error.conflict:
                raise
        if not await self._remove(part):
            message = f"there is a container {name} that is not this agent's; remove it (docker rm {name})"
            raise ExecutionError(FailureKind.RUNTIME, message)
        return await self._containers.create(name, body)

    async def counts(self, container: str) -> CgroupCounts:
        """What the kernel counts of the cgroup of one that runs, which is always the same one."""
        if self._counters is None:
            state = await self._containers.state(container, _LOOK_PATIENCE)
            self._counters = await asyncio.to_thread(counters_of, state.pid, state.id)
        return await asyncio.to_thread(self._counters.read)

    async def own(self, container: str, pids: Collection[int]) -> frozenset[int]:
        """Which of these processes are in the cgroup of one that runs."""
        if not self._id:
            self._id = (await self._containers.state(container, _LOOK_PATIENCE)).id
        return await asyncio.to_thread(in_cgroup, pids, self._id)

    async def remove(self) -> None:
        """Kill and remove all of them."""
        found = await self._containers.find(self._labels)
        # The user container first: its network is that of the holder.
        for container, _ in sorted(found, key=lambda each: each[1][PART_LABEL] == ContainerPart.HOLDER):
            await self._containers.remove(container)

    async def _remove(self, part: ContainerPart) -> bool:
        """Whether there was one."""
        found = await self._containers.find({**self._labels, PART_LABEL: part})
        for container, _ in found:
            await self._containers.remove(container)
        return bool(found)


@contextlib.contextmanager
def as_failures() -> Iterator[None]:
    """Turns what the engine refuses into the failure of an execution."""
    try:
        yield
    except EngineError as error:
        raise fault(error.status, str(error)) from error
    except EngineAwayError as error:
        message = f"Docker on this node does not answer ({error}); look at `systemctl status docker` there"
        raise ExecutionError(FailureKind.RUNTIME, message) from error
