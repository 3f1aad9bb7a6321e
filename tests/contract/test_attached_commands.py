"""Commands and files of an execution as the agent has them from its companion."""

import asyncio
import hashlib
import os
import struct
from errno import ENOTDIR
from pathlib import Path

import pytest

from agent.attach.companion import NOT_RUN, CommandRefusedError, Companion
from agent.core.door.packets import LARGEST_DATA, CommandWanted, GangErrorOutput, GangExit, GangOutput
from muster.domain.attachments.frame import LARGEST_CHANNEL_DATA
from tests.contract.companion_place import Reader, a_place

MUCH = 30_000_000
INIT = struct.pack(">IBI", 5, 1, 3)


@pytest.mark.parametrize("largest", [LARGEST_DATA, LARGEST_CHANNEL_DATA])
async def test_much_goes_there_and_comes_back_in_pieces_that_are_not_too_large(tmp_path: Path, largest: int) -> None:
    sent = os.urandom(1 << 16) * (MUCH >> 16)
    async with a_place(tmp_path) as place, place.agent() as companion:
        command = await companion.run(CommandWanted(number=0, words=("cat",), has_input=True), largest)

        async def give() -> None:
            await command.write(sent)
            command.end_input()

        giving = asyncio.create_task(give())
        got, sizes = hashlib.sha256(), set()
        while isinstance(piece := await command.read(), GangOutput):
            got.update(piece.data)
            sizes.add(len(piece.data))
        await giving
        command.close()
        assert (piece, got.digest()) == (GangExit(code=0), hashlib.sha256(sent).digest())
        assert max(sizes) <= largest


