"""The door of an execution with the program that comes to it: every byte and every exit code gets through."""

import asyncio
import hashlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest

from agent.attach.caller import DoorCaller, GangRefusedError
from agent.attach.command import AttachedCommand
from agent.attach.companion import CommandRefusedError, CompanionAwayError
from agent.attach.door import MOST_GANG_COMMANDS, ExecutionDoor
from agent.core.door.packets import (
    CommandWanted,
    GangCommandAsked,
    GangErrorOutput,
    GangExit,
    GangInput,
    GangInputEnd,
    GangOutput,
    GangSignal,
)
from agent.executions.layout import ExecutionDirectory
from agent.runtimes.kernel.subtree import descendants, strike
from muster.domain.ids import ExecutionId
from tests.contract.door_side import ANSWER_LIMIT, TICKET, program

MUCH = 20_000_000
LIMIT = 60.0


class Here:
    """Runs what callers ask for in their own execution."""

    def __init__(self) -> None:
        self.door: ExecutionDoor
        self.begun = asyncio.Semaphore(0)

    async def run(self, execution: ExecutionId, asked: GangCommandAsked, caller: DoorCaller) -> int:
        if asked.target == "nobody":
            raise GangRefusedError(f"nobody is no member of the attempt of {execution}")
        if asked.target == "broken":
            raise ZeroDivisionError
        wanted = CommandWanted(number=0, words=asked.words, env=asked.env, has_input=asked.has_input)
        command = await self.door.companion.run(wanted)
        try:
            await caller.begun()
            self.begun.release()
            return await _carried(command, caller)
        finally:
            command.signal(signal.SIGHUP)
            command.close()


async def _carried(command: AttachedCommand, caller: DoorCaller) -> int:
    feeding = asyncio.create_task(_fed(command, caller))
    try:
        while True:
            match await command.read():
                case GangOutput(data=data):
                    await caller.output(data)
                case GangErrorOutput(data=data):
                    await caller.error_output(data)
                case GangExit(code=code):
                    return code
    finally:
        feeding.cancel()
        with suppress(asyncio.CancelledError):
            await feeding


async def _fed(command: AttachedCommand, caller: DoorCaller) -> None:
    while True:
        match await caller.heard():
            case GangInput(data=data):
                await command.write(data)
            case GangInputEnd():
                command.end_input()
            case GangSignal(number=number):
                command.signal(number)


class Place:
    """A door that is served, with the companion behind it."""

    def __init__(self, directory: ExecutionDirectory) -> None:
        self.directory = directory
        self.here = Here()
        self.door = self.here.door = ExecutionDoor(directory, TICKET, self.here)
        self.companion: subprocess.Popen[bytes] | None = None

    def stay(self) -> None:
        """Start a companion."""
        path = self._named("muster-inside")
        variables = {"PATH": os.defpath, "MUSTER_TICKET": TICKET}
        self.companion = subprocess.Popen((path, "stay", str(self.directory.door)), env=variables)

    async def call(self, *words: str, stdin: int = subprocess.DEVNULL) -> asyncio.subprocess.Process:
        """Start a caller."""
        return await asyncio.create_subprocess_exec(
            self._named("muster-exec"),
            *words,
            env={"MUSTER_DOOR": str(self.directory.door)},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def end(self) -> None:
        """End the companion with all that it started."""
        if self.companion is not None:
            companion = self.companion
            strike(lambda: descendants(companion.pid))
            companion.kill()
            companion.wait()

    def _named(self, name: str) -> str:
        path = self.directory.path / name
        if not path.exists():
            shutil.copy(program(), path)
        return str(path)


def _until_hung_up(told: Path) -> tuple[str, ...]:
    """A command that reads nothing, and writes a line to a pipe when it is hung up; nobody hears its shell any more."""
    return ("sh", "-c", f"exec 2>/dev/null; trap 'echo hung up > {told}; exit' HUP; echo up; while :; do sleep 1; done")


@contextmanager
def endless_input() -> Iterator[int]:
    """A descriptor that gives bytes for ever."""
    with Path("/dev/zero").open("rb") as zeros:
        yield zeros.fileno()


async def _line_of(pipe: Path) -> bytes:
    """The first line that somebody writes to a named pipe."""
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    with os.fdopen(os.open(pipe, os.O_RDWR | os.O_NONBLOCK), "rb") as end:  # both ends, so that it never ends
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), end)
        try:
            return await lines.readline()
        finally:
            transport.close()


