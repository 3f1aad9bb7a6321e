"""What stays with a program from its start to its end, whatever becomes of the agent.

A supervisor is a fork of the launcher. It has a connection to the agent, over which it gets an order, gets everything
ready, and waits; as soon as it is told to go, it starts the program and says so. From then on it needs nobody: it
writes what the program prints into the log, and how it ended into the record. Whoever listens at the bell, a named
pipe in the room, hears that there is something new, and by its closing that the supervisor is gone. When all is over
and its agent still there, it waits for the next order: it has all the memory that a fork would have to make first.
"""

import errno
import json
import os
import select
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from agent.log_file import LogFile
from agent.log_mask import MaskedSplitter
from agent.runtimes.descendants import Descendants
from agent.runtimes.order import BELL, GO, Order
from agent.runtimes.pids import process
from agent.runtimes.process_record import RecordFile
from muster.domain.log import LineSplitter, Record, Stream

if TYPE_CHECKING:
    from agent.runtimes.other_user import Start

CHUNK = 64 * 1024
"""Bytes read at once, as many as a pipe holds."""

DRAIN_LIMIT = 2.0
"""Seconds after the end of user code for which output of what it left behind is still taken."""

FULL_DISK_PAUSE = 1.0
"""Seconds between attempts to write down how a program ended, and what of its output was lost."""

IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Meant for agent or program; what these do, the supervisor sees."""

_DEFAULT = tuple(each for each in signal.Signals if each not in {signal.SIGKILL, signal.SIGSTOP})
"""Programs find all signals as usual, also those that whoever started the agent has ignored, as `nohup` does."""


def supervise(connection: socket.socket) -> None:
    """Carry out one order after the other; returns when its agent has none any more, or something went wrong."""
    os.setsid()
    descendants = Descendants()
    _rehearse()
    ready: Ready | None = None
    for line in _lines(connection):
        if line != GO:
            if ready is not None:
                ready.close()
            ready = _get_ready(Order(**json.loads(line)), connection)
        elif ready is not None:
            if not ready.start(connection, descendants):
                return
            ready.close()
            ready = None


class Ready:
    """Everything that a program needs at its start. Raises OSError where it cannot be had."""

    def __init__(self, order: Order) -> None:
        self.me = process(os.getpid())
        self._order = order
        self._log = LogFile(order.log, order.log_limit)
        self._news = News(order.room)
        os.chdir(order.workdir)  # the program's, too
        if order.user is not None:
            from agent.runtimes import other_user  # noqa: PLC0415 - the launcher has loaded it where it is wanted

            other_user.rehearse(_start(order, order.user))

    def start(self, connection: socket.socket, descendants: Descendants) -> bool:
        """Start the program and stay until all is over, or say why that cannot be; whether it went well."""
        try:
            with self._news.record.used(self.me):
                program, outputs = self._spawn()
        except OSError as problem:
            _say(connection, errno=problem.errno, reason=problem.strerror)
            return False
        except ValueError as problem:
            _say(connection, errno=errno.EINVAL, reason=str(problem))
            return False
        it = process(program).facts()
        self._news.record.add(program=it)
        with suppress(OSError):  # the agent may be gone meanwhile
            _say(connection, program=it)
        os.chdir("/")
        os.dup2(0, 2)  # who waits for the end of the agent's output must not wait for ours
        lines = {reader: self._order.splitter(stream) for reader, stream in outputs.items()}
        return Copy(program, descendants, lines, self._log, self._news).run()

    def close(self) -> None:
        """Let go of everything."""
        self._log.close()
        self._news.close()

    def _spawn(self) -> tuple[int, Mapping[int, Stream]]:
        """Start it in a session of its own; its pid, and where what it prints can be read."""
        readers, writers = zip(*(os.pipe() for _ in Stream), strict=True)
        program = self._as_ordered(writers)
        for writer in writers:
            os.close(writer)
        return program, dict(zip(readers, Stream, strict=True))

    def _as_ordered(self, writers: Sequence[int]) -> int:
        """As the user of the order; its pid."""
        order = self._order
        if order.user is not None:
            from agent.runtimes import other_user  # noqa: PLC0415 - as above

            return other_user.spawn(_start(order, order.user), writers, _DEFAULT)
        return os.posix_spawn(
            order.path,
            order.command,
            order.env,
            file_actions=[(os.POSIX_SPAWN_DUP2, writer, number) for number, writer in enumerate(writers, start=1)],
            setsid=True,
            setsigdef=_DEFAULT,
        )


class News:
    """What becomes known of a program: written down in its room, and the agent woken."""

    def __init__(self, room: str) -> None:
        self._bell = Bell(room)
        self.record = RecordFile(room)

    def tell(self, **facts: object) -> None:
        """Write it down. Nobody else knows how a program ended, so a full disk only delays it."""
        while True:
            try:
                self.record.add(**facts)
            except FileNotFoundError:
                break  # the room is gone
            except OSError:
                time.sleep(FULL_DISK_PAUSE)
            else:
                break
        self.ring()

    def ring(self) -> None:
        """There is more in the log."""
        self._bell.ring()

    def close(self) -> None:
        """No more will become known."""
        self.record.close()
        self._bell.close()


class Bell:
    """Rung when there is something new for the agent; that nobody listens does no harm."""

    _BOTH = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC
    """For reading, too: a pipe without a reader could neither be opened nor be written to."""

    def __init__(self, room: str) -> None:
        path = f"{room}/{BELL}"
        try:
            self._pipe = os.open(path, self._BOTH)
        except FileNotFoundError:  # it is there as a rule: rooms are made before they are needed
            os.mkfifo(path, 0o600)
            self._pipe = os.open(path, self._BOTH)

    def ring(self) -> None:
        """Wake the agent. A full pipe will wake it as well."""
        with suppress(BlockingIOError):
            os.write(self._pipe, b".")

    def close(self) -> None:
        """Who listens hears the end."""
        os.close(self._pipe)


class Copy:
    """Writes down what a program prints, and how it ends."""

    def __init__(
        self,
        program: int,
        descendants: Descendants,
        outputs: Mapping[int, LineSplitter | MaskedSplitter],
        log: LogFile,
        news: News,
    ) -> None:
        self._program = program
        self._descendants = descendants
        self._log = log
        self._news = news
        self._grown = False
        """Whether the log has, and nobody was told."""
        self._code: int | None = None
        self._until: float | None = None
        """When to take no more output: some time after the end."""
        self._outputs = dict(outputs)
        self._poll = select.poll()
        for descriptor in (*outputs, descendants.news):
            self._poll.register(descriptor, select.POLLIN)

    def run(self) -> bool:
        """Work until the program has ended and its output, too; whether all of that could be written down."""
        try:
            self._run()
        except Exception as error:  # noqa: BLE001 - the record is the only way to be heard
            self._news.tell(fault=f"{type(error).__name__}: {error}")
            return False
        return True

    def _run(self) -> None:
        while self._outputs or self._code is None:
            self._turn()
        self._log.finish()
        if not self._log.settle():
            self._news.tell(code=self._code)  # which need not wait for what was lost of the output to be said
            while not self._log.settle():
                time.sleep(FULL_DISK_PAUSE)
        self._reap()
        self._news.tell(code=self._code, complete=True, alone=self._descendants.none)

    def _turn(self) -> None:
        """Wait for something to happen."""
        left = None if self._until is None else max(0.0, self._until - time.monotonic()) * 1000
        ready = [descriptor for descriptor, _ in self._poll.poll(left)]
        if not ready:
            self._cut_off()
        for descriptor in ready:
            if descriptor != self._descendants.news:
                self._read(descriptor)
            elif self._reap() and self._outputs:
                self._news.tell(code=self._code)
        if self._grown:
            self._grown = False
            self._news.ring()

    def _read(self, reader: int) -> None:
        data = os.read(reader, CHUNK)
        if data:
            self._append(self._outputs[reader].feed(data, time.time_ns()))
        else:
            self._close(reader)

    def _close(self, reader: int) -> None:
        self._poll.unregister(reader)
        os.close(reader)
        self._append(self._outputs.pop(reader).flush(time.time_ns()))

    def _append(self, records: Sequence[Record]) -> None:
        if records:
            self._log.append_all(records)
            self._grown = True

    def _cut_off(self) -> None:
        """What the program left behind still holds its output, and may do so for ever."""
        for reader in tuple(self._outputs):
            self._close(reader)
        self._log.mark("output after the end is not kept")
        self._grown = True

    def _reap(self) -> bool:
        """Wait for those that have ended; whether the program is one of them."""
        code = self._descendants.ended().get(self._program)
        if code is None:
            return False
        self._code, self._until = code, time.monotonic() + DRAIN_LIMIT
        return True


def _rehearse() -> None:
    """Go once through what is to come: a fork copies memory at the first touch, which costs more than all else here."""
    Order(**json.loads(_REHEARSED))
    process(os.getpid())
    log = LogFile(os.devnull, CHUNK)
    log.append_all(LineSplitter(Stream.STDOUT).feed(b"line\n", time.time_ns()))
    log.close()
    for descriptor in os.pipe():
        os.close(descriptor)


_REHEARSED = Order(room="/", log="/", log_limit=0, command=("",), path="/", env={"": ""}, workdir="/").line()


def _start(order: Order, user: tuple[int, int]) -> "Start":
    from agent.runtimes.other_user import Start  # noqa: PLC0415 - as above

    uid, gid = user
    return Start(path=order.path, command=order.command, env=order.env, workdir=order.workdir, uid=uid, gid=gid)


def _get_ready(order: Order, connection: socket.socket) -> Ready | None:
    try:
        ready = Ready(order)
    except OSError as problem:
        _say(connection, errno=problem.errno, reason=problem.strerror)
        return None
    _say(connection, supervisor=ready.me.facts())
    return ready


def _lines(connection: socket.socket) -> Iterator[bytes]:
    """Whole lines as they come, until the agent closes its end."""
    rest = b""
    while data := connection.recv(CHUNK):
        rest += data
        while b"\n" in rest:
            line, _, rest = rest.partition(b"\n")
            yield line + b"\n"


def _say(connection: socket.socket, **facts: object) -> None:
    connection.sendall(json.dumps(facts).encode() + b"\n")
