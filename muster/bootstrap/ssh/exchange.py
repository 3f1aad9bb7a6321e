"""One command over a connection that is there."""

import asyncio
import select
import time
from collections.abc import Iterable, Iterator

import paramiko

from muster.bootstrap.ssh.executor import QUICK, CommandOutput, Stdin
from muster.domain.errors import UnavailableError

CONNECT = 15.0
"""Seconds for a connection, and again for each step until one is let in."""
_PIECE = 1 << 15
_MOST_OUTPUT = 1 << 24
"""Bytes that are kept of what a command prints; nothing here prints as much."""


class SshExecutor:
    """Runs commands over one connection."""

    def __init__(self, name: str, transport: paramiko.Transport) -> None:
        self.name = name
        self._transport = transport

    async def run(self, command: str, *, stdin: Iterable[Stdin] = (), limit: float = QUICK) -> CommandOutput:
        """Run a command of the POSIX shell; raises UnavailableError where it has not ended in time."""
        exchange = Exchange(self._transport, command, stdin, limit)
        try:
            return await asyncio.to_thread(exchange.run)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise UnavailableError(f"the connection broke: {error}") from error
        finally:
            exchange.close()  # the thread of a cancelled call ends by this

    async def close(self) -> None:
        """Close the connection."""
        await asyncio.to_thread(self._transport.close)


class Exchange:
    """One command: what it reads, what it says, and how it ends; `run` blocks."""

    def __init__(self, transport: paramiko.Transport, command: str, stdin: Iterable[Stdin], limit: float) -> None:
        self._transport = transport
        self._command = command
        self._pieces = _pieces(stdin)
        self._limit = limit
        self._out = bytearray()
        self._err = bytearray()
        self._channel: paramiko.Channel | None = None
        self._closed = False

    def run(self) -> CommandOutput:
        """How it ended; raises UnavailableError where it has not in time."""
        until = time.monotonic() + self._limit
        channel = self._channel = self._transport.open_session(timeout=CONNECT)
        channel.settimeout(CONNECT)
        channel.exec_command(self._command)
        left, pause = b"", 0.0
        writing = True
        while not (channel.exit_status_ready() and channel.closed):
            if self._closed or time.monotonic() > until:
                raise UnavailableError(f"a command did not end within {self._limit:g} s")
            self._read(channel)
            if writing:
                left = left or next(self._pieces, b"")
                writing, after = self._write(channel, left)
                # Nothing wakes for room to write, so that is looked for often.
                pause = 0.002 if after == left else 0.0
                left = after
            select.select([channel], [], [], pause if writing else 0.1)
            if channel.exit_status_ready() and channel.eof_received:
                break
        self._read(channel)
        code = channel.recv_exit_status()
        if code < 0 and not self._transport.is_active():
            raise UnavailableError("the connection broke")
        return CommandOutput(code=code, out=self._out.decode(errors="replace"), err=self._err.decode(errors="replace"))

    def close(self) -> None:
        """End it, wherever it is."""
        self._closed = True
        if self._channel is not None:
            self._channel.close()

    def _read(self, channel: paramiko.Channel) -> None:
        while channel.recv_ready():
            self._keep(self._out, channel.recv(_PIECE))
        while channel.recv_stderr_ready():
            self._keep(self._err, channel.recv_stderr(_PIECE))

    @staticmethod
    def _keep(kept: bytearray, more: bytes) -> None:
        kept += more[: max(0, _MOST_OUTPUT - len(kept))]

    @staticmethod
    def _write(channel: paramiko.Channel, left: bytes) -> tuple[bool, bytes]:
        """Whether there is more to write, and what."""
        if not left:
            channel.shutdown_write()
            return False, b""
        if not channel.send_ready():
            return True, left
        try:
            return True, left[channel.send(left) :]
        except OSError:
            return False, b""  # it reads no more; its exit code says whether that is all right


def _pieces(stdin: Iterable[Stdin]) -> Iterator[bytes]:
    for part in stdin:
        if isinstance(part, bytes):
            yield from (part[start : start + _PIECE] for start in range(0, len(part), _PIECE))
            continue
        with part.open("rb") as file:
            while piece := file.read(_PIECE):
                yield piece