@asynccontextmanager
async def served(door: ExecutionDoor) -> AsyncIterator[None]:
    door.open()
    serving = asyncio.create_task(door.serve())
    try:
        yield
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        door.close()


@asynccontextmanager
async def served_alone(directory: Path) -> AsyncIterator[ExecutionDoor]:
    """A door to which no companion comes."""
    own = ExecutionDirectory(directory, ExecutionId("x"))
    own.config.mkdir(parents=True)
    door = ExecutionDoor(own, TICKET)
    async with asyncio.timeout(LIMIT), served(door):
        yield door


async def _printed(door: ExecutionDoor, *words: str) -> bytes:
    """What a command prints in the execution behind a door."""
    command = await door.companion.run(CommandWanted(number=0, words=words))
    printed = b""
    try:
        while isinstance(piece := await command.read(), GangOutput):
            printed += piece.data
        return printed
    finally:
        command.close()


def new_place(root: Path) -> Place:
    """A door with a path longer than that of a socket may be; nobody is there yet."""
    directory = ExecutionDirectory(root, ExecutionId("x" * 100))
    directory.config.mkdir(parents=True)
    return Place(directory)


@asynccontextmanager
async def a_place(root: Path) -> AsyncIterator[Place]:
    place = new_place(root)
    async with asyncio.timeout(LIMIT), served(place.door):
        place.stay()
        try:
            yield place
        finally:
            place.end()


