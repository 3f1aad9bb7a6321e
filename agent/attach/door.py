"""The door of one execution: a socket in its directory, to which its companion and callers come."""

import asyncio
import logging
import os
import socket
from contextlib import suppress
from functools import partial
from typing import Protocol

from agent.attach.caller import DoorCaller, GangRefusedError
from agent.attach.companion import Companion
from agent.attach.kept.main_program import MainProgram, shown_main_program
from agent.attach.line import PacketLine, close_all, ready
from agent.core.door.coding import decoded
from agent.core.door.packets import DoorError, GangCommandAsked, GangExit, GangRefused, Speaker, StayAsked
from agent.executions.layout import ExecutionDirectory
from muster.domain.ids import ExecutionId
from muster.trust.attempt_signature import same_signature

log = logging.getLogger(__name__)

FIRST_PACKET_LIMIT = 5.0
"""Seconds in which whoever comes to the door says what it is."""

LAST_PACKET_LIMIT = 10.0
"""Seconds in which a caller takes the last packet."""

MOST_LINES = 128
"""Lines of one door, whoever has them; who comes later waits until one is free."""

MOST_GANG_COMMANDS = 64
"""Commands that the callers of one execution have under way."""

_NO_GANG_COMMANDS = "the execution runs no commands elsewhere: its job has not `gang_commands: true`"


class GangCommands(Protocol):
    """Carries out what callers ask for."""

    async def run(self, execution: ExecutionId, asked: GangCommandAsked, caller: DoorCaller, /) -> int:
        """Run a command elsewhere in the gang of an execution; its exit code. Raises GangRefusedError.

        It is cancelled when the caller goes away, and leaves running what is to outlive its caller.
        """
        ...


