"""The doors of a node's executions, and the companions behind them.

An execution whose job has gang commands has both from before its start. One whose main program people can talk to has
the door, to which the parent of that program comes. All others get both when somebody attaches: nothing of it is there
before, neither in memory nor on disk. An agent that takes executions over opens doors again.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from agent.attach.companion import Companion, CompanionAwayError
from agent.attach.door import ExecutionDoor, GangCommands
from agent.attach.kept.main_program import NOT_ATTENDED, MainProgram
from agent.attach.kept.shells import KeptShells
from agent.attach.programs import bring_companion, gang_programs
from agent.attach.relayed.attachments import NotAttachableError
from agent.attach.ticket import kept_ticket, made_ticket
from agent.executions.layout import ExecutionDirectory
from agent.loop.live_execution import LiveExecution
from agent.loop.workbench import OngoingWork
from agent.runtimes.runtime import Sandbox
from muster.domain.gangs.plan import Assignment, AttendedStart, Launch
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError
from muster.domain.jobs.interactive import MainProgramStreams

log = logging.getLogger(__name__)

COMPANION_RETURN_LIMIT = 2.5
"""Seconds in which a companion comes to the door of a new agent: it calls every two seconds at the latest."""


class ExecutionDoors:
    """Opens doors, and has companions started where somebody attaches."""

    def __init__(
        self, commands: GangCommands, work: OngoingWork, executions: Mapping[ExecutionId, LiveExecution]
    ) -> None:
        """`executions`: those of the node, which others add and remove."""
        self._commands = commands
        self._work = work
        self._executions = executions

    async def open(self, live: LiveExecution, assignment: Assignment) -> None:
        """Have a new door where user code needs one from its start; it is served until the execution is cleared away.

        Raises OSError.
        """
        if assignment.gang_commands:
            ticket = await asyncio.to_thread(partial(made_ticket, live.directory, gang_commands=True))
            await self._serve(live, ExecutionDoor(live.directory, ticket, self._commands))
        elif assignment.main_program is not None:
            await self._open_unexpecting(live)

    async def open_again(self, live: LiveExecution) -> None:
        """Have the door that an earlier agent made, if it made one; its companion comes by itself."""
        try:
            door = await asyncio.to_thread(self._kept, live.directory)
            if door is not None:
                await self._serve(live, door)
        except (OSError, CompanionAwayError) as error:
            about = {"execution": live.directory.path.name, "cause": str(error)}
            log.warning("the door of an execution cannot be opened again", extra=about)

    async def companion(self, execution: ExecutionId) -> Companion:
        """The companion of a running execution, started where there is none. Raises NotAttachableError.

        Calls beside each other start one, and one that was killed is followed by another at the next call.
        """
        live = self._executions.get(execution)
        if live is None or live.sandbox is None or not live.started:
            raise NotAttachableError("the execution does not run on this node")
        async with live.attaching:
            try:
                return await self._attached(live, live.sandbox)
            except (ExecutionError, CompanionAwayError) as error:
                raise NotAttachableError(str(error)) from error
            except OSError as error:
                raise NotAttachableError(f"the door of the execution cannot be opened: {error}") from error

    async def main_program(self, execution: ExecutionId) -> MainProgram:
        """The main program of a running execution, which may not have come yet. Raises NotAttachableError."""
        live = self._executions.get(execution)
        if live is None or not live.started:
            raise NotAttachableError("the execution does not run on this node")
        if live.door is None:
            raise NotAttachableError(NOT_ATTENDED)
        return live.door.main_program

    def kept_shells(self, execution: ExecutionId) -> KeptShells | None:
        """The kept shells of an execution; None: it has none, as nobody has attached to it."""
        live = self._executions.get(execution)
        return None if live is None or live.door is None else live.door.companion.kept

    async def _open_unexpecting(self, live: LiveExecution) -> None:
        """Have a new door to which no companion comes by itself. Raises OSError."""
        ticket = await asyncio.to_thread(partial(made_ticket, live.directory, gang_commands=False))
        await self._serve(live, ExecutionDoor(live.directory, ticket, expects_companion=False))

    async def _attached(self, live: LiveExecution, sandbox: Sandbox) -> Companion:
        """The companion at the door of an execution, made where there is none. Raises whatever stands against that."""
        _refuse_ended(live, sandbox)
        if live.door is None:
            await self._open_unexpecting(live)
        elif live.door.expects_companion and not live.door.companion.came:
            await live.door.companion.comes(COMPANION_RETURN_LIMIT)
        assert live.door is not None, "it was just opened"
        companion = live.door.companion
        if not companion.present:
            _refuse_ended(live, sandbox)
            await asyncio.to_thread(bring_companion, live.directory)
            await sandbox.attach(live.door.ticket)
            if not await companion.comes():
                _refuse_ended(live, sandbox)
                raise CompanionAwayError("the companion was started in the execution, and did not come to the door")
        return companion

    async def _serve(self, live: LiveExecution, door: ExecutionDoor) -> None:
        await asyncio.to_thread(door.open)
        if live.closed or not self._work.goes_on:  # meanwhile
            door.close()
            raise CompanionAwayError("the execution, or its agent, has just ended")
        live.door = door
        self._work.watch(door.execution, door.serve())

    def _kept(self, directory: ExecutionDirectory) -> ExecutionDoor | None:
        if ticket := kept_ticket(directory, gang_commands=True):
            return ExecutionDoor(directory, ticket, self._commands)
        if ticket := kept_ticket(directory, gang_commands=False):
            return ExecutionDoor(directory, ticket)
        return None


def with_door(launch: Launch, door: ExecutionDoor | None, main_program: MainProgramStreams | None = None) -> Launch:
    """What is started, with what comes to its door: the companion, with the programs for other executions, and the
    parent of a main program that people talk to.
    """
    if door is None:
        return launch
    if door.has_gang_commands:
        launch = replace(launch, programs={**launch.programs, **gang_programs()}, ticket=door.ticket)
    if main_program is not None:
        launch = replace(launch, main_program=AttendedStart(streams=main_program, ticket=door.ticket))
    return launch


def _refuse_ended(live: LiveExecution, sandbox: Sandbox) -> None:
    if live.closed or sandbox.ended or sandbox.vacant:
        raise CompanionAwayError("the execution has ended")
