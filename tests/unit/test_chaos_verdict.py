"""The verdict of chaos on jobs: it sees what went on after the end, and what a killed process explains."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from muster.domain.ids import ExecutionId, JobId, NodeId
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.view import AttemptView, ExecutionView, JobView
from tests.e2e.chaos.verdict import KILLED, Job

ENDED = datetime(2026, 11, 21, tzinfo=UTC)
BOOTED_AT = ENDED.timestamp() - 100.0
"""So the job ended at 100.0 by the clock of the stamps."""
RANK = ExecutionId("j-1-0")


def job(tmp_path: Path, stamps: list[str], *, state: State = State.STOPPED, struck: bool = False) -> Job:
    """A job of one worker with these stamps, which has ended."""
    path = tmp_path / "stamps"
    path.write_text("".join(f"{stamp}\n" for stamp in stamps))
    exit_ = Exit(code=KILLED)
    failure = Failure(kind=FailureKind.SIGNAL, message="was killed", rank=0, exit=exit_)
    execution = ExecutionView(
        id=RANK,
        rank=0,
        role="worker",
        state=state,
        node=NodeId("a"),
        failure=failure if state is State.FAILED else None,
        log_complete=True,
    )
    failed = state is State.FAILED
    attempt = AttemptView(number=1, executions=(execution,), released_at=ENDED, failure=failure if failed else None)
    view = JobView(
        id=JobId("j"),
        spec=JobSpec(name="job", roles=(Role(),)),
        phase=JobPhase.FAILED if failed else JobPhase.STOPPED,
        summary="",
        submitted_at=ENDED,
        ended_at=ENDED,
        attempts=(attempt,),
        failure=failure if failed else None,
    )
    return Job(
        view=view,
        stamps=path,
        stopped_at_attempt=0 if failed else 1,
        lines={1: ()},
        spells=(),
        struck={RANK} if struck else (),
        booted_at=BOOTED_AT,
    )


def test_a_worker_that_goes_on_after_the_end_is_found(tmp_path: Path) -> None:
    stamps = ["1 0 start 0 90.00", "1 0 beat 1 99.90", "1 0 beat 1 101.50"]
    [wrong] = job(tmp_path, stamps).wrongs()
    assert "went on for 1.50 s after its end (1 stamps" in wrong


@pytest.mark.parametrize(("state", "last"), [(State.STOPPED, 100.0), (State.LOST, 101.5)])
def test_what_ended_in_time_or_is_lost_is_in_order(tmp_path: Path, state: State, last: float) -> None:
    assert list(job(tmp_path, ["1 0 start 0 90.00", f"1 0 beat 1 {last:.2f}"], state=state).wrongs()) == []


def test_a_worker_that_outlives_its_attempt_is_found(tmp_path: Path) -> None:
    stamps = ["1 0 start 0 90.00", "2 0 start 0 95.00", "1 0 beat 1 95.10"]
    assert "rank 0 of attempt 1 went on when attempt 2 had begun (1 stamps)" in "".join(job(tmp_path, stamps).wrongs())


@pytest.mark.parametrize(("struck", "wrongs"), [(True, 0), (False, 1)])
def test_only_who_was_killed_may_end_by_sigkill(tmp_path: Path, struck: bool, wrongs: int) -> None:
    found = list(job(tmp_path, ["1 0 start 0 90.00"], state=State.FAILED, struck=struck).wrongs())
    assert len([wrong for wrong in found if "its own last word" in wrong]) == wrongs
