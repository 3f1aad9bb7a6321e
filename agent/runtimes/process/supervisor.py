"""What stays with a program from its start to its end, whatever becomes of the agent.

A supervisor is a fork of the launcher. It has a connection to the agent, over which it gets an order, gets everything
ready, and waits; as soon as it is told to go, it starts the program and says so. From then on it needs nobody: it
writes what the program prints into the log, and how it ended into the record. Whoever listens at the bell, a named
pipe in the execution's directory, hears that there is something new, and by its closing that the supervisor is gone.
When all is over and its agent still there, it waits for the next order: it has all the memory that a fork would have
to make first.
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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent.core.door.names import TICKET_VARIABLE
from agent.logs.file import LogFile
from agent.logs.outputs import Outputs
from agent.runtimes.kernel.confinement import Confinement
from agent.runtimes.kernel.descendants import Descendants
from agent.runtimes.kernel.leftovers import ProgramLeftovers, below_me
from agent.runtimes.kernel.pids import process
from agent.runtimes.kernel.subtree import strike
from agent.runtimes.process.attaching.answering import CompanionStart, ProgramCompanions
from agent.runtimes.process.news import NEWS_PAUSE, News
from agent.runtimes.process.order import GO, GROUPS_LINE, ProgramOrder, groups_in
from muster.domain.gangs.log import LineSplitter, LogRecord, Stream

if TYPE_CHECKING:
    from agent.runtimes.process.other_user import UserStart

PIPE_BYTES = 64 * 1024
"""Bytes read at once, as many as a pipe holds."""

DRAIN_LIMIT = 2.0
"""Seconds for which processes that the program left behind may go on while they have its output open."""

FAILED_DRAIN_LIMIT = 0.1
"""The same after a program that failed: the other ranks of its gang run on until the end is told."""

MUTE_LIMIT = 0.05
"""Seconds in which they may end by themselves once they have closed the output, as the kernel does before their end."""

LINGERING_PAUSE = 1.0
"""Seconds until processes that hang in the kernel are looked for again."""

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
    confinement = Confinement(())
    for line in _lines(connection):
        if line.startswith(GROUPS_LINE):
            confinement = confinement.moved(groups_in(line))
            with suppress(OSError):  # the order says the same, and why it cannot be is told then
                confinement.enter()
        elif line != GO:
            if ready is not None:
                ready.close()
            order = ProgramOrder(**json.loads(line))
            confinement = confinement.moved(order.groups)
            ready = _get_ready(order, confinement, connection)
        elif ready is not None:
            if not ready.start(connection, descendants):
                return
            ready.close()
            ready = None


class Ready:
    """Everything that a program needs at its start. Raises OSError where it cannot be had."""

    def __init__(self, order: ProgramOrder, confinement: Confinement) -> None:
        self.me = process(os.getpid())
        self._order = order
        self._log = LogFile(order.log, order.log_limit)
        self._news = News(order.directory)
        self._confinement = confinement
        os.chdir(order.workdir)  # the program's, too
        if order.user is not None:
            from agent.runtimes.process import other_user  # noqa: PLC0415 - the launcher has loaded it where it is wanted

            other_user.rehearse(_start(order, order.user))
        self._confinement.enter()

    def start(self, connection: socket.socket, descendants: Descendants) -> bool:
        """Start the program and stay until all is over, or say why that cannot be; whether it went well."""
        order = self._order
        try:
            with self._news.record.used(self.me, order.alone_as, [group for group, _ in order.groups]):
                program, outputs, writers = self._spawn()
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
        companions = ProgramCompanions(order.directory, self._called, self._beside(writers))
        for writer in writers:
            os.close(writer)
        self._confinement.outlive()
        os.chdir("/")
        os.dup2(0, 2)  # who waits for the end of the agent's output must not wait for ours
        lines = Outputs({reader: order.splitter(stream) for reader, stream in outputs.items()})
        started = StartedProgram(pid=program, outputs=lines, companions=companions)
        return Copy(started, descendants, self._log, self._news, self._confinement).run()

    def close(self) -> None:
        """Let go of everything but the cgroups, which the next program may get."""
        self._confinement.rest()
        self._log.close()
        self._news.close()

    def _spawn(self) -> tuple[int, Mapping[int, Stream], Sequence[int]]:
        """Start it in a session of its own; its pid, where what it prints can be read, and where it prints to."""
        readers, writers = zip(*(os.pipe() for _ in Stream), strict=True)
        return self._as_ordered(self._with_parent(), writers), dict(zip(readers, Stream, strict=True)), writers

    def _with_parent(self) -> ProgramOrder:
        """The order with the parent in front of the program, if it is to have one."""
        order = self._order
        if not order.parent:
            return order
        command, env = (*order.parent, order.path, *order.command), {**order.env, TICKET_VARIABLE: order.ticket}
        return replace(order, command=command, path=order.parent[0], env=env)

    def _beside(self, writers: Sequence[int]) -> int:
        """Start the companion that is ordered, which prints where the program does; its pid, 0 where there is none."""
        order = self._order
        if not order.companion:
            return 0
        try:
            return self._companion(CompanionStart(command=order.companion, ticket=order.ticket), order.workdir, writers)
        except (OSError, ValueError) as problem:
            self._log.mark(f"commands from elsewhere in the gang cannot run here: {problem}")
            return 0

    def _called(self, start: CompanionStart) -> int:
        """Start a companion while the program runs, which finds what that found. Raises OSError, ValueError."""
        workdir = self._order.workdir if os.path.isdir(self._order.workdir) else "/"  # noqa: PTH112 - cheaper
        self._confinement.enter()
        try:
            os.chdir(workdir)
            return self._companion(start, workdir, (0, 0))
        finally:
            os.chdir("/")
            self._confinement.outlive()

    def _companion(self, start: CompanionStart, workdir: str, writers: Sequence[int]) -> int:
        order, command = self._order, start.command
        env = {**order.env, TICKET_VARIABLE: start.ticket}
        return self._as_ordered(replace(order, command=command, path=command[0], env=env, workdir=workdir), writers)

    def _as_ordered(self, order: ProgramOrder, writers: Sequence[int]) -> int:
        """Start the program of an order as its user; returns its pid."""
        if order.user is not None:
            from agent.runtimes.process import other_user  # noqa: PLC0415 - as above

            return other_user.spawn(_start(order, order.user), writers, _DEFAULT)
        return os.posix_spawn(
            order.path,
            order.command,
            order.env,
            file_actions=[(os.POSIX_SPAWN_DUP2, writer, number) for number, writer in enumerate(writers, start=1)],
            setsid=True,
            setsigdef=_DEFAULT,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedProgram:
    """A program that runs."""

    pid: int
    outputs: Outputs
    """Where it can be read what the program prints."""
    companions: ProgramCompanions


class Copy:
    """Writes down what a program prints, and how it ends."""

    def __init__(
        self, started: StartedProgram, descendants: Descendants, log: LogFile, news: News, confinement: Confinement
    ) -> None:
        outputs = started.outputs
        self._program = started.pid
        self._companions = started.companions
        self._descendants = descendants
        self._log = log
        self._news = news
        self._confinement = confinement
        self._grown = False
        """Whether the log has, and nobody was told."""
        self._code: int | None = None
        self._leftovers = ProgramLeftovers(news.grace)
        self._told = False
        """Whether the end of the program, and of all that it left behind, is in the record."""
        self._outputs = outputs
        self._poll = select.poll()
        for descriptor in (*outputs.readers, descendants.news):
            self._poll.register(descriptor, select.POLLIN)

    def run(self) -> bool:
        """Work until the program has ended and its output, too; whether all of that could be written down."""
        try:
            self._run()
        except Exception as error:  # noqa: BLE001 - the record is the only way to be heard
            self._news.tell(fault=f"{type(error).__name__}: {error}")
            self._linger()
            return False
        if self._leftovers.hanging:
            self._linger()
            self._news.tell(alone=True)
        return not self._leftovers.hanging

    def _run(self) -> None:
        while self._outputs or not self._over:
            self._turn()
        for words in self._leftovers.told():
            self._log.mark(words)
        self._log.finish()
        if not self._log.settle():
            # The end need not wait for what was lost of the output to be said.
            self._news.tell(code=self._code, out_of_memory=self._is_out_of_memory)
            while not self._log.settle():
                time.sleep(NEWS_PAUSE)
        ended = {"code": self._code, "out_of_memory": self._is_out_of_memory}
        self._news.tell(**ended, complete=True, alone=not self._leftovers.hanging)

    @property
    def _is_out_of_memory(self) -> bool:
        return self._confinement.out_of_memory()

    @property
    def _over(self) -> bool:
        """Whether the program has ended, and all that it started; what hangs in the kernel runs no code of anybody."""
        return self._code is not None and (self._descendants.none or bool(self._leftovers.hanging))

    def _turn(self) -> None:
        """Wait for something to happen."""
        pauses = (self._leftovers.pause, self._outputs.pause(time.monotonic()))
        for descriptor, _ in self._poll.poll(min((each for each in pauses if each is not None), default=None)):
            if descriptor != self._descendants.news:
                self._read(descriptor)
            else:
                self._reap()
        self._append(self._outputs.pieces(time.time_ns(), time.monotonic()))
        if self._code is not None and self._is_mute:
            self._leftovers.wait(MUTE_LIMIT)
        if self._leftovers.due and self._over:
            self._cut_off()
        elif self._leftovers.due:
            self._leftovers.kill()
        if self._over and self._outputs and not self._told:
            self._told = True
            self._news.tell(code=self._code, out_of_memory=self._is_out_of_memory)
        if self._grown:
            self._grown = False
            self._news.ring()

    @property
    def _is_mute(self) -> bool:
        """Whether nothing can be printed any more, so that what is left need not be waited for."""
        return not self._outputs and self._leftovers.untouched and not self._over

    def _linger(self) -> None:
        """Stay as long as anything is left: whose supervisor is gone is hard to find."""
        self._reap()
        while not self._descendants.none:
            strike(below_me)
            select.select((self._descendants.news,), (), (), LINGERING_PAUSE)
            self._reap()

    def _read(self, reader: int) -> None:
        data = os.read(reader, PIPE_BYTES)
        if data:
            self._append(self._outputs.feed(reader, data, time.time_ns(), time.monotonic()))
        else:
            self._close(reader)

    def _close(self, reader: int) -> None:
        self._poll.unregister(reader)
        os.close(reader)
        self._append(self._outputs.close(reader, time.time_ns()))

    def _append(self, records: Sequence[LogRecord]) -> None:
        if records:
            self._log.append_all(records)
            self._grown = True

    def _cut_off(self) -> None:
        """Somebody else has its output in the hand, and may have it for ever."""
        for reader in self._outputs.readers:
            self._close(reader)
        self._log.mark("output after the end is not kept")
        self._grown = True

    def _reap(self) -> None:
        """Wait for those that have ended."""
        ended = self._descendants.ended()
        self._companions.ended(ended)
        code = ended.get(self._program)
        if code is not None:
            self._code = code
            self._companions.end()
            self._leftovers.wait(DRAIN_LIMIT if code == 0 else FAILED_DRAIN_LIMIT)
        if self._descendants.called:
            self._companions.answer(runs=self._code is None)


def _rehearse() -> None:
    """Go once through what is to come: a fork copies memory at the first touch, which costs more than all else here."""
    ProgramOrder(**json.loads(_REHEARSED))
    process(os.getpid())
    confinement = Confinement(())
    confinement.enter()
    confinement.leave()
    log = LogFile(os.devnull, PIPE_BYTES)
    log.append_all(LineSplitter(Stream.STDOUT).feed(b"line\n", time.time_ns()))
    log.close()
    for descriptor in os.pipe():
        os.close(descriptor)


_REHEARSED = ProgramOrder(
    directory="/", log="/", log_limit=0, command=("",), path="/", env={"": ""}, workdir="/"
).line()


def _start(order: ProgramOrder, user: tuple[int, int]) -> "UserStart":
    from agent.runtimes.process.other_user import UserStart  # noqa: PLC0415 - as above

    uid, gid = user
    return UserStart(path=order.path, command=order.command, env=order.env, workdir=order.workdir, uid=uid, gid=gid)


def _get_ready(order: ProgramOrder, confinement: Confinement, connection: socket.socket) -> Ready | None:
    try:
        ready = Ready(order, confinement)
    except OSError as problem:
        _say(connection, errno=problem.errno, reason=problem.strerror)
        return None
    _say(connection, supervisor=ready.me.facts())
    return ready


def _lines(connection: socket.socket) -> Iterator[bytes]:
    """Whole lines as they come, until the agent closes its end."""
    rest = b""
    while data := connection.recv(PIPE_BYTES):
        rest += data
        while b"\n" in rest:
            line, _, rest = rest.partition(b"\n")
            yield line + b"\n"


def _say(connection: socket.socket, **facts: object) -> None:
    connection.sendall(json.dumps(facts).encode() + b"\n")
