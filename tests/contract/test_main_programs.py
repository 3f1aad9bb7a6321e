"""Main programs that people talk to, in every runtime: log, exit codes and signals as ever, and a hand inside."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent.attach.kept.attachment import KeptAttachment
from agent.attach.kept.main_program import MainProgramAwayError
from agent.attach.programs import bring_companion
from agent.core.door.names import TICKET_VARIABLE
from agent.core.door.packets import CommandWanted, GangExit
from agent.logs.spool import LogSpool
from agent.loop.doors import ExecutionDoors, with_door
from agent.loop.live_execution import LiveExecution
from agent.loop.workbench import OngoingWork
from muster.domain.attachments.request import TerminalSize
from muster.domain.gangs.log import Stream
from muster.domain.jobs.failure import ExecutionError, Exit, FailureKind
from muster.domain.jobs.interactive import MainProgramStreams
from muster.domain.jobs.job import Role, RuntimeKind
from tests.contract.companion_place import Reader
from tests.contract.lone_loop import NoGangCommands
from tests.contract.runtime_places import PLACES, place_of
from tests.contract.runtimes import (
    Place,
    Trial,
    assignment_for,
    directory_for,
    ignored,
    launch_for,
    running,
    shell,
)

LIMIT = 60.0
GRACE = timedelta(seconds=20)
STDIN, TTY = MainProgramStreams.STDIN, MainProgramStreams.TTY
SIZE = TerminalSize(rows=30, columns=100)


BOTH = pytest.mark.parametrize("streams", list(MainProgramStreams))


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request, tmp_path)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Where other users get to as well; pytest's own is closed to them."""
    with TemporaryDirectory(dir="/var/tmp", prefix="muster-test-") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)


