"""Commands in the executions of this node, wanted by a caller at a door here or by the agent of another node."""

import asyncio
import signal
from dataclasses import dataclass

from agent.attach.caller import GangRefusedError
from agent.attach.carrying import Feed, carried
from agent.attach.command import AttachedCommand
from agent.attach.companion import CommandRefusedError, CompanionAwayError
from agent.attach.daemon_log import DaemonLog, tell_started
from agent.attach.gang_site import CommandCaller, GangSite
from agent.core.door.packets import (
    CommandWanted,
    DoorError,
    GangErrorOutput,
    GangExit,
    GangInput,
    GangInputEnd,
    GangSignal,
)
from muster.domain.gangs.log import Stream
from muster.domain.ids import ExecutionId

COMMAND_SHELL = ("/bin/sh", "-c")
"""Runs a command that is one word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCommand:
    """A command for an execution of this node."""

    execution: ExecutionId
    from_rank: int
    words: tuple[str, ...]
    env: tuple[str, ...]
    daemon: bool
    has_input: bool

    @property
    def order(self) -> CommandWanted:
        """What the companion is told; it gives the number."""
        words = (*COMMAND_SHELL, *self.words) if len(self.words) == 1 else self.words
        return CommandWanted(number=0, words=words, env=self.env, has_input=self.has_input, daemon=self.daemon)


class LocalCommands:
    """Runs them, and keeps daemons that go on without their callers."""

    def __init__(self, site: GangSite) -> None:
        self._site = site
        self._kept: set[asyncio.Task[None]] = set()

    async def run(self, wanted: LocalCommand, caller: CommandCaller) -> int:
        """Run one; gives its exit code, and raises GangRefusedError.

        Cancelled, or with a lost caller, it leaves a daemon running; any other command hears SIGHUP.
        """
        try:
            command = await self._started(wanted)
        except CommandRefusedError as error:
            await caller.error_output(f"{error}\n".encode(errors="surrogateescape"))
            return error.code
        going_on = False
        try:
            await caller.begun()
            going_on = wanted.daemon
            code = await carried(command.read, _feed(command), caller)
            going_on = False
            return code
        finally:
            if going_on:
                self._keep(wanted.execution, command)
            else:
                command.signal(signal.SIGHUP)
                command.close()

    async def close(self) -> None:
        """Let go of daemons, which go on; what they print goes where the output of their companions goes."""
        kept = tuple(self._kept)
        for each in kept:
            each.cancel()
        await asyncio.gather(*kept, return_exceptions=True)

    async def _started(self, wanted: LocalCommand) -> AttachedCommand:
        companion = self._site.companion(wanted.execution)
        if companion is None:
            raise GangRefusedError("the execution takes no commands: its job has not `gang_commands: true`")
        try:
            command = await companion.run(wanted.order)
        except (CompanionAwayError, DoorError) as error:
            raise GangRefusedError(str(error)) from None
        execution = wanted.execution
        tell_started(self._site.spool(execution), self._site.mask(execution), wanted.from_rank, wanted.words)
        return command

    def _keep(self, execution: ExecutionId, command: AttachedCommand) -> None:
        command.end_input()
        log = DaemonLog(self._site.spool(execution), self._site.mask(execution))
        task = asyncio.get_running_loop().create_task(_kept(command, log), name=f"daemon in {execution}")
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)


def _feed(command: AttachedCommand) -> Feed:
    async def feed(packet: GangInput | GangInputEnd | GangSignal) -> None:
        match packet:
            case GangInput(data=data):
                await command.write(data)
            case GangInputEnd():
                command.end_input()
            case GangSignal(number=number):
                command.signal(number)

    return feed


async def _kept(command: AttachedCommand, log: DaemonLog) -> None:
    try:
        while not isinstance(piece := await command.read(), GangExit):
            log.take(Stream.STDERR if isinstance(piece, GangErrorOutput) else Stream.STDOUT, piece.data)
        log.end()
    finally:
        command.close()
