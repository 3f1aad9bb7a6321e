"""Looks how much executions write into their volumes, and tells the core where that is too much."""

import asyncio
import time
from collections.abc import Callable, Mapping

from agent.core.events import VolumeOutgrown
from agent.core.local import ALIVE
from agent.core.step import AgentState
from agent.executions.layout import ExecutionDirectory
from agent.executions.volumes.amounts import bytes_in
from agent.executions.volumes.node_volumes import outgrown
from agent.loop.workbench import OngoingWork, Workbench
from muster.domain.data.volume import Volume
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId

VOLUME_LOOK = 10.0
"""Seconds between two looks, at the least."""
VOLUME_LOOK_PAUSE = 50
"""How many times as long as a look took the pause after it is, at the least, where very many files lie in a volume."""


class VolumeWatch:
    """Watches the volumes of one node's executions."""

    def __init__(
        self,
        bench: Workbench,
        state: AgentState,
        work: OngoingWork,
        every: float = VOLUME_LOOK,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Watch nothing yet; `state` is only read. `every`: seconds between two looks."""
        self._bench = bench
        self._state = state
        self._work = work
        self._every = every
        self._clock = clock

    def begin(self, execution: ExecutionId) -> None:
        """Watch an execution that was started or found, until it has ended; nothing comes of it without volumes."""
        local = self._state.ledger.get(execution)
        assignment = None if local is None else local.wanted.assignment
        if assignment is None or any(volume.is_bounded for volume in assignment.role.volumes):
            self._work.watch(execution, self._watch(execution))

    async def _watch(self, execution: ExecutionId) -> None:
        """Look again and again; what an agent finds at its start is known once the coordinator has sent a plan."""
        directory = self._bench.directories.of(execution)
        while (local := self._state.ledger.get(execution)) is not None and local.phase in ALIVE:
            begun, assignment = self._clock(), local.wanted.assignment
            if assignment is not None:
                on_disk = [volume for volume in assignment.role.volumes if volume.is_bounded]
                if not on_disk:
                    return
                used = await asyncio.to_thread(self._look, directory, assignment, on_disk)
                if (message := _outgrown(on_disk, used)) is not None:
                    self._bench.inbox.put(VolumeOutgrown(execution=execution, message=message))
            await asyncio.sleep(max(self._every, (self._clock() - begun) * VOLUME_LOOK_PAUSE))

    def _look(self, directory: ExecutionDirectory, assignment: Assignment, on_disk: list[Volume]) -> Mapping[str, int]:
        volumes, project = self._bench.directories.volumes, assignment.project
        used = {name: bytes_in(path) for name, path in volumes.paths(directory, project, on_disk).items()}
        volumes.promise(directory, project, on_disk, used)
        for volume in on_disk:
            volumes.note_kept(directory, project, volume, used[volume.name])
        return used


def _outgrown(volumes: list[Volume], used: Mapping[str, int]) -> str | None:
    """A sentence on the first volume in which there is too much."""
    return next((said for volume in volumes if (said := outgrown(volume, used[volume.name])) is not None), None)
