"""Kept shells as the agent has them: read when nobody is attached, shown again, and handed to the next agent."""

import asyncio
import signal
from pathlib import Path

import pytest

from agent.attach.kept.attachment import TakenOverError
from agent.attach.kept.shells import TooManyKeptError
from agent.core.door.kept_output import KEPT_OUTPUT
from agent.core.door.packets import CommandWanted, GangExit
from muster.domain.attachments.frame import MOST_KEPT_SHELLS, KeptShell
from tests.contract.companion_place import Reader, a_place

MUCH = 4_000_000


def wanted(name: str = "work", *words: str, rows: int = 24, columns: int = 80) -> CommandWanted:
    """A shell by its name, with a prompt that is known."""
    return CommandWanted(
        number=0,
        words=words or ("sh",),
        env=("PS1=$ ",),
        terminal=True,
        kept_name=name,
        rows=rows,
        columns=columns,
    )


async def test_a_shell_goes_on_when_nobody_is_attached_and_shows_again_what_it_showed(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        first = await companion.kept.attach(wanted())
        shown = Reader(first)
        await shown.until(b"$ ")
        await first.write(b"word=kept; echo $((1 + 1)) of them\n")
        await shown.until(b"2 of them\r\n")
        first.close()
        second = await companion.kept.attach(wanted())
        assert second.pid == first.pid
        shown = Reader(second)
        await shown.until(b"2 of them\r\n")
        await second.write(b"echo $word; exit 3\n")
        await shown.until(b"kept\r\n")
        assert await shown.end() == 3
        second.close()
        assert companion.kept.listed() == ()


async def test_nobody_has_to_read_for_a_shell_to_go_on(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        loud = f"head -c {MUCH} /dev/zero | tr '\\0' x | fold -w 100; echo; echo end of it; exec cat"
        first = await companion.kept.attach(wanted("loud", "sh", "-c", loud))
        first.close()
        ended = await companion.run(CommandWanted(number=0, words=("sh", "-c", _until_cat(first.pid))))
        assert await ended.read() == GangExit(code=0)
        ended.close()
        second = await companion.kept.attach(wanted("loud"))
        shown = await Reader(second).until(b"end of it\r\n")
        assert len(shown) <= KEPT_OUTPUT
        assert shown.startswith(b"x" * 100 + b"\r\n")
        second.close()


def _until_cat(pid: int) -> str:
    """A line that waits until a process has become `cat`."""
    return f"until grep -q cat /proc/{pid}/comm; do :; done"


async def test_whoever_comes_later_takes_over(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        first = await companion.kept.attach(wanted())
        await Reader(first).until(b"$ ")
        reading = asyncio.create_task(first.read())
        await asyncio.sleep(0)
        second = await companion.kept.attach(wanted())
        with pytest.raises(TakenOverError):
            await reading
        await first.write(b"exit 9\n")  # which nobody hears any more
        first.resize(1, 1)
        first.signal(signal.SIGKILL)
        first.close()
        assert companion.kept.listed() == (KeptShell(name="work", pid=second.pid, attached=True),)
        await second.write(b"exit 4\n")
        assert await Reader(second).end() == 4
        second.close()


async def test_a_slow_reader_holds_the_shell_back_and_lets_it_go_on_when_it_leaves(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        shell = await companion.kept.attach(wanted("loud", "sh", "-c", "yes | head -c 9000000; exec cat"))
        await shell.read()
        shell.close()
        ended = await companion.run(CommandWanted(number=0, words=("sh", "-c", _until_cat(shell.pid))))
        assert await ended.read() == GangExit(code=0)
        ended.close()


async def test_what_fills_the_screen_hears_of_the_size_of_whoever_comes(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        draws = "trap 'stty size' WINCH; echo up; while :; do sleep 100 & wait; done"
        first = await companion.kept.attach(wanted("screen", "sh", "-c", draws, rows=30, columns=90))
        await Reader(first).until(b"up\r\n")
        first.close()
        for rows, columns in ((40, 120), (40, 120)):
            again = await companion.kept.attach(wanted("screen", rows=rows, columns=columns))
            shown = Reader(again)
            await shown.until(b"up\r\n")
            await shown.until(b"%d %d\r\n" % (rows, columns))
            again.close()
        again = await companion.kept.attach(wanted("screen", rows=40, columns=120))
        shown = Reader(again)
        again.resize(11, 22)
        await shown.until(b"11 22\r\n")
        again.close()


async def test_an_execution_has_no_more_kept_shells_than_it_may(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        for number in range(MOST_KEPT_SHELLS):
            (await companion.kept.attach(wanted(f"s{number}"))).close()
        with pytest.raises(TooManyKeptError, match=r"8 shells are kept in the execution already: s0, s1, .*; end one"):
            await companion.kept.attach(wanted("another"))
        assert await companion.kept.end("s3")
        assert not await companion.kept.end("s3")
        (await companion.kept.attach(wanted("another"))).close()
        assert [each.name for each in companion.kept.listed()] == ["another", *(f"s{n}" for n in range(8) if n != 3)]


async def test_a_shell_that_is_ended_hangs_up_and_whoever_is_attached_hears_it(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        shell = await companion.kept.attach(wanted())
        await Reader(shell).until(b"$ ")
        ending = asyncio.create_task(companion.kept.end("work"))
        assert await Reader(shell).end() == 128 + signal.SIGHUP
        assert await ending
        shell.close()


async def test_a_shell_goes_to_the_next_agent_and_is_the_same(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place:
        async with place.agent() as companion:
            shell = await companion.kept.attach(wanted())
            shown = Reader(shell)
            await shown.until(b"$ ")
            await shell.write(b"word=kept\n")
            await shown.until(b"$ ")
            pid = shell.pid
            shell.close()
        async with place.agent() as companion:
            again = await companion.kept.attach(wanted())
            assert companion.kept.listed() == (KeptShell(name="work", pid=pid, attached=True),)
            await again.write(b"echo $word to $$; exit 5\n")
            shown = Reader(again)
            await shown.until(b"kept to %d\r\n" % pid)
            assert await shown.end() == 5
            again.close()


async def test_shells_are_lost_with_their_companion(tmp_path: Path) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        shell = await companion.kept.attach(wanted())
        await Reader(shell).until(b"$ ")
        place.end()
        assert await Reader(shell).end() == 255
        shell.close()
        assert companion.kept.listed() == ()


async def test_a_shell_that_comes_back_to_the_same_agent_is_the_same_and_what_it_showed_is_there(
    tmp_path: Path,
) -> None:
    async with a_place(tmp_path) as place, place.agent() as companion:
        shell = await companion.kept.attach(wanted())
        shown = Reader(shell)
        await shown.until(b"$ ")
        await shell.write(b"word=kept; echo $((1 + 1)) of them\n")
        await shown.until(b"2 of them\r\n")
        # A descriptor of the terminal such as the companion would hand over on a new line of its own.
        command = await companion.run(CommandWanted(number=0, words=("sh",), env=("PS1=$ ",), terminal=True))
        companion.kept.returned("work", command)
        assert await Reader(shell).end() == 255
        shell.close()
        again = await companion.kept.attach(wanted())
        assert again.pid == command.pid
        shown = Reader(again)
        await shown.until(b"2 of them\r\n")
        await again.write(b"exit 6\n")
        assert await shown.end() == 6
        again.close()