class Attended(Trial):
    """An execution whose main program people talk to, with the doors of its agent."""

    live: LiveExecution
    doors: ExecutionDoors
    _agents: AsyncExitStack

    async def next_agent(self) -> None:
        """Have another agent in place of the one before, which finds what that left."""
        await self.agent_ends()
        self._agents = AsyncExitStack()
        await self._agents.enter_async_context(self._agent())

    async def agent_ends(self) -> None:
        """Have no agent."""
        if hasattr(self, "_agents"):
            await self._agents.aclose()

    @asynccontextmanager
    async def _agent(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            work = OngoingWork(tasks)
            self.live.door = None
            self.doors = ExecutionDoors(NoGangCommands(), work, {self.sandbox.execution: self.live})
            await self.doors.open_again(self.live)
            try:
                yield
            finally:
                work.end()
                work.stop_watching(self.sandbox.execution)

    async def attach(self, size: TerminalSize | None = None) -> KeptAttachment:
        self.live.started = True
        return await (await self.doors.main_program(self.sandbox.execution)).attach(size, LIMIT)


@asynccontextmanager
async def attended(
    place: Place, directory: Path, streams: MainProgramStreams, script: str, **env: str
) -> AsyncIterator[Attended]:
    """An execution that is prepared, with its door; at the end nothing of it may be left."""
    async with asyncio.timeout(LIMIT), place.runtime() as runtime:
        role = Role(command=shell(script), image=place.image, env=env)
        assignment = replace(assignment_for(role), main_program=streams)
        own = directory_for(directory, assignment.execution)
        with closing(LogSpool(own.log)) as spool:
            sandbox = await runtime.prepare(assignment, own, spool, (), ignored)
            it = Attended(sandbox, spool, own, launch_for(assignment))
            it.live = LiveExecution(RuntimeKind.PROCESS, own, spool, sandbox)
            try:
                await it.next_agent()
                await it.doors.open(it.live, assignment)
                bring_companion(own)
                it.launch = with_door(it.launch, it.live.door, streams)
                yield it
            finally:
                await it.agent_ends()
                await sandbox.remove()
        assert running(assignment.execution) == []
        assert await place.left(assignment.execution) == []


@BOTH
async def test_exit_codes_and_output_are_those_of_the_program(
    place: Place, tmp_path: Path, streams: MainProgramStreams
) -> None:
    async with attended(place, tmp_path, streams, "echo one; printf two; exit 7") as it:
        assert await it.run() == Exit(code=7)
        assert it.printed() == [b"one", b"two"]


@BOTH
async def test_a_signal_that_ends_the_program_is_its_exit_code(
    place: Place, tmp_path: Path, streams: MainProgramStreams
) -> None:
    async with attended(place, tmp_path, streams, "kill -9 $$") as it:
        assert await it.run() == Exit(code=137)


@BOTH
async def test_a_stop_reaches_the_program_once_and_its_own_exit_code_is_told(
    place: Place, tmp_path: Path, streams: MainProgramStreams
) -> None:
    script = "trap 'n=$((n + 1))' TERM; n=0; echo up; while [ $n = 0 ]; do sleep 0.1; done; sleep 0.3; exit 4$n"
    async with attended(place, tmp_path, streams, script) as it:
        await it.release()
        await it.says(b"up")
        await it.sandbox.stop(GRACE)
        assert await it.end() == Exit(code=41)


@BOTH
async def test_all_of_much_output_is_in_the_log(place: Place, tmp_path: Path, streams: MainProgramStreams) -> None:
    async with attended(place, tmp_path, streams, "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i + 1)); done") as it:
        assert await it.run() == Exit(code=0)
        assert it.printed() == [str(number).encode() for number in range(20_000)]


async def test_a_program_that_reads_a_pipe_prints_errors_apart_and_has_no_terminal(
    place: Place, tmp_path: Path
) -> None:
    async with attended(place, tmp_path, STDIN, "echo oops >&2; test -t 0 || echo pipe; test -t 1 || echo pipe") as it:
        assert await it.run() == Exit(code=0)
        assert (it.printed(), it.printed(Stream.STDERR)) == ([b"pipe", b"pipe"], [b"oops"])


async def test_a_program_reads_what_is_sent_and_then_the_end(place: Place, tmp_path: Path) -> None:
    async with attended(place, tmp_path, STDIN, "while read line; do echo got $line; done; echo end; exit 3") as it:
        await it.release()
        first = await it.attach()
        await first.write(b"one\n")
        await it.says(b"got one")
        first.close()  # which ends nothing
        second = await it.attach()
        await second.write(b"two\n")
        second.end_input()
        assert await Reader(second).end() == 3
        assert await it.end() == Exit(code=3)
        assert it.printed() == [b"got one", b"got two", b"end"]


async def test_much_input_comes_whole_and_waits_for_its_reader(place: Place, tmp_path: Path) -> None:
    async with attended(place, tmp_path, STDIN, "sleep 0.2; wc -c") as it:
        await it.release()
        hand = await it.attach()
        await hand.write(b"x" * 3_000_000)
        hand.end_input()
        assert await it.end() == Exit(code=0)
        assert [line.strip() for line in it.printed()] == [b"3000000"]


async def test_input_that_has_ended_cannot_be_taken_up(place: Place, tmp_path: Path) -> None:
    async with attended(place, tmp_path, STDIN, "cat; echo read; while :; do sleep 1000; done") as it:
        await it.release()
        (await it.attach()).end_input()
        await it.says(b"read")
        with pytest.raises(MainProgramAwayError, match="has ended already"):
            await it.attach()
        await it.next_agent()
        with pytest.raises(MainProgramAwayError, match="has ended already"):
            await it.attach()


async def test_a_terminal_shows_what_is_printed_and_takes_what_is_typed(place: Place, tmp_path: Path) -> None:
    script = "stty -echo; tty; printf 'name? '; read name; echo hello $name; stty size; read _; exit 5"
    async with attended(place, tmp_path, TTY, script) as it:
        await it.release()
        hand = await it.attach(SIZE)
        shown = Reader(hand)
        assert b"/dev/pts/" in await shown.until(b"name? ")
        await hand.write(b"ann\n")
        await shown.until(b"hello ann\r\n30 100\r\n")
        await hand.write(b"\n")
        assert await shown.end() == 5
        assert await it.end() == Exit(code=5)
        tty, *rest = it.printed()
        assert tty.startswith(b"/dev/pts/")
        assert rest == [b"name? hello ann", b"30 100"]


async def test_keys_that_mean_signals_reach_the_program(place: Place, tmp_path: Path) -> None:
    async with attended(
        place, tmp_path, TTY, "trap 'echo caught; exit 9' INT; echo up; while :; do sleep 1; done"
    ) as it:
        await it.release()
        await it.says(b"up")
        hand = await it.attach(SIZE)
        await hand.write(b"\x03")
        assert await Reader(hand).end() == 9
        assert await it.end() == Exit(code=9)
        assert it.printed()[-1].endswith(b"caught")


@BOTH
async def test_a_signal_that_is_sent_reaches_the_program(
    place: Place, tmp_path: Path, streams: MainProgramStreams
) -> None:
    script = "trap 'echo caught; exit 9' USR1; echo up; while :; do sleep 0.1; done"
    async with attended(place, tmp_path, streams, script) as it:
        await it.release()
        await it.says(b"up")
        (await it.attach()).signal(10)
        assert await it.end() == Exit(code=9)


async def test_nobody_has_to_read_a_terminal(place: Place, tmp_path: Path) -> None:
    async with attended(
        place, tmp_path, TTY, "head -c 3000000 /dev/zero | tr '\\0' x | fold -w 100; echo; echo done"
    ) as it:
        await it.release()
        hand = await it.attach(SIZE)  # which reads nothing
        assert await it.end() == Exit(code=0)
        assert await Reader(hand).end() == 0
        lines = it.printed()
        assert (len(b"".join(lines[:-1])), lines[-1]) == (3_000_000, b"done")


@BOTH
async def test_it_goes_on_without_an_agent_and_the_next_one_attaches(
    place: Place, tmp_path: Path, streams: MainProgramStreams
) -> None:
    script = "stty -echo 2> /dev/null; while read line; do echo got $line; done"
    async with attended(place, tmp_path, streams, script) as it:
        await it.release()
        hand = await it.attach()
        await hand.write(b"one\n")
        await it.says(b"got one")
        await it.next_agent()
        again = await it.attach()
        await again.write(b"two\n")
        await it.says(b"got two")
        await again.write(b"\x04")
        again.end_input()
        assert await it.end() == Exit(code=0)


@BOTH
async def test_the_program_finds_no_ticket_and_a_terminal_has_a_kind(
    place: Place, tmp_path: Path, streams: MainProgramStreams
) -> None:
    async with attended(
        place, tmp_path, streams, "env; echo up; while :; do sleep 1000; done", GREETING="good day"
    ) as it:
        await it.release()
        await it.says(b"up")
        told = {line.partition(b"=")[0]: line.partition(b"=")[2] for line in it.printed()}
        assert TICKET_VARIABLE.encode() not in told
        assert told[b"GREETING"] == b"good day"
        assert (b"TERM" in told) == (streams is TTY)


@BOTH
async def test_commands_of_a_companion_run_beside_it(place: Place, tmp_path: Path, streams: MainProgramStreams) -> None:
    async with attended(place, tmp_path, streams, "echo up; while :; do sleep 1000; done") as it:
        await it.release()
        await it.says(b"up")
        it.live.started = True
        companion = await it.doors.companion(it.sandbox.execution)
        command = await companion.run(CommandWanted(number=0, words=shell("exit 6")))
        assert await command.read() == GangExit(code=6)
        command.close()


async def test_a_program_that_is_not_there_is_missed_before_the_start(place: Place, tmp_path: Path) -> None:
    async with attended(place, tmp_path, TTY, "") as it:
        it.launch = replace(it.launch, role=Role(command=("nosuch",), image=place.image))
        with pytest.raises(ExecutionError) as caught:
            await it.arm()
        assert caught.value.kind is FailureKind.COMMAND_NOT_FOUND
