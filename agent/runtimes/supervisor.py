"""What stays with a program from its start to its end, whatever becomes of the agent.

A supervisor is a fork of the launcher. It gets an order over a connection to the agent, makes a process that is the
program but for the last call, and holds it; one byte over the connection lets it go. From then on it needs nobody: it
writes what the program prints into the log, and how it ended into the record. Whoever listens at the bell, a named
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
from typing import Any, NoReturn

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

_GATE = 3
"""Descriptor at which a held program says that it is ready, and waits for its release."""

_GO = b"."

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
    order = json.loads(_line(connection))
    room = Path(order["room"])
    try:
        log, bell = LogFile(Path(order["log"]), order["log_limit"]), Bell(room)
        program = Held(order)
    except OSError as problem:
        _say(connection, errno=problem.errno, reason=problem.strerror)
        return
    me, it = process(os.getpid()), process(program.pid)
    _say(connection, supervisor=me.pid, program=it.pid)
    if not connection.recv(1):
        return  # given up, or the agent is gone; the program ends with its gate
    try:
        record = RecordFile(room, me, it)
    except OSError as problem:
        _say(connection, errno=problem.errno, reason=problem.strerror)
        return
    if _let_go(program, record, connection):
        os.dup2(0, 2)  # who waits for the end of the agent's output must not wait for ours
        connection.close()
        _stay(Copy(program, log, bell, record), record)


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


class Held:
    """A process that is the program but for the last call; raises OSError where there can be none."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        self._gate, its_gate = socket.socketpair()
        readers, writers = zip(*(os.pipe() for _ in Stream), strict=True)
        self.outputs: dict[int, Stream] = dict(zip(readers, Stream, strict=True))
        """Where what it prints can be read."""
        self.pid = os.fork()
        if self.pid == 0:
            _become(order, its_gate.fileno(), writers)
        its_gate.close()
        for writer in writers:
            os.close(writer)
        problem = self._answer()
        if problem is not None:
            raise OSError(problem["errno"], problem["reason"])

    def release(self) -> dict[str, Any] | None:
        """Let it run; why that is not possible, if it is not."""
        with self._gate, suppress(ConnectionError):  # killed before it began: that is how it ended, then
            self._gate.send(_GO)
            return self._answer()
        return None

    def _answer(self) -> dict[str, Any] | None:
        """What it says against going on."""
        text = self._gate.recv(CHUNK)
        return None if text in {b"", _GO} else json.loads(text)


class Copy:
    """Writes down what a running program prints, and how it ends."""

    def __init__(self, program: Held, log: LogFile, bell: Bell, record: RecordFile) -> None:
        self._pid = program.pid
        self._log = log
        self._bell = bell
        self._record = record
        self._end = os.pidfd_open(program.pid)
        self._until: float | None = None
        """When to take no more output: some time after the end."""
        self._outputs = {reader: LineSplitter(stream) for reader, stream in program.outputs.items()}
        self._poll = select.poll()
        for descriptor in (*self._outputs, self._end):
            self._poll.register(descriptor, select.POLLIN)

    def run(self) -> None:
        """Work until the program has ended and its output, too."""
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
        _, status = os.waitpid(self._pid, 0)
        self._until = time.monotonic() + DRAIN_LIMIT
        self._write_down(code=os.waitstatus_to_exitcode(status))

    def _write_down(self, **facts: object) -> None:
        """Nobody else knows how it ended, so a full disk only delays it."""
        while True:
            try:
                self._record.add(**facts)
            except OSError:
                time.sleep(FULL_DISK_PAUSE)
            else:
                return


def _let_go(program: Held, record: RecordFile, connection: socket.socket) -> bool:
    """Start the program and say whether that worked."""
    refusal = program.release()
    if refusal is not None:
        record.withdraw()
    with suppress(OSError):  # the agent may be gone meanwhile; the program is started all the same
        _say(connection, **(refusal or {}))
    return refusal is None


def _stay(copy: Copy, record: RecordFile) -> None:
    try:
        copy.run()
    except Exception as error:  # noqa: BLE001 - nobody hears it but through the record
        with suppress(OSError):
            record.add(fault=f"{type(error).__name__}: {error}")


def _become(order: Mapping[str, Any], gate: int, writers: tuple[int, ...]) -> NoReturn:
    """Be the program, as soon as the gate opens."""
    try:
        os.setsid()
        for number, writer in enumerate(writers, start=1):
            os.dup2(writer, number)
        os.dup2(gate, _GATE, inheritable=False)
        os.closerange(_GATE + 1, _LIMIT)  # the ends of others, which tell them when we are gone
        os.chdir(order["workdir"])
        for number in _DEFAULT:
            signal.signal(number, signal.SIG_DFL)
        os.write(_GATE, _GO)
        if os.read(_GATE, 1):
            os.execve(order["path"], order["command"], order["env"])  # noqa: S606 (no shell is wanted)
    except OSError as problem:
        _refuse(errno=problem.errno, reason=problem.strerror)
    except ValueError as problem:
        _refuse(errno=errno.EINVAL, reason=str(problem))
    finally:
        os._exit(127)


def _refuse(**why: object) -> None:
    os.write(_GATE, json.dumps(why).encode())


def _line(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as lines:
        return lines.readline()


def _say(connection: socket.socket, **facts: object) -> None:
    connection.sendall(json.dumps(facts).encode() + b"\n")
