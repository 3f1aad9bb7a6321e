"""The killer kills real processes that are overdue, whatever became of the agent, and goes when it is not needed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.core.deadlines import ExecutionDeadline, Notes, written
from agent.executions.layout import PROCESS_RECORD
from agent.fencing.deadlines import read_notes, why_fenced, write_notes
from agent.fencing.guard import FenceGuard, FenceSite
from agent.fencing.killer import Killer
from agent.runtimes.kernel.pids import boot_id, process
from muster.domain.ids import NodeId
from tests.contract.killers import AGENT, LIMIT, ONCE_IT_IS_GONE, ROOT, SOON, gone, killers, now


def write_record(directory: Path, facts: dict[str, object]) -> None:
    lines = (json.dumps({who: facts}) + "\n" for who in ("supervisor", "program"))
    (directory / PROCESS_RECORD).write_text("".join(lines))


@contextmanager
def running(directory: Path, *command: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A program in a session of its own, with a record as a supervisor leaves it."""
    directory.mkdir(parents=True)
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE) as program:
        it = process(program.pid)
        facts: dict[str, object] = {"pid": it.pid, "started": it.started, "boot": it.boot}
        (directory / PROCESS_RECORD).write_text(
            f"{json.dumps({'supervisor': facts})}\n{json.dumps({'program': facts})}\n"
        )
        try:
            yield program
        finally:
            program.kill()


def notes_of(directory: Path, dead_by: float, agent: str = "a") -> Notes:
    return Notes(
        boot=boot_id(),
        agent=agent,
        deadlines=(ExecutionDeadline(execution="j-1-0", dead_by=dead_by, directory=str(directory)),),
    )


@pytest.fixture
def killer(tmp_path: Path) -> Iterator[Killer]:
    killer = Killer()
    killer.start()
    try:
        yield killer
    finally:
        for state in (tmp_path, tmp_path / "a", tmp_path / "b"):
            killer.tell(state, Notes(boot=boot_id(), agent=killer.name))
        left = killers(killer.name)
        killer.close()
        for pid in left:
            gone(pid)


def test_what_is_overdue_dies_at_its_deadline_and_not_before(tmp_path: Path, killer: Killer) -> None:
    with running(tmp_path / "execution", "sleep", "1000") as program:
        dead_by = now() + SOON
        killer.tell(tmp_path, notes_of(tmp_path / "execution", dead_by, killer.name))
        assert program.wait(LIMIT) == -signal.SIGKILL
        assert now() >= dead_by
    assert why_fenced(tmp_path / "execution").startswith("killed by muster-killer")


def test_all_of_its_session_dies(tmp_path: Path, killer: Killer) -> None:
    script = "sleep 1000 & echo $!; wait"
    with running(tmp_path / "execution", "sh", "-c", script) as program:
        assert program.stdout is not None
        child = int(program.stdout.readline())
        killer.tell(tmp_path, notes_of(tmp_path / "execution", now(), killer.name))
        assert program.wait(LIMIT) == -signal.SIGKILL
        gone(child)


def test_a_deadline_that_is_put_off_spares_it(tmp_path: Path, killer: Killer) -> None:
    with (
        running(tmp_path / "execution", "sleep", "1000") as program,
        running(tmp_path / "other", "sleep", "1000") as other,
    ):
        soon = now() + SOON
        killer.tell(tmp_path / "a", notes_of(tmp_path / "execution", soon, killer.name))
        killer.tell(tmp_path / "a", notes_of(tmp_path / "execution", now() + 1000, killer.name))
        killer.tell(tmp_path / "b", notes_of(tmp_path / "other", soon + 0.1, killer.name))
        assert other.wait(LIMIT) == -signal.SIGKILL
        assert program.poll() is None


def test_it_outlives_its_agent_and_ends_when_nothing_is_left(tmp_path: Path) -> None:
    with running(tmp_path / "execution", "sleep", "1000") as program:
        notes = notes_of(tmp_path / "execution", now() + ONCE_IT_IS_GONE, "a")
        agent = AGENT.format(root=str(ROOT), state=str(tmp_path))
        killed = subprocess.run(
            [sys.executable, "-I", "-S", "-c", agent], input=written(notes), check=False, timeout=LIMIT
        )
        assert killed.returncode == -signal.SIGKILL
        assert program.wait(LIMIT) == -signal.SIGKILL


def test_with_the_agent_gone_a_disk_that_hangs_saves_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "deadlines.json")  # whoever reads it waits for ever
    with running(tmp_path / "execution", "sleep", "1000") as program:
        agent = AGENT.format(root=str(ROOT), state=str(tmp_path))
        notes = notes_of(tmp_path / "execution", now() + ONCE_IT_IS_GONE, "a")
        subprocess.run([sys.executable, "-I", "-S", "-c", agent], input=written(notes), check=False, timeout=LIMIT)
        assert program.wait(LIMIT) == -signal.SIGKILL