async def test_much_of_a_terminal_comes_in_large_pieces(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        words = ("sh", "-c", f"stty raw; head -c {MUCH} /dev/zero")
        command = await companion.run(CommandWanted(number=0, words=words, terminal=True), LARGEST_CHANNEL_DATA)
        size = 0
        while isinstance(piece := await command.read(), GangOutput):
            assert len(piece.data) <= LARGEST_CHANNEL_DATA
            size += len(piece.data)
        command.close()
        assert (piece, size) == (GangExit(code=0), MUCH)


async def test_both_streams_of_a_command_are_read_to_their_ends(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        script = f"head -c {MUCH} /dev/zero & head -c {MUCH} /dev/zero >&2; wait"
        command = await companion.run(CommandWanted(number=0, words=("sh", "-c", script)), LARGEST_CHANNEL_DATA)
        sizes = {GangOutput: 0, GangErrorOutput: 0}
        while not isinstance(piece := await command.read(), GangExit):
            sizes[type(piece)] += len(piece.data)
        command.close()
        assert sizes == {GangOutput: MUCH, GangErrorOutput: MUCH}


async def test_a_read_that_is_given_up_loses_nothing(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        command = await companion.run(CommandWanted(number=0, words=("cat",), has_input=True))
        for _ in range(3):
            reading = asyncio.create_task(command.read())
            await asyncio.sleep(0)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        await command.write(b"all of it")
        assert await command.read() == GangOutput(data=b"all of it")
        command.end_input()
        assert await command.read() == GangExit(code=0)
        command.close()


async def test_others_have_their_turn_while_much_is_read(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        command = await companion.run(CommandWanted(number=0, words=("cat", "/dev/zero")), LARGEST_CHANNEL_DATA)
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(others())
        size = 0
        while size < MUCH:
            piece = await command.read()
            assert isinstance(piece, GangOutput)
            size += len(piece.data)
        beside.cancel()
        command.signal(9)
        while not isinstance(await command.read(), GangExit):
            pass
        command.close()
        assert turns >= MUCH >> 21


async def test_a_terminal_gets_another_size_while_its_program_runs(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        script = "trap 'stty size' WINCH; stty size; while :; do sleep 100 & wait; done"
        words = ("sh", "-c", script)
        command = await companion.run(CommandWanted(number=0, words=words, terminal=True, rows=30, columns=100))
        shown = Reader(command)
        await shown.until(b"30 100\r\n")
        command.resize(40, 132)
        await shown.until(b"40 132\r\n")
        command.signal(1)
        assert await shown.end() == 129
        command.close()
        command.resize(1, 1)  # which nobody hears any more


async def test_a_command_without_a_terminal_has_no_size(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        command = await companion.run(CommandWanted(number=0, words=("true",)))
        command.resize(40, 132)
        assert await command.read() == GangExit(code=0)
        command.close()


async def test_a_shell_that_waits_for_more_ends_with_its_caller_and_what_it_left_running_goes_on(
    tmp_path: Path,
) -> None:
    left = tmp_path / "left"
    os.mkfifo(left)
    async with a_place(tmp_path) as place, place.agent() as companion:
        command = await companion.run(CommandWanted(number=0, words=("sh",), has_input=True))
        await command.write(f"(read line <{left}; echo $line >{left}) >{tmp_path}/log 2>&1 &\necho begun\n".encode())
        assert await command.read() == GangOutput(data=b"begun\n")
        command.hang_up()
        assert await command.read() == GangExit(code=0)
        async with asyncio.timeout(10):
            await asyncio.to_thread(left.write_text, "goes on\n")
            assert await asyncio.to_thread(left.read_text) == "goes on\n"


@pytest.mark.parametrize("terminal", [False, True])
async def test_a_command_that_does_not_mind_hears_sighup_when_its_caller_goes(
    tmp_path: Path, *, terminal: bool
) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        words = ("sh", "-c", "echo begun; exec sleep 1000")
        command = await companion.run(CommandWanted(number=0, words=words, has_input=True, terminal=terminal))
        assert isinstance(await command.read(), GangOutput)
        command.hang_up()
        assert await command.read() == GangExit(code=129)


async def test_a_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        for workdir, text in (
            ("/nowhere", "/nowhere: no such directory in the execution"),
            ("/etc/passwd", f"/etc/passwd: {os.strerror(ENOTDIR)}"),
        ):
            with pytest.raises(CommandRefusedError, match=f"^{text}$") as refused:
                await companion.run(CommandWanted(number=0, words=("true",), workdir=workdir))
            assert refused.value.code == NOT_RUN


async def test_files_are_served_until_nobody_asks_any_more(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with a_place(tmp_path) as place, place.agent() as companion:
        lines = [await companion.files() for _ in range(3)]
        for each in lines:
            await loop.sock_sendall(each, INIT)
        for each in lines:
            assert (await loop.sock_recv(each, 65536))[4:9] == b"\2\0\0\0\3"
        counting = f"cat /proc/{place.pid}/task/*/children | wc -w"
        assert await _printed(companion, counting) == b"4\n", "three servers, and the command that counts"
        for each in lines:
            each.close()
        ended = f"until [ $(cat /proc/{place.pid}/task/*/children | wc -w) = 1 ]; do :; done; echo ended"
        assert await _printed(companion, ended) == b"ended\n"


async def test_files_are_those_of_the_execution_with_nothing_else_open(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with a_place(tmp_path) as place, place.agent() as companion:
        (place.directory.path / "here").symlink_to("there")
        shell = await companion.kept.attach(CommandWanted(number=0, words=("cat",), terminal=True, kept_name="beside"))
        with await companion.files() as line:
            await loop.sock_sendall(line, INIT)
            await loop.sock_recv(line, 65536)
            await loop.sock_sendall(line, struct.pack(">IBII", 13, 19, 7, 4) + b"here")
            assert (await loop.sock_recv(line, 65536))[13:22] == struct.pack(">I", 5) + b"there"
            ask = f"for each in $(cat /proc/{place.pid}/task/*/children); do readlink /proc/$each/fd/*; done"
            opened = await _printed(companion, ask)
        assert b"ptmx" not in opened
        assert b"/door" not in opened
        shell.close()


async def _printed(companion: Companion, line: str) -> bytes:
    """What a line of a shell prints in the execution."""
    command = await companion.run(CommandWanted(number=0, words=("sh", "-c", line)))
    printed = b""
    while not isinstance(piece := await command.read(), GangExit):
        printed += piece.data
    command.close()
    return printed
