"""Steps: one program with parts in several executions of a gang, over real doors, companions and TLS."""

import asyncio
import signal
import subprocess
from contextlib import closing
from pathlib import Path

from agent.core.door.packets import GangCommandAsked, GangSignal, Targets
from tests.integration.gang_nodes import HeldCaller, NamedPipe, three


async def test_the_parts_of_a_step_print_as_they_are_and_the_first_reads_the_input(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        words = ("muster-exec", "--step", "--all", "sh", "-c", "wc -c; printf part")
        caller = await nodes["a"].call(*words, stdin=subprocess.PIPE)
        output, _ = await caller.communicate(b"12345")
        assert caller.returncode == 0
        text = output.decode()
        assert (text.count("part"), sorted(text.replace("part", "").split())) == (3, ["0", "0", "5"])


async def test_the_first_part_of_a_step_that_fails_ends_the_others_and_gives_its_code(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        with closing(NamedPipe(tmp_path / "up")) as up:
            step = GangCommandAsked(
                targets=Targets.RANKS,
                target="0-2",
                words=(f"mkdir {tmp_path}/taken 2>&- && read -r word < {up.path} && exit 7; echo up; exec sleep 600",),
                step=True,
            )
            held = HeldCaller()
            running = asyncio.create_task(nodes["a"].ask(held, step))
            await held.until_printed(b"up\nup\n")
            await asyncio.to_thread(up.path.write_text, "fail\n")
            assert await running == 7


async def test_a_signal_reaches_all_parts_of_a_step(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        held = HeldCaller()
        line = "trap 'echo caught; exit 0' USR1; echo ready; while :; do sleep 0.05; done"
        step = GangCommandAsked(targets=Targets.ALL, target="", words=(line,), step=True)
        running = asyncio.create_task(nodes["a"].ask(held, step))
        await held.until_printed(b"ready\nready\nready\n")
        held.says.put_nowait(GangSignal(number=signal.SIGUSR1))
        assert await running == 0
        assert held.printed.count(b"caught\n") == 3
