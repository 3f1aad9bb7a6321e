"""Ends of plain processes: nothing that an execution has started runs once its end is told, or once it is fenced."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent.core.deadlines import ExecutionDeadline
from agent.executions.layout import PROCESS_RECORD
from agent.fencing.kill import kill
from agent.runtimes.kernel.pids import stat
from agent.runtimes.kernel.rights import may_switch
from agent.runtimes.process.record import ProcessRecord, read_record
from muster.domain.jobs.failure import ExecutionError, Exit, FailureKind
from muster.domain.jobs.job import Role
from tests.contract.runtimes import ProcessPlace, ProcessPlaceOfOthers, Trial, trial
from tests.contract.survivors import adopted, mortal_agent, over
from tests.contract.torchrun_like import BOMB

PROGRAM = Path(__file__).with_name("torchrun_like.py")

AT_ONCE = timedelta(seconds=0.3)
"""Grace for programs that do not take it anyway."""

EVERYTHING = ("worker", "worker", "deaf", "daemon", "nameless")
"""What a supervisor ends however it got away."""

TRACEABLE = ("worker", "worker", "deaf", "daemon")
"""What can be told from others also when the supervisor was killed."""

SHORTEST = len("2026-11-21T08:48:50.123456789Z stdout F ") + len("123")
"""Bytes that a line of them takes in the log at least."""

needs_other_users = pytest.mark.skipif(not may_switch(), reason="only an agent with root's rights may switch users")


@pytest.fixture(params=[ProcessPlace, pytest.param(ProcessPlaceOfOthers, marks=needs_other_users)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> ProcessPlace:
    made: ProcessPlace = request.param(tmp_path)
    return made


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory that other users get to as well; pytest's own is closed to them."""
    with TemporaryDirectory(dir="/var/tmp", prefix="muster-test-") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)


def script(*kinds: str) -> tuple[str, ...]:
    return ("/usr/bin/env", "python3", "-c", PROGRAM.read_text(), *kinds)


@asynccontextmanager
async def started(place: ProcessPlace, directory: Path, *kinds: str, processes: int = 0) -> AsyncIterator[Trial]:
    """An execution that has started all of these; so many processes where it is not one for each."""
    async with trial(place, directory, Role(command=script(*kinds))) as it:
        await it.release()
        await said(it, (processes or len(kinds)) + 1)
        yield it


async def said(it: Trial, lines: int) -> None:
    """Wait until it has printed so many lines."""
    while len(it.printed()) < lines:
        it.spool.grew.clear()
        await it.spool.grew.wait()


def numbers(it: Trial) -> list[int]:
    """The processes that it started, as they named themselves."""
    return [int(line) for line in it.printed() if line != b"ready"]


def alive(pids: list[int]) -> list[int]:
    found = ((pid, stat(pid)) for pid in pids)
    return [pid for pid, known in found if known is not None and known.runs]


def record_of(it: Trial) -> ProcessRecord:
    record = read_record(it.directory.path)
    assert record is not None
    return record


async def test_workers_in_sessions_of_their_own_are_dead_when_the_end_is_told(
    place: ProcessPlace, tmp_path: Path
) -> None:
    """Whoever hears of the end may begin the next attempt at once."""
    async with started(place, tmp_path, *EVERYTHING) as it:
        assert alive(numbers(it)) == numbers(it)
        program = record_of(it).program
        assert program is not None
        program.kill()
        assert await it.sandbox.exited() == Exit(code=137)
        assert alive(numbers(it)) == []
        await it.sandbox.drained()
        assert it.sandbox.vacant
        assert it.spool.tail(1) == ("[muster] killed 5 processes that the program had left running",)


async def test_after_a_stop_nothing_runs_that_did_not_listen(place: ProcessPlace, tmp_path: Path) -> None:
    async with started(place, tmp_path, *EVERYTHING) as it:
        await it.sandbox.stop(AT_ONCE)
        assert alive(numbers(it)) == []
        assert await it.end() == Exit(code=143)


async def test_a_worker_in_a_session_of_its_own_may_use_the_grace_of_a_stop(
    place: ProcessPlace, tmp_path: Path
) -> None:
    """The grace is longer than what is left to processes that outlive a program that ends by itself."""
    save = "trap 'sleep 2.5; echo saved; exit' TERM; echo ready; while :; do sleep 0.05; done"
    role = Role(command=("sh", "-c", f"setsid sh -c '{save.replace(chr(39), chr(34))}' & wait"))
    async with trial(place, tmp_path, role) as it:
        await it.release()
        await it.says(b"ready")
        await it.sandbox.stop(timedelta(seconds=20))
        assert await it.end() == Exit(code=143)
        assert it.printed() == [b"ready", b"saved"]


