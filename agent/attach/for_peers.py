"""Commands that agents of other nodes want in executions of this one."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from agent.attach.caller import GangRefusedError
from agent.attach.gang_site import GangSite
from agent.attach.local_commands import LocalCommand, LocalCommands
from agent.core.door.gang_rules import CommandFault, CommandRejected, Nonces, accepted
from agent.core.door.packets import GangInput, GangInputEnd, GangSignal
from muster.domain.attachments.frame import (
    LARGEST_FRAME_DATA,
    AttachmentEnded,
    AttachmentErrorOutput,
    AttachmentFrame,
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentOpened,
    AttachmentOutput,
    AttachmentSignal,
    GangCommand,
)
from muster.domain.ids import AttemptId, ExecutionId, NodeId
from muster.wire.checks import WireError

FIRST_FRAME_LIMIT = 5.0
"""Seconds in which another agent says what it wants."""

HANG_UP_LIMIT = 5.0
"""Seconds in which another agent hangs up once it was told how its command ended."""

FRAMES_AHEAD = 4
"""Frames of another agent that are read before they are asked for; then it waits."""

MOST_COMMANDS_FOR_OTHERS = 1024
"""Commands that executions of other nodes have under way on this one."""

MOST_COMMANDS_OF_ONE_EXECUTION = 64
"""Commands that one execution of another node has under way on this one."""


class FrameStream(Protocol):
    """The stream to the agent that wants a command."""

    async def read(self) -> AttachmentFrame | None:
        """The next frame; None: there will be none. Raises ConnectionError or WireError."""
        ...

    async def write(self, frame: AttachmentFrame) -> None:
        """Send a frame; waits while the other side does not read. Raises ConnectionError."""
        ...


class CommandRejectedError(Exception):
    """A command of another agent is not run."""

    def __init__(self, rejected: CommandRejected) -> None:
        super().__init__(rejected.text)
        self.fault = rejected.fault


class CommandsForPeers:
    """Checks what other agents want, and has it run."""

    def __init__(
        self, node: NodeId, site: GangSite, commands: LocalCommands, most: int = MOST_COMMANDS_FOR_OTHERS
    ) -> None:
        self._node = node
        self._most = most
        self._site = site
        self._commands = commands
        self._nonces = Nonces()
        self._calls = 0
        """Calls that are being listened to, and calls whose commands run."""
        self._running: Counter[tuple[AttemptId, int]] = Counter()

    async def serve(self, stream: FrameStream, shows: Callable[[NodeId], bool]) -> None:
        """Carry out what one stream asks for; `shows` tells whether the other side has proven to be a node.

        Raises CommandRejectedError before the command runs, ConnectionError, TimeoutError or WireError.
        """
        if self._calls >= self._most:
            raise _rejected(CommandFault.TOO_MANY, f"{self._most} commands of other nodes run on {self._node} already")
        self._calls += 1
        try:
            await self._serve(stream, shows)
        finally:
            self._calls -= 1

    async def _serve(self, stream: FrameStream, shows: Callable[[NodeId], bool]) -> None:
        async with asyncio.timeout(FIRST_FRAME_LIMIT):
            command = await stream.read()
        if not isinstance(command, GangCommand):
            raise _rejected(CommandFault.UNPROVEN, "the first frame is no command")
        part = self._site.part(command.attempt_id)
        found = accepted(command, part, here=self._node, shown=shows(command.node), nonces=self._nonces)
        if isinstance(found, CommandRejected):
            raise CommandRejectedError(found)
        asker = (command.attempt_id, command.from_rank)
        if self._running[asker] >= MOST_COMMANDS_OF_ONE_EXECUTION:
            text = f"{MOST_COMMANDS_OF_ONE_EXECUTION} commands of this execution run on {self._node} already"
            raise _rejected(CommandFault.TOO_MANY, text)
        self._running[asker] += 1
        try:
            await self._run(found, command, stream)
        finally:
            self._running[asker] -= 1
            if not self._running[asker]:
                del self._running[asker]

    async def _run(self, execution: ExecutionId, command: GangCommand, stream: FrameStream) -> None:
        wanted = LocalCommand(
            execution=execution,
            from_rank=command.from_rank,
            words=command.words,
            env=command.env,
            daemon=command.daemon,
            has_input=command.has_input,
        )
        caller = PeerCaller(stream)
        listening = asyncio.create_task(caller.listen(), name=f"what the caller of {execution} says")
        try:
            code = await self._commands.run(wanted, caller)
            await stream.write(AttachmentEnded(code=code & 0xFF))
            # gRPC drops what the other side has not read yet where that writes to a call that has ended.
            with suppress(TimeoutError):
                async with asyncio.timeout(HANG_UP_LIMIT):
                    await caller.hung_up()
        except GangRefusedError as error:
            raise _rejected(CommandFault.NOT_HERE, str(error)) from None
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


class PeerCaller:
    """A caller behind the agent of another node."""

    def __init__(self, stream: FrameStream) -> None:
        self._stream = stream
        self._heard: asyncio.Queue[AttachmentFrame | ConnectionError | WireError] = asyncio.Queue(FRAMES_AHEAD)
        """What it says, and last of all why it says no more."""

    async def listen(self) -> None:
        """Take in what it says until it says no more; for one task, as gRPC takes one reader, and no pause of it."""
        try:
            while (frame := await self._stream.read()) is not None:
                await self._heard.put(frame)
            await self._heard.put(ConnectionResetError("the agent that wanted the command has gone away"))
        except (ConnectionError, WireError) as error:
            await self._heard.put(error)

    async def hung_up(self) -> None:
        """Wait until it says no more."""
        while not isinstance(await self._heard.get(), ConnectionError | WireError):
            pass

    async def begun(self) -> None:
        """Tell it that its command runs."""
        await self._stream.write(AttachmentOpened())

    async def output(self, data: bytes) -> None:
        """Pass on output of any size; waits while the caller does not read."""
        for at in range(0, len(data), LARGEST_FRAME_DATA):
            await self._stream.write(AttachmentOutput(data=data[at : at + LARGEST_FRAME_DATA]))

    async def error_output(self, data: bytes) -> None:
        """The same for what the command prints as errors."""
        for at in range(0, len(data), LARGEST_FRAME_DATA):
            await self._stream.write(AttachmentErrorOutput(data=data[at : at + LARGEST_FRAME_DATA]))

    async def heard(self) -> GangInput | GangInputEnd | GangSignal:
        """The next piece of its input, the end of that, or a signal for the command."""
        match await self._heard.get():
            case AttachmentInput(data=data):
                return GangInput(data=data)
            case AttachmentInputEnd():
                return GangInputEnd()
            case AttachmentSignal(number=number):
                return GangSignal(number=number)
            case ConnectionError() | WireError() as error:
                raise error
            case _:
                raise ConnectionAbortedError("the agent that wanted the command says what it may not say")


def _rejected(fault: CommandFault, text: str) -> CommandRejectedError:
    return CommandRejectedError(CommandRejected(fault, text))
