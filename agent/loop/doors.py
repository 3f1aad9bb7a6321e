"""The doors of a node's executions: opened before user code runs, and again by an agent that takes executions over."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from agent.attach.door import ExecutionDoor, GangCommands
from agent.attach.programs import gang_programs
from agent.attach.ticket import kept_ticket, made_ticket
from agent.executions.layout import ExecutionDirectory
from agent.loop.live_execution import LiveExecution
from agent.loop.workbench import OngoingWork
from muster.domain.gangs.plan import Launch

log = logging.getLogger(__name__)


class ExecutionDoors:
    """Opens the doors of executions whose jobs run commands in other executions."""

    def __init__(self, commands: GangCommands, work: OngoingWork) -> None:
        self._commands = commands
        self._work = work

    async def open(self, live: LiveExecution) -> None:
        """Have a new door, which is served until the execution is cleared away. Raises OSError."""
        await self._open(live, made_ticket)

    async def open_again(self, live: LiveExecution) -> None:
        """Have the door that an earlier agent made, if it made one; its companion comes by itself."""
        try:
            await self._open(live, kept_ticket)
        except OSError as error:
            about = {"execution": live.directory.path.name, "cause": str(error)}
            log.warning("the door of an execution cannot be opened again", extra=about)

    async def _open(self, live: LiveExecution, find: Callable[[ExecutionDirectory], str]) -> None:
        door = await asyncio.to_thread(partial(self._opened, live.directory, find))
        if door is not None:
            live.door = door
            self._work.watch(door.execution, door.serve())

    def _opened(self, directory: ExecutionDirectory, find: Callable[[ExecutionDirectory], str]) -> ExecutionDoor | None:
        ticket = find(directory)
        if not ticket:
            return None
        door = ExecutionDoor(directory, ticket, self._commands)
        door.open()
        return door


def with_companion(launch: Launch, door: ExecutionDoor | None) -> Launch:
    """What is started, with the programs for other executions and the companion that starts theirs."""
    if door is None:
        return launch
    return replace(launch, programs={**launch.programs, **gang_programs()}, ticket=door.ticket)
