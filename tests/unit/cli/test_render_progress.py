"""How a job that prepares looks."""

from muster.cli.output.job_sentences import changes
from muster.cli.output.progress import progress
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.view import ExecutionView, JobView
from tests.unit.cli import values
from tests.unit.cli.values import at, attempt, execution, shown

PULLING = execution(1, State.PREPARING, detail="pulling image 41 %")


def preparing(*executions: ExecutionView) -> JobView:
    return values.job(JobPhase.PREPARING, attempt(*executions))


def test_a_queued_job_shows_what_it_waits_for() -> None:
    queued = values.job(JobPhase.QUEUED, summary="waits for 2 GPUs")

    assert shown(progress(queued, at(3))).splitlines() == ["ring (j7k2) queued  3.0 s", "  waits for 2 GPUs"]


def test_a_preparing_job_shows_the_slowest_first_and_counts_who_is_there() -> None:
    job = preparing(execution(0, State.CHECKED_IN), PULLING)

    assert shown(progress(job, at(3))).splitlines() == [
        "ring (j7k2) preparing  3.0 s  checked in 1/2",
        "  RANK  NODE  STATE       DOING",
        "  1     b     preparing   pulling image 41 %",
        "  0     a     checked in",
    ]


def test_of_a_large_job_only_the_slowest_are_listed() -> None:
    job = preparing(*(execution(rank, State.CHECKED_IN) for rank in range(99)), execution(99, State.PREPARING))

    lines = shown(progress(job, at(3))).splitlines()

    assert lines[2].split() == ["99", "b", "preparing"]
    assert lines[-1] == "  and 84 more"


def test_without_a_terminal_each_change_is_a_line() -> None:
    queued = values.job(JobPhase.QUEUED, summary="waits for 2 GPUs")
    placed = preparing(execution(0, State.PREPARING, detail="pulling image 3 %"), PULLING)
    arrived = preparing(execution(0, State.CHECKED_IN), PULLING)

    assert list(changes(None, queued, at(9))) == ["ring (j7k2) queued: waits for 2 GPUs"]
    assert list(changes(queued, placed, at(9))) == [
        "ring (j7k2) preparing",
        "rank 0 on a preparing: pulling image 3 %",
        "rank 1 on b preparing: pulling image 41 %",
    ]
    assert list(changes(placed, arrived, at(9))) == ["rank 0 on a checked in", "checked in 1/2"]


def test_a_percentage_that_grows_is_no_news() -> None:
    further = preparing(execution(1, State.PREPARING, detail="pulling image 97 %"))

    assert list(changes(preparing(PULLING), further, at(9))) == []


def test_the_end_is_left_to_the_verdict_but_the_culprit_is_told() -> None:
    failed = values.job(
        JobPhase.FAILED,
        attempt(execution(1, State.FAILED, failure=values.EXIT_3)),
        failure=values.EXIT_3,
    )

    assert list(changes(preparing(PULLING), failed, at(9))) == ["rank 1 on b failed: ended with exit code 3"]
