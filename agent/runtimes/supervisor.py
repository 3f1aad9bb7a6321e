"""What stays with a program from its start to its end, whatever becomes of the agent.

A supervisor is a fork of the launcher. It gets an order over a connection to the agent, and makes a process that is the
program but for the last call. That process keeps the connection, and waits there for one byte; so a start is over as
soon as the connection closes, and needs no more than the two processes that it is about. The supervisor needs nobody:
it writes what the program prints into the log, and how it ended into the record. Whoever listens at the bell, a named
pipe in the room, hears that there is something new, and by its closing that the supervisor is gone.
"""

import errno
import json
import os
import select
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

from agent.log_file import LogFile
from agent.runtimes.pids import process
from agent.runtimes.process_record import RecordFile
from muster.domain.log import LineSplitter, Stream

BELL = "bell"
"""Of the named pipe in the room."""

CHUNK = 64 * 1024
"""Bytes read at once, as many as a pipe holds."""

DRAIN_LIMIT = 2.0
"""Seconds after the end of user code for which output of what it left behind is still taken."""

FULL_DISK_PAUSE = 1.0
"""Seconds between attempts to write down how a program ended."""

IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Meant for agent or program; what these do, the supervisor sees."""

_DEFAULT = (*IGNORED, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)
"""Ignored by launchers and supervisors; programs find them as usual."""

_CONNECTION = 3
"""Descriptor at which a held program talks with the agent."""

_LIMIT = 64
"""No supervisor has a descriptor above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """All that is needed to run a program. Paths are absolute."""

    room: str
    log: str
    log_limit: int
    command: tuple[str, ...]
    path: str
    """Of the executable."""
    env: Mapping[str, str]
    workdir: str

    def line(self) -> bytes:
        """As it goes over the connection."""
        return json.dumps(asdict(self)).encode() + b"\n"


def supervise(connection: socket.socket) -> None:
    """Carry out the order that comes over the connection; returns when there is nothing left to do."""
    os.setsid()
    order = Order(**json.loads(_line(connection)))
    try:
        log, bell = LogFile(Path(order.log), order.log_limit), Bell(Path(order.room))
        os.chdir(order.workdir)
        record = RecordFile(Path(order.room), process(os.getpid()))
        program, outputs = _hold(order, record, connection)
    except OSError as problem:
        _say(connection, errno=problem.errno, reason=problem.strerror)
        return
    connection.close()  # the agent shall see it close when the program starts
    os.chdir("/")
    os.dup2(0, 2)  # who waits for the end of the agent's output must not wait for ours
    Copy(record, program, outputs, log, bell).run()


class Bell:
    """Rung when there is something new for the agent; that nobody listens does no harm."""

    def __init__(self, room: Path) -> None:
        with suppress(FileExistsError):
            os.mkfifo(room / BELL, 0o600)
        # For reading, too: a pipe without a reader could neither be opened nor be written to.
        self._pipe = os.open(room / BELL, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def ring(self) -> None:
        """Wake the agent. A full pipe will wake it as well."""
        with suppress(BlockingIOError):
            os.write(self._pipe, b".")


class Copy:
    """Writes down what a program prints, and how it ends."""

    def __init__(
        self, record: RecordFile, program: int, outputs: Mapping[int, Stream], log: LogFile, bell: Bell
    ) -> None:
        self._record = record
        self._program = program
        self._log = log
        self._bell = bell
        self._end = os.pidfd_open(program)
        self._until: float | None = None
        """When to take no more output: some time after the end."""
        self._unused = False
        """Whether the program never started."""
        self._outputs = {reader: LineSplitter(stream) for reader, stream in outputs.items()}
        self._poll = select.poll()
        for descriptor in (*outputs, self._end):
            self._poll.register(descriptor, select.POLLIN)

    def run(self) -> None:
        """Work until the program has ended and its output, too."""
        try:
            self._run()
        except Exception as error:  # noqa: BLE001 - the record is the only way to be heard
            self._record.add(fault=f"{type(error).__name__}: {error}")

    def _run(self) -> None:
        while self._outputs or self._until is None:
            left = None if self._until is None else max(0.0, self._until - time.monotonic()) * 1000
            ready = self._poll.poll(left)
            if not ready:
                self._cut_off()
            for descriptor, _ in ready:
                if descriptor == self._end:
                    self._reap()
                else:
                    self._read(descriptor)
            self._bell.ring()
        if not self._unused:
            self._log.finish()
            self._write_down(complete=True)

    def _read(self, reader: int) -> None:
        data = os.read(reader, CHUNK)
        if data:
            self._log.append_all(self._outputs[reader].feed(data, time.time_ns()))
        else:
            self._close(reader)

    def _close(self, reader: int) -> None:
        self._poll.unregister(reader)
        os.close(reader)
        self._log.append_all(self._outputs.pop(reader).flush(time.time_ns()))

    def _cut_off(self) -> None:
        """What the program left behind still holds its output, and may do so for ever."""
        for reader in tuple(self._outputs):
            self._close(reader)
        self._log.mark("output after the end is not kept")

    def _reap(self) -> None:
        self._poll.unregister(self._end)
        os.close(self._end)
        _, status = os.waitpid(self._program, 0)
        self._until = time.monotonic() + DRAIN_LIMIT
        self._unused = self._record.clear()
        if not self._unused:
            self._write_down(code=os.waitstatus_to_exitcode(status))

    def _write_down(self, **facts: object) -> None:
        """Nobody else knows how it ended, so a full disk only delays it."""
        while True:
            try:
                self._record.add(**facts)
            except FileNotFoundError:
                return  # the room is gone
            except OSError:
                time.sleep(FULL_DISK_PAUSE)
            else:
                return


def _hold(order: Order, record: RecordFile, connection: socket.socket) -> tuple[int, Mapping[int, Stream]]:
    """Make a process that is the program but for the last call; its pid, and where what it prints can be read."""
    readers, writers = zip(*(os.pipe() for _ in Stream), strict=True)
    program = os.fork()
    if program == 0:
        _become(order, record, connection.fileno(), writers)
    for writer in writers:
        os.close(writer)
    return program, dict(zip(readers, Stream, strict=True))


def _become(order: Order, record: RecordFile, connection: int, writers: tuple[int, ...]) -> NoReturn:
    """Be the program, as soon as the agent says so; it hears that from its end of the connection closing."""
    try:
        os.setsid()
        for number, writer in enumerate(writers, start=1):
            os.dup2(writer, number)
        os.dup2(connection, _CONNECTION)
        os.set_inheritable(_CONNECTION, False)
        os.closerange(_CONNECTION + 1, _LIMIT)  # the ends of others, which tell them when we are gone
        for number in _DEFAULT:
            signal.signal(number, signal.SIG_DFL)
        me = process(os.getpid())
        record.name(me)
        _tell(supervisor=asdict(record.supervisor), program=asdict(me))
        if os.read(_CONNECTION, 1) and os.getppid() == record.supervisor.pid:
            with record.used():
                os.execve(order.path, order.command, order.env)  # noqa: S606 (no shell is wanted)
    except OSError as problem:
        _tell(errno=problem.errno, reason=problem.strerror)
    except ValueError as problem:
        _tell(errno=errno.EINVAL, reason=str(problem))
    finally:
        os._exit(127)


def _tell(**facts: object) -> None:
    os.write(_CONNECTION, json.dumps(facts).encode() + b"\n")


def _say(connection: socket.socket, **facts: object) -> None:
    connection.sendall(json.dumps(facts).encode() + b"\n")


def _line(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as lines:
        return lines.readline()