def test_a_process_that_only_has_the_number_is_left_alone(tmp_path: Path, killer: Killer) -> None:
    with (
        running(tmp_path / "other", "sleep", "1000") as other,
        running(tmp_path / "execution", "sleep", "1000") as program,
    ):
        it = process(program.pid)
        facts: dict[str, object] = {"pid": it.pid, "started": it.started - 1, "boot": it.boot}
        write_record(tmp_path / "execution", facts)
        late = now()
        killer.tell(tmp_path / "a", notes_of(tmp_path / "execution", late, killer.name))
        killer.tell(tmp_path / "b", notes_of(tmp_path / "other", late + 0.1, killer.name))
        assert other.wait(LIMIT) == -signal.SIGKILL
        assert program.poll() is None
        assert why_fenced(tmp_path / "execution") == ""


def test_one_that_was_killed_is_replaced_and_knows_everything(tmp_path: Path, killer: Killer) -> None:
    with running(tmp_path / "execution", "sleep", "1000") as program:
        killer.tell(tmp_path / "a", notes_of(tmp_path / "execution", now() + 5 * SOON, killer.name))
        [pid] = killers(killer.name)
        os.kill(pid, signal.SIGKILL)
        gone(pid)
        killer.tell(tmp_path / "b", Notes(boot=boot_id(), agent=killer.name))
        assert program.wait(LIMIT) == -signal.SIGKILL


def test_a_killer_whose_agent_is_gone_leaves_what_another_agent_has_taken_over(tmp_path: Path) -> None:
    first = Killer()
    with running(tmp_path / "execution", "sleep", "1000") as program:
        first.tell(tmp_path, notes_of(tmp_path / "execution", now() + 5 * SOON, first.name))
        [pid] = killers(first.name)
        write_notes(tmp_path, notes_of(tmp_path / "execution", now() + 1000, "another"))
        first.close()
        gone(pid)
        assert program.poll() is None


async def test_where_nothing_is_left_the_next_agent_takes_the_deadlines_back(tmp_path: Path) -> None:
    """Else the killer of the agent before would wait for them."""
    write_notes(tmp_path, notes_of(tmp_path / "executions" / "j-1-0", now() + 1000, "before"))
    guard = FenceGuard(
        FenceSite(node=NodeId("a"), state=tmp_path, executions=tmp_path / "executions", outputs=tmp_path / "outputs")
    )
    await guard.begin({})
    left = read_notes(tmp_path)
    assert left is not None
    assert (left.deadlines, left.agent == "before") == ((), False)


def test_an_agent_that_ends_with_nothing_noted_takes_its_killer_along(tmp_path: Path, killer: Killer) -> None:
    killer.tell(tmp_path, Notes(boot=boot_id(), agent=killer.name))
    [pid] = killers(killer.name)
    killer.close()
    gone(pid)


def test_notes_replace_those_of_before(tmp_path: Path) -> None:
    for dead_by in (1.0, 2.0):
        write_notes(tmp_path, notes_of(tmp_path / "execution", dead_by))
    assert read_notes(tmp_path) == notes_of(tmp_path / "execution", 2.0)
    assert [path.name for path in tmp_path.iterdir()] == ["deadlines.json"]


def test_notes_of_any_length_replace_each_other(tmp_path: Path) -> None:
    few, many = (
        Notes(
            boot="b", agent="a", deadlines=(ExecutionDeadline(execution="j-1-0", dead_by=1.0, directory="/r"),) * number
        )
        for number in (1, 500)
    )
    for notes in (few, many, few, Notes(boot="b", agent="a"), many):
        write_notes(tmp_path, notes)
        assert read_notes(tmp_path) == notes
        assert (tmp_path / "deadlines.json").read_bytes() == written(notes)


def test_notes_that_change_are_written_into_the_same_file(tmp_path: Path) -> None:
    """Making a file and freeing one again takes some file systems a hundred times as long."""
    write_notes(tmp_path, notes_of(tmp_path / "execution", 1.0))
    before = (tmp_path / "deadlines.json").stat().st_ino
    with (tmp_path / "deadlines.json").open("rb"):
        write_notes(tmp_path, notes_of(tmp_path / "execution", 2.0))
        assert (tmp_path / "deadlines.json").stat().st_ino == before


async def test_several_nodes_of_one_program_share_a_killer(tmp_path: Path, killer: Killer) -> None:
    nothing = Notes(boot=boot_id(), agent=killer.name)
    await asyncio.gather(*(asyncio.to_thread(killer.tell, tmp_path / str(number), nothing) for number in range(5)))
    assert len(killers(killer.name)) == 1
