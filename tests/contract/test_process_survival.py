"""Plain processes whose agent, launcher or supervisor is killed."""

import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from agent.executions.layout import PROCESS_RECORD, ExecutionDirectory
from agent.runtimes.kernel.pids import Process, process
from agent.runtimes.kernel.subtree import Subtree
from agent.runtimes.process.launcher import Launcher
from agent.runtimes.process.record import UNKNOWN, read_record
from agent.runtimes.process.runtime import ProcessRuntime
from agent.runtimes.process.spares import SpareSupervisors
from muster.domain.gangs.log import Stream, parse_records
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, Exit, FailureKind
from muster.domain.jobs.job import Role
from tests.contract.runtimes import (
    GRACE,
    ProcessPlace,
    directory_for,
    running,
    shell,
    trial,
)
from tests.contract.survivors import adopted, launched, mortal_agent, over, prepared, supervisors

LINES = 20_000
KILLS = 20
SEED = 7

NUMBERS = f"""exec {sys.executable} -c '
import os, time
for number in range({LINES}):
    for stream in (1, 2):
        os.write(stream, b"%d of %d\\n" % (number, stream))
    if number % 100 == 0:
        time.sleep(0.03)
'"""
"""Prints numbered lines on both streams, for some seconds, so that its agents can be killed meanwhile."""


@pytest.fixture
def place(tmp_path: Path) -> ProcessPlace:
    return ProcessPlace(tmp_path)


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A program in a session of its own that no sandbox knows."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        yield process
        process.kill()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    directory = tmp_path / "disk"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", directory], check=True)
    yield directory
    subprocess.run(["umount", directory], check=True)


