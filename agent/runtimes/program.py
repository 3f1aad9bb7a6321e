"""A program that runs in a session of its own: what it prints goes to a spool, and its end is an event.

Popen and the loop's readers instead of asyncio's subprocesses: these need a thread for each child on Python 3.11 and
some turns of the loop to start one, which triples the time between the release of a job and its first instruction.
"""

import asyncio
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.runtimes.session import session_of
from agent.spool import LineSplitter, LogSpool, Stream

CHUNK = 64 * 1024
"""Bytes read at once, as many as a pipe holds; a program that prints without end cannot keep the loop for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """All that is needed to start a program."""

    command: tuple[str, ...]
    path: str
    """Of the executable."""
    env: Mapping[str, str]
    workdir: Path


class Program:
    """A running program; raises OSError or ValueError where it cannot be started. Made within the event loop."""

    def __init__(self, order: Order, spool: LogSpool) -> None:
        self._loop = asyncio.get_running_loop()
        self._spool = spool
        self._process = subprocess.Popen(  # noqa: S603 (running what users ask for is the purpose)
            order.command,
            executable=order.path,
            env=order.env,
            cwd=order.workdir,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self.session = session_of(self._process.pid)
        """Everything that it starts."""
        self.ended: asyncio.Future[int] = self._loop.create_future()
        """Its return code, as Python gives it."""
        self.ended_at = 0.0
        """By the loop's clock."""
        self.silent = asyncio.Event()
        """Set when nothing more comes from it."""
        self._pipes = {Stream.STDOUT: self._process.stdout, Stream.STDERR: self._process.stderr}
        self._splitters = {stream: LineSplitter(stream) for stream in Stream}
        self._descriptor = self._pidfd()
        self._loop.add_reader(self._descriptor, self._reap)
        for stream, pipe in self._pipes.items():
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self._loop.add_reader(pipe.fileno(), self._read, stream, pipe.fileno())

    def close(self) -> None:
        """Take no more output."""
        for stream in tuple(self._pipes):
            self._close(stream)

    def _pidfd(self) -> int:
        """Tells the loop of the end; a program that could not be watched must not run."""
        try:
            return os.pidfd_open(self._process.pid)
        except OSError:
            with self._process:
                self._process.kill()
            raise

    def _read(self, stream: Stream, descriptor: int) -> None:
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return
        if data:
            self._spool.append_all(self._splitters[stream].feed(data, time.time_ns()))
        else:
            self._close(stream)

    def _close(self, stream: Stream) -> None:
        pipe = self._pipes.pop(stream)
        assert pipe is not None
        self._loop.remove_reader(pipe.fileno())
        pipe.close()
        self._spool.append_all(self._splitters[stream].flush(time.time_ns()))
        if not self._pipes:
            self.silent.set()

    def _reap(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self.ended_at = self._loop.time()
        self.ended.set_result(self._process.wait())