async def test_removing_leaves_nothing_of_what_forks_and_forks(place: ProcessPlace, tmp_path: Path) -> None:
    async with started(place, tmp_path, "bomb", processes=BOMB // 2) as it:
        await it.sandbox.remove()
        assert alive(numbers(it)) == []


async def test_without_its_supervisor_nothing_goes_on(place: ProcessPlace, tmp_path: Path) -> None:
    async with started(place, tmp_path, *TRACEABLE) as it:
        record_of(it).supervisor.kill()
        with pytest.raises(ExecutionError, match="was killed, so nobody knows how user code ended"):
            await it.sandbox.exited()
        assert alive(numbers(it)) == []


@pytest.mark.parametrize("supervised", [True, False])
async def test_the_killer_ends_all_of_it(place: ProcessPlace, tmp_path: Path, *, supervised: bool) -> None:
    async with started(place, tmp_path, *(EVERYTHING if supervised else TRACEABLE)) as it:
        if not supervised:
            record_of(it).supervisor.kill()
            await over(record_of(it).supervisor)
        late = ExecutionDeadline(execution=it.sandbox.execution, dead_by=0.0, directory=str(it.directory.path))
        marks: list[str] = []
        while not kill(late, lambda: marks.append("fenced")):  # noqa: ASYNC110 (as killers do)
            await asyncio.sleep(0)
        assert marks
        while alive(numbers(it)):  # noqa: ASYNC110 - one that is dying has no memory any more by which it is known
            await asyncio.sleep(0)


async def test_a_program_that_ended_while_no_agent_was_there_has_left_nothing(tmp_path: Path) -> None:
    command = f"exec {sys.executable} {PROGRAM} {' '.join(EVERYTHING)}"
    async with mortal_agent(tmp_path, command) as agent:
        await agent.start()
        await agent.sees(SHORTEST * (len(EVERYTHING) + 1))
    async with adopted(tmp_path) as [it]:
        program = record_of(it).program
        assert program is not None
        program.kill()
        assert await it.end() == Exit(code=137)
        assert alive(numbers(it)) == []


@pytest.mark.parametrize("content", [b"\0" * 200, b'{"supervisor": {"pid": 12', b"{}\n", b"[[[" * 100_000])
async def test_what_runs_although_its_record_is_damaged_is_ended(tmp_path: Path, content: bytes) -> None:
    async with mortal_agent(tmp_path, f"exec {sys.executable} {PROGRAM} {' '.join(TRACEABLE)}") as agent:
        await agent.start()
        await agent.sees(SHORTEST * (len(TRACEABLE) + 1))
    [record] = (tmp_path / "executions").glob(f"*/{PROCESS_RECORD}")
    whole = record.read_bytes()
    record.write_bytes(content)
    async with adopted(tmp_path) as [it]:
        with pytest.raises(ExecutionError, match=r"record \(process.json\) on the node is damaged") as caught:
            await it.sandbox.exited()
        assert caught.value.kind is FailureKind.RUNTIME
        assert alive(numbers(it)) == []
        [kept] = (tmp_path / "damaged").iterdir()
        assert (kept.name, kept.read_bytes()) == (f"{it.sandbox.execution}-{PROCESS_RECORD}", content)
        record.write_bytes(whole)  # whose supervisor has to be gone at the end


async def test_a_killer_ends_what_runs_although_its_record_is_damaged(tmp_path: Path) -> None:
    async with started(ProcessPlace(tmp_path), tmp_path, *TRACEABLE) as it:
        whole = (it.directory.path / PROCESS_RECORD).read_bytes()
        (it.directory.path / PROCESS_RECORD).write_bytes(b"\0" * 99)
        late = ExecutionDeadline(execution=it.sandbox.execution, dead_by=0.0, directory=str(it.directory.path))
        while not kill(late, lambda: None):  # noqa: ASYNC110 (as killers do)
            await asyncio.sleep(0)
        assert alive(numbers(it)) == []
        (it.directory.path / PROCESS_RECORD).write_bytes(whole)


async def test_whoever_started_others_hears_of_a_stop_before_them(place: ProcessPlace, tmp_path: Path) -> None:
    """Otherwise the shell could find its children ended, and end well, before the signal comes to it as well."""
    pair = "sleep 60 & sleep 60 &"
    text = f"trap 'exit 9' TERM; sh -c 'trap \"exit 8\" TERM; {pair} echo inner; wait' & {pair} echo outer; wait"
    async with trial(place, tmp_path, Role(command=("/bin/sh", "-c", text))) as it:
        await it.release()
        await said(it, 2)
        order = [each.pid for each in record_of(it).subtree(it.sandbox.execution).members()]
        parents = {pid: found.parent for pid in order if (found := stat(pid)) is not None}
        assert len(order) == 6
        assert all(order.index(parent) < order.index(pid) for pid, parent in parents.items() if parent in parents)