async def test_no_line_is_lost_or_doubled_however_often_the_agent_is_killed(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    expected = {
        stream: [b"%d of %d" % (number, stream_number) for number in range(LINES)]
        for stream_number, stream in enumerate(Stream, start=1)
    }
    record = len("2026-11-21T08:48:50.123456789Z stdout F ") + len(b"12345 of 1\n")
    whole = 2 * len(Stream) * LINES * record
    programs: tuple[str, ...] = (NUMBERS, NUMBERS)
    for size in sorted(chance.sample(range(int(whole * 0.9)), KILLS)):
        async with mortal_agent(tmp_path, *programs) as agent:
            await agent.start()
            await agent.sees(size)
        programs = ()
    async with adopted(tmp_path) as found:
        assert len(found) == 2
        for it in found:
            assert await it.end() == Exit(code=0)
            assert {stream: it.printed(stream) for stream in Stream} == expected
            assert not any(each.marker for each in parse_records(it.directory.log.read_bytes()))


@pytest.mark.parametrize("ending", ["while it runs", "meanwhile"])
async def test_exit_codes_are_exact_after_the_agent_was_killed(tmp_path: Path, ending: str) -> None:
    go = tmp_path / "go"
    wait = f"echo ready; while [ ! -e {go} ]; do sleep 0.02; done; echo bye"
    ends = {f"{wait}; exit 0": 0, f"{wait}; exit 3": 3, f"{wait}; kill -TERM $$": 143, f"{wait}; kill -SEGV $$": 139}
    async with mortal_agent(tmp_path, *ends) as agent:
        await agent.start()
    if ending == "meanwhile":
        go.touch()
        for each in supervisors(tmp_path):
            await over(each)
    async with adopted(tmp_path) as found:
        assert [it.sandbox.ended for it in found] == [ending == "meanwhile"] * len(ends)
        go.touch()
        assert [(await it.end()).code for it in found] == list(ends.values())
        assert [it.printed() for it in found] == [[b"ready", b"bye"]] * len(ends)
        assert all(it.started for it in found)


async def test_an_adopted_program_is_stopped_with_its_children(tmp_path: Path) -> None:
    stubborn = "(trap '' TERM; while :; do sleep 0.05; done) & echo ready; wait"
    gentle = "trap 'echo saved; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    async with mortal_agent(tmp_path, stubborn, gentle) as agent:
        await agent.start()
    async with adopted(tmp_path) as (first, second):
        await second.says(b"ready")
        await second.sandbox.stop(GRACE)
        assert await second.end() == Exit(code=7)
        assert second.printed() == [b"ready", b"saved"]
        await first.says(b"ready")
        assert len(running(first.sandbox.execution)) >= 2
        await first.sandbox.stop(timedelta(seconds=0.3))
        assert running(first.sandbox.execution) == []
        assert await first.end() == Exit(code=143)


async def test_what_was_only_armed_ends_with_its_agent(tmp_path: Path) -> None:
    async with mortal_agent(tmp_path, "echo ran") as agent:
        await agent.says(b"armed")
        [directory] = (tmp_path / "executions").iterdir()
        bell = os.open(directory / "bell", os.O_RDONLY)
    assert await asyncio.to_thread(os.read, bell, 1) == b""  # its supervisor has ended
    os.close(bell)
    async with adopted(tmp_path) as found:
        assert found == []
    assert (directory / "log.cri").read_bytes() == b""
    assert not (directory / PROCESS_RECORD).exists()


async def test_a_killed_launcher_is_replaced_and_what_it_launched_goes_on(tmp_path: Path) -> None:
    launcher = Launcher()
    runtime = ProcessRuntime(spares=SpareSupervisors(launcher, wanted=0))
    async with prepared(runtime, tmp_path, "echo ready; read line < go; echo $line") as first:
        os.mkfifo(first.directory.work / "go")
        await first.release()
        await first.says(b"ready")
        assert launcher.pid is not None
        os.kill(launcher.pid, signal.SIGKILL)
        async with launched(runtime, tmp_path, "exit 4") as second:
            assert await second.end() == Exit(code=4)
        (first.directory.work / "go").write_text("went on\n")
        assert await first.end() == Exit(code=0)
        assert first.printed() == [b"ready", b"went on"]
    await runtime.close()


async def test_without_its_supervisor_a_program_is_ended_and_nobody_guesses_how(
    place: ProcessPlace, tmp_path: Path
) -> None:
    async with trial(place, tmp_path, Role(command=shell("sleep 1000 & echo ready; wait"))) as it:
        await it.release()
        await it.says(b"ready")
        record = read_record(it.directory.path)
        assert record is not None
        record.supervisor.kill()
        with pytest.raises(
            ExecutionError, match=rf"its supervisor \(process {record.supervisor.pid}\) was killed"
        ) as caught:
            await it.sandbox.exited()
        assert caught.value.kind is FailureKind.RUNTIME
        assert running(it.sandbox.execution) == []
        await it.sandbox.drained()
        assert it.spool.tail(1) == ("[muster] output may be missing: the process that kept it was killed",)
        await it.sandbox.stop(GRACE)


async def test_a_supervisor_that_was_killed_while_no_agent_was_there_is_missed(tmp_path: Path) -> None:
    async with mortal_agent(tmp_path, "echo ready; exec sleep 1000") as agent:
        await agent.start()
        await agent.sees(1)
    [supervisor] = supervisors(tmp_path)
    supervisor.kill()
    await over(supervisor)
    async with adopted(tmp_path) as [it]:
        assert len(running(it.sandbox.execution)) == 1
        with pytest.raises(ExecutionError, match="was killed, so nobody knows how user code ended"):
            await it.sandbox.exited()
        assert running(it.sandbox.execution) == []
        assert it.printed() == [b"ready"]


@pytest.mark.parametrize(("facts", "kind"), [({}, FailureKind.AGENT_RESTARTED), ({"code": 3}, None)])
async def test_after_a_restart_of_the_node_only_what_had_ended_is_known(
    tmp_path: Path, stranger: subprocess.Popen[bytes], facts: dict[str, int], kind: FailureKind | None
) -> None:
    before = replace(process(stranger.pid), boot="an earlier one")
    left_behind(tmp_path, before, before, **facts)
    async with adopted(tmp_path) as [it]:
        if kind is None:
            assert await it.end() == Exit(code=3)
        else:
            with pytest.raises(ExecutionError, match="the node was restarted while user code ran") as caught:
                await it.sandbox.exited()
            assert caught.value.kind is kind
    assert stranger.poll() is None


async def test_processes_that_have_the_numbers_of_old_ones_are_left_alone(
    tmp_path: Path, stranger: subprocess.Popen[bytes]
) -> None:
    older = replace(process(stranger.pid), started=1)
    left_behind(tmp_path, older, older)
    async with adopted(tmp_path) as [it]:
        with pytest.raises(ExecutionError, match="was killed"):
            await it.sandbox.exited()
    assert stranger.poll() is None


def left_behind(directory: Path, supervisor: Process, program: Process, **facts: int) -> None:
    """An execution's directory as a former agent left it."""
    own = directory_for(directory, ExecutionId("left-1-0"))
    lines = [{"supervisor": asdict(supervisor), "program": asdict(program)}, facts]
    (own.path / PROCESS_RECORD).write_text("".join(f"{json.dumps(line)}\n" for line in lines))


@pytest.mark.parametrize("text", ["", '{"supervisor": {"pid": 12', '{"supervisor": 12, "program": 13}\n'])
async def test_a_torn_record_is_nobodys(tmp_path: Path, text: str) -> None:
    directory = directory_for(tmp_path, ExecutionId("torn-1-0"))
    (directory.path / PROCESS_RECORD).write_text(text)
    async with adopted(tmp_path) as found:
        assert found == []


async def test_a_refused_start_leaves_nothing_and_says_nothing(place: ProcessPlace, tmp_path: Path) -> None:
    async with trial(place, tmp_path, Role(command=("true", "x" * 200_000))) as it:
        await it.arm()
        with pytest.raises(ExecutionError, match="Argument list too long"):
            await it.sandbox.start()
        assert (it.spool.size, read_record(it.directory.path)) == (0, None)


async def test_a_supervisor_that_is_killed_while_it_waits_is_missed_at_the_start(tmp_path: Path) -> None:
    runtime = ProcessRuntime()
    async with prepared(runtime, tmp_path, "true") as it:
        await it.arm()
        [supervisor] = ringers(it.directory)
        os.kill(supervisor, signal.SIGKILL)
        with pytest.raises(ExecutionError, match='cannot start "sh": its supervisor was killed'):
            await it.sandbox.start()
    await runtime.close()


async def test_a_supervisor_that_is_killed_before_it_is_needed_is_replaced(tmp_path: Path) -> None:
    runtime = ProcessRuntime()
    async with prepared(runtime, tmp_path, "exit 6") as it:
        await it.arm()
        [supervisor] = ringers(it.directory)
        os.kill(supervisor, signal.SIGKILL)
        await it.arm()
        await it.sandbox.start()
        assert await it.end() == Exit(code=6)
    await runtime.close()


def ringers(directory: ExecutionDirectory) -> list[int]:
    """Processes that hold the bell of a directory."""
    bell = directory.path / "bell"
    children = [child.pid for child in psutil.Process().children(recursive=True)]
    return [pid for pid in children if bell in {path.resolve() for path in Path(f"/proc/{pid}/fd").iterdir()}]


async def test_spare_supervisors_are_there_before_they_are_needed_and_end_with_the_launcher(tmp_path: Path) -> None:
    launcher = Launcher()
    spares = SpareSupervisors(launcher, wanted=3)
    spares.start()
    runtime = ProcessRuntime(spares=spares)
    async with launched(runtime, tmp_path, "exit 2") as it:
        assert await it.end() == Exit(code=2)
    own = psutil.Process(launcher.pid)
    while len(children := own.children()) < 3:  # noqa: ASYNC110 (nobody tells)
        await asyncio.sleep(0)
    await runtime.close()
    for child in children:
        await over(Process(pid=child.pid, started=0, boot=""))
    assert not own.is_running()


@pytest.mark.parametrize("length", [1, 40, 1000, 60_000])
async def test_on_a_full_disk_user_code_runs_to_its_end_and_the_log_says_what_is_missing(
    place: ProcessPlace, small_disk: Path, length: int
) -> None:
    """Lines of every length: some space for the words must be left in the file."""
    lines = 2_000_000 // (length + 40)
    script = f"{sys.executable} -c 'for _ in range({lines}): print({length} * chr(120))'; exit 5"
    async with trial(place, small_disk, Role(command=shell(script))) as it:
        assert await it.run() == Exit(code=5)
        [*kept, last] = parse_records(it.spool.read(0, 1 << 21))
        lost = re.fullmatch(rb"\[muster\] \d+ records \((\d+) bytes\) of output were lost: No space left .*", last.text)
        assert lost
        assert sum(len(record.text) for record in kept) + int(lost[1]) == lines * length


async def test_the_limit_of_a_log_holds_in_the_supervisor_too(tmp_path: Path) -> None:
    runtime = ProcessRuntime()
    async with launched(runtime, tmp_path, "seq 1000", limit=2000) as it:
        assert await it.end() == Exit(code=0)
        assert it.spool.tail(1) == ("[muster] output limit of 2000 bytes reached; the rest is not kept",)
        assert it.spool.size < 2200
    await runtime.close()


async def test_many_start_at_once_and_none_is_left_as_a_zombie(tmp_path: Path) -> None:
    runtime = ProcessRuntime()

    async def run(number: int) -> Exit:
        async with launched(runtime, tmp_path, f"echo {number}; exit {number}") as it:
            return await it.end()

    assert [end.code for end in await asyncio.gather(*map(run, range(64)))] == list(range(64))
    await runtime.close()


async def test_a_program_of_an_earlier_start_of_the_node_has_no_processes(stranger: subprocess.Popen[bytes]) -> None:
    mine = process(stranger.pid)
    rebooted = replace(mine, boot="an earlier one")
    found = [Subtree(supervisor=UNKNOWN, program=each).members() for each in (mine, rebooted)]
    assert found == [(mine,), ()]
