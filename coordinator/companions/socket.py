"""Sockets in the state directory to which the programs beside it come; of each the last one that comes counts."""

import asyncio
import logging
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from muster.daemon.companions.lines import LONGEST_COMPANION_LINE, CompanionTalk
from muster.domain.errors import MusterError

log = logging.getLogger(__name__)

COMPANION_LINES = 8
"""Connections to one socket at once; further ones are closed."""

FIRST_LINE_LIMIT = 5.0
"""Seconds in which a program says who it is."""

CERTIFICATE_LOOK = 60.0
"""Seconds between two looks at whether there is another certificate."""

_CREDENTIALS = struct.Struct("3i")


_Hears_contra = TypeVar("_Hears_contra", contravariant=True)
_Tells_co = TypeVar("_Tells_co", covariant=True)
_Heard = TypeVar("_Heard")
_Told = TypeVar("_Told")


class CompanionDesk(Protocol[_Hears_contra, _Tells_co]):
    """What the coordinator knows of one of the programs."""

    stir: Callable[[], None]
    """Called when there is something to tell."""

    def welcome(self, first: _Hears_contra) -> Sequence[_Tells_co]:
        """Everything that a program must know which has just come; nothing where it does not begin with its hello."""
        ...

    def hear(self, message: _Hears_contra) -> None:
        """Take in what it says."""
        ...

    def left(self) -> None:
        """Note that it is not connected any more."""
        ...

    def take(self) -> Iterable[_Tells_co]:
        """What it is to be told now."""
        ...

    def look_again(self) -> None:
        """Have it told of what may have changed."""
        ...


class CompanionSocket(Generic[_Heard, _Told]):
    """Serves one desk."""

    def __init__(self, desk: CompanionDesk[_Heard, _Told], talk: CompanionTalk[_Heard, _Told], directory: Path) -> None:
        self._desk = desk
        self._talk_of = talk
        self._path = directory / talk.socket
        self._lines = 0
        self._stirred = asyncio.Event()
        self._talking: asyncio.Task[None] | None = None
        """The connection that counts."""
        desk.stir = self._stirred.set

    async def serve(self) -> None:
        """Serve until cancelled. Raises MusterError where the socket cannot be made."""
        listener = self._listener()
        try:
            async with asyncio.TaskGroup() as lines:
                server = await asyncio.start_unix_server(
                    partial(self._come, lines), sock=listener, limit=LONGEST_COMPANION_LINE
                )
                async with server:
                    await server.serve_forever()
        finally:
            self._path.unlink(missing_ok=True)

    def _come(self, lines: asyncio.TaskGroup, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._lines >= COMPANION_LINES:
            writer.close()
            return
        self._lines += 1
        talking = lines.create_task(self._talk(reader, writer), name=f"line to the {self._talk_of.program}")
        talking.add_done_callback(partial(self._over, writer))

    def _over(self, writer: asyncio.StreamWriter, _: "asyncio.Task[None]") -> None:
        """Also of a line whose task was cancelled before it had begun."""
        self._lines -= 1
        writer.close()

    def _listener(self) -> socket.socket:
        self._path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        parent = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            listener.bind(f"/proc/self/fd/{parent}/{self._path.name}")  # no path is too long for that
            self._path.chmod(0o600)
        except OSError as error:
            listener.close()
            raise MusterError(
                f"cannot make the socket {self._path} for the {self._talk_of.program}: {error.strerror}"
            ) from error
        finally:
            os.close(parent)
        return listener

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        program = self._talk_of.program
        try:
            if not _is_ours(writer):
                return
            async with asyncio.timeout(FIRST_LINE_LIMIT):
                first = self._talk_of.read(await reader.readline())
            if first is not None:
                await self._serve(first, reader, writer)
        except (OSError, TimeoutError, ValueError) as error:
            log.warning("the line to a program is broken", extra=_about(program, str(error) or "it says nothing"))
        except Exception:  # the coordinator goes on
            log.exception("the line to a program failed", extra={"program": program})
        finally:
            if self._talking is asyncio.current_task():
                self._talking = None
                self._desk.left()

    async def _serve(self, first: _Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeting = self._desk.welcome(first)
        if not greeting:
            return
        if self._talking is not None:
            self._talking.cancel()
        self._talking = asyncio.current_task()
        log.info("%s is there", self._talk_of.program, extra={"version": self._talk_of.version_in(first)})
        writer.write(b"".join(map(self._talk_of.line_of, greeting)))
        async with asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(self._tell(writer), name=f"tell the {self._talk_of.program}")
            await self._hear(reader)
            telling.cancel()
        log.warning("%s is gone; who needs it waits until it is back", self._talk_of.program)

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        """Take in what the program says until it is gone, or says what cannot be."""
        try:
            while line := await reader.readline():
                message = self._talk_of.read(line)
                if message is not None:
                    self._desk.hear(message)
        except (OSError, ValueError) as error:
            log.warning("the line to a program is broken", extra=_about(self._talk_of.program, str(error)))

    async def _tell(self, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):  # the reader hears of it, too
            while True:
                self._stirred.clear()
                writer.write(b"".join(map(self._talk_of.line_of, self._desk.take())))
                await writer.drain()
                try:
                    async with asyncio.timeout(CERTIFICATE_LOOK):
                        await self._stirred.wait()
                except TimeoutError:
                    self._desk.look_again()


@asynccontextmanager
async def serving_companion(
    desk: CompanionDesk[_Heard, _Told], talk: CompanionTalk[_Heard, _Told], directory: Path
) -> AsyncIterator[None]:
    """Have a program come to the desk while the block runs; raises MusterError where there can be no socket."""
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(
            CompanionSocket(desk, talk, directory).serve(), name=f"socket for the {talk.program}"
        )
        try:
            yield
        finally:
            serving.cancel()


def _about(program: str, cause: str) -> dict[str, str]:
    return {"program": program, "cause": cause}


def _is_ours(writer: asyncio.StreamWriter) -> bool:
    """Whether the program at the other end is of the same user, or root's."""
    said = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(said)
    return user in {0, os.geteuid()}