async def test_a_caller_gets_output_error_output_and_exit_code_of_its_command(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place:
        caller = await place.call("1", "sh", "-c", "echo out; echo err >&2; exit 3")
        assert (await caller.communicate(), caller.returncode) == ((b"out\n", b"err\n"), 3)


async def test_much_goes_both_ways_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place:
        sent = os.urandom(1 << 16) * (MUCH >> 16)
        caller = await place.call("1", "cat", stdin=subprocess.PIPE)
        output, _ = await caller.communicate(sent)
        assert (hashlib.sha256(output).digest(), caller.returncode) == (hashlib.sha256(sent).digest(), 0)


async def test_a_caller_that_is_refused_says_why(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place:
        caller = await place.call("nobody", "true")
        _, errors = await caller.communicate()
        assert errors.startswith(b"muster-exec: nobody is no member of the attempt of xxx")
        assert caller.returncode == 255


def test_a_door_that_nobody_came_to_serve_is_let_go(tmp_path: Path) -> None:
    place = new_place(tmp_path)
    place.door.open()
    place.door.close()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
        parent = os.open(place.directory.run, os.O_PATH)
        try:
            with pytest.raises(ConnectionRefusedError):
                stranger.connect(f"/proc/self/fd/{parent}/door")
        finally:
            os.close(parent)


async def test_a_fault_of_the_agent_ends_the_line_that_it_concerns_and_no_other(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place:
        other = await place.call("1", "cat", stdin=subprocess.PIPE)
        await place.here.begun.acquire()
        caller = await place.call("broken", "true")
        await caller.communicate()
        assert caller.returncode == 255
        assert ((await other.communicate(b"on"))[0], other.returncode) == (b"on", 0)


async def test_a_command_hears_that_its_caller_is_gone(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place:
        gone = place.directory.path / "gone"
        os.mkfifo(gone)
        caller = await place.call("1", *_until_hung_up(gone))
        assert caller.stdout is not None
        assert await caller.stdout.readline() == b"up\n"
        caller.kill()
        await caller.communicate()
        assert await _line_of(gone) == b"hung up\n"


async def test_a_caller_that_is_gone_is_noticed_while_its_input_is_held_back(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place:
        gone = place.directory.path / "gone"
        os.mkfifo(gone)
        with endless_input() as zeros:
            caller = await place.call("1", *_until_hung_up(gone), stdin=zeros)
        assert caller.stdout is not None
        assert await caller.stdout.readline() == b"up\n"
        caller.kill()
        await caller.communicate()
        assert await _line_of(gone) == b"hung up\n"


async def test_one_command_too_many_is_refused_and_the_others_go_on(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place:
        callers = [await place.call("1", "cat", stdin=subprocess.PIPE) for _ in range(MOST_GANG_COMMANDS)]
        for _ in callers:
            await place.here.begun.acquire()
        one_more = await place.call("1", "true")
        _, errors = await one_more.communicate()
        assert errors == b"muster-exec: 64 commands of this execution run already\n"
        ends = [await each.communicate(b"on") for each in callers]
        assert {(output, caller.returncode) for (output, _), caller in zip(ends, callers, strict=True)} == {(b"on", 0)}


async def test_a_companion_that_was_killed_is_followed_by_another(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place:
        first = await place.door.companion.run(CommandWanted(number=0, words=("true",)))
        assert await first.read() == GangExit(code=0)
        first.close()
        place.end()
        place.stay()
        second = await place.door.companion.run(CommandWanted(number=0, words=("sh", "-c", "exit 4")))
        assert await second.read() == GangExit(code=4)
        second.close()


async def test_a_companion_that_comes_beside_another_waits_for_its_turn(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place:
        first = await place.door.companion.run(CommandWanted(number=0, words=("cat",), has_input=True))
        one, place.companion = place.companion, None
        place.stay()
        beside = await place.call("1", "true")  # whose line comes after that of the second companion, or close to it
        assert (await beside.wait(), await beside.communicate()) == (0, (b"", b""))
        await first.write(b"on")
        assert await first.read() == GangOutput(data=b"on"), "the first one goes on"
        assert one is not None
        strike(lambda: descendants(one.pid))
        one.kill()
        one.wait()
        assert await first.read() == GangExit(code=255)
        first.close()
        second = await place.door.companion.run(CommandWanted(number=0, words=("sh", "-c", "echo $PPID")))
        assert place.companion is not None
        assert await second.read() == GangOutput(data=b"%d\n" % place.companion.pid)
        second.close()


async def test_nobody_waits_for_a_companion_after_the_end(tmp_path: Path) -> None:
    async with served_alone(tmp_path) as door:
        waiting = asyncio.create_task(door.companion.run(CommandWanted(number=0, words=("true",))))
        await asyncio.sleep(0)
        door.companion.end()
        with pytest.raises(CompanionAwayError, match="the execution has ended"):
            await waiting
        assert not await door.companion.comes()


async def test_the_companion_comes_to_the_next_agent(tmp_path: Path) -> None:
    place = new_place(tmp_path)
    try:
        async with asyncio.timeout(LIMIT):
            async with served(place.door):
                place.stay()
                assert await _printed(place.door, "echo", "once") == b"once\n"
            later = ExecutionDoor(place.directory, TICKET, place.here)
            async with served(later):
                assert await _printed(later, "echo", "again") == b"again\n"
    finally:
        place.end()


@pytest.mark.parametrize(("word", "code"), [("no-such-program", 127), ("/etc/passwd", 126)])
async def test_a_program_that_cannot_run_is_told_as_a_shell_does(tmp_path: Path, word: str, code: int) -> None:
    async with a_place(tmp_path) as place:
        with pytest.raises(CommandRefusedError, match=word) as refused:
            await place.door.companion.run(CommandWanted(number=0, words=(word,)))
        assert refused.value.code == code


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"z", b"begins with byte 122"),
        (b"H", b"asks for nothing"),
        (b"S\x01\0\0\0\x01x", b"not of this execution"),
        (b"S\x09\0\0\0\x01x", b"version 9 of the door is not known"),
    ],
)
async def test_whoever_is_not_understood_is_told_so_and_nobody_else_hears_of_it(
    tmp_path: Path, raw: bytes, reason: bytes
) -> None:
    async with a_place(tmp_path) as place:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
            parent = os.open(place.directory.run, os.O_PATH)
            stranger.connect(f"/proc/self/fd/{parent}/door")
            os.close(parent)
            stranger.send(raw)
            stranger.setblocking(False)
            assert reason in await asyncio.get_running_loop().sock_recv(stranger, 4096)
        caller = await place.call("1", "true")
        assert await caller.wait() == 0
        await caller.communicate()


async def test_a_line_that_comes_when_the_door_closes_is_closed(tmp_path: Path) -> None:
    """Python warns of a socket that nobody closes, and a warning is an error here."""
    directory = ExecutionDirectory(tmp_path, ExecutionId("x"))
    directory.config.mkdir(parents=True)
    place = Place(directory)
    place.door.open()
    serving = asyncio.create_task(place.door.serve())
    await asyncio.sleep(0)  # it waits for somebody
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as late:
        late.settimeout(ANSWER_LIMIT)
        late.connect(str(place.directory.door))
        for _ in range(2):
            await asyncio.sleep(0)  # the loop has seen the line, and the door is about to be told
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        with suppress(ConnectionResetError):
            assert late.recv(1) == b""