class ExecutionDoor:
    """Serves one execution. A companion shows the ticket that it was started with."""

    def __init__(
        self,
        directory: ExecutionDirectory,
        ticket: str,
        commands: GangCommands | None = None,
        *,
        expects_companion: bool = True,
    ) -> None:
        """`commands`: None where the job has no gang commands, and nobody but programs of ours may come.

        `expects_companion`: whether a companion may come by itself, as it was started with user code or long ago.
        """
        self.expects_companion = expects_companion
        self._directory = directory
        self.execution = ExecutionId(directory.path.name)
        self.ticket = ticket
        """What its companion shows."""
        self._commands = commands
        self._listener: socket.socket | None = None
        self._served = False
        self._free = asyncio.Semaphore(MOST_LINES)
        self._running = 0
        self.companion = Companion()
        self.main_program = MainProgram()
        """The main program, where its job has people talk to it."""

    @property
    def has_gang_commands(self) -> bool:
        """Whether executions run commands in each other through this door."""
        return self._commands is not None

    def open(self) -> None:
        """Be there for whoever comes; takes the place of a door that an earlier agent left. Raises OSError."""
        self._directory.run.mkdir(exist_ok=True)
        self._directory.run.chmod(0o711)
        self._directory.door.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._listen(self._listener)
        except OSError:
            self._listener.close()
            raise

    def close(self) -> None:
        """Be there for nobody, if it was opened and never served; one that was served closes by itself."""
        if self._listener is not None and not self._served:
            self._listener.close()

    def _listen(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        parent = os.open(self._directory.run, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            listener.bind(f"/proc/self/fd/{parent}/{self._directory.door.name}")  # no path is too long for that
        finally:
            os.close(parent)
        self._directory.door.chmod(0o666)  # whoever can get to the directory may come
        listener.listen(MOST_LINES)

    async def serve(self) -> None:
        """Serve until cancelled; then every line is closed, and callers hear that the agent has gone away."""
        assert self._listener is not None, "`open` comes first"
        self._served = True
        try:
            async with asyncio.TaskGroup() as lines:
                while True:
                    await self._free.acquire()
                    line = PacketLine(await _accepted(self._listener))
                    talking = lines.create_task(self._serve(line), name=f"line to {self.execution}")
                    talking.add_done_callback(partial(self._over, line))
        finally:
            self._listener.close()
            await self.companion.kept.close()

    def _over(self, line: PacketLine, _: "asyncio.Task[None]") -> None:
        """Also of a line whose task was cancelled before it had begun."""
        line.close()
        self._free.release()

    async def _serve(self, line: PacketLine) -> None:
        try:
            await self._talk(line)
        except DoorError as error:
            log.warning("line at the door ended", extra={"execution": self.execution, "cause": str(error)})
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(LAST_PACKET_LIMIT):
                    await line.say(GangRefused(text=f"the agent does not understand this program: {error}"))
        except (OSError, TimeoutError):
            pass  # whoever it was is gone, or says nothing
        except Exception:  # the other lines of this door go on
            log.exception("line at the door failed", extra={"execution": self.execution})

    async def _talk(self, line: PacketLine) -> None:
        async with asyncio.timeout(FIRST_PACKET_LIMIT):
            raw, descriptors = await line.hear_raw()
        if raw[:1] == b"A":
            await self._show_main_program(line, raw, descriptors)
            return
        close_all(descriptors)
        if not raw:
            return
        first = decoded(raw, Speaker.COMPANION if raw[:1] == b"S" else Speaker.CALLER)
        match first:
            case StayAsked(ticket=ticket):
                self._refuse_other(ticket, "a companion")
                await self.companion.serve(line)
            case GangCommandAsked() if self._commands is not None:
                await self._answer(line, first, self._commands)
            case GangCommandAsked():
                async with asyncio.timeout(LAST_PACKET_LIMIT):
                    await line.say(GangRefused(text=_NO_GANG_COMMANDS))
            case _:
                raise DoorError("the first packet asks for nothing")

    async def _show_main_program(self, line: PacketLine, raw: bytes, descriptors: list[int]) -> None:
        try:
            shown = shown_main_program(raw)
            self._refuse_other(shown.ticket, "the parent of a main program")
        except DoorError:
            close_all(descriptors)
            raise
        await self.main_program.serve(line, shown, descriptors)

    def _refuse_other(self, ticket: str, who: str) -> None:
        """Raise DoorError for a ticket that its agent did not give."""
        if not same_signature(ticket.encode(errors="replace"), self.ticket.encode()):
            raise DoorError(f"{who} shows a ticket that is not of this execution")

    async def _answer(self, line: PacketLine, asked: GangCommandAsked, commands: GangCommands) -> None:
        """Have a caller's command run, and tell how it ended."""
        answer: GangExit | GangRefused
        if self._running >= MOST_GANG_COMMANDS:
            answer = GangRefused(text=f"{MOST_GANG_COMMANDS} commands of this execution run already")
        else:
            self._running += 1
            try:
                answer = await self._outcome(DoorCaller(line), asked, commands)
            finally:
                self._running -= 1
        async with asyncio.timeout(LAST_PACKET_LIMIT):
            await line.say(answer)

    async def _outcome(
        self, caller: DoorCaller, asked: GangCommandAsked, commands: GangCommands
    ) -> GangExit | GangRefused:
        listening = asyncio.create_task(caller.listen(), name=f"caller of {self.execution}")
        leaving = asyncio.create_task(caller.gone(), name=f"end of a caller of {self.execution}")
        running = asyncio.create_task(
            commands.run(self.execution, asked, caller), name=f"gang command of {self.execution}"
        )
        try:
            await asyncio.wait((listening, leaving, running), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                if listening.done():
                    listening.result()  # a packet that cannot be understood is the caller's fault
                raise ConnectionResetError("the caller has gone away")
            return GangExit(code=running.result() & 0xFF)
        except GangRefusedError as error:
            return GangRefused(text=str(error))
        finally:
            tasks = (listening, leaving, running)
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _accepted(listener: socket.socket) -> socket.socket:
    """The next connection; nothing is awaited once it is there, as asyncio's own call may lose it when cancelled."""
    while True:
        try:
            return listener.accept()[0]
        except BlockingIOError:
            await ready(listener.fileno(), asyncio.get_running_loop().add_reader)
