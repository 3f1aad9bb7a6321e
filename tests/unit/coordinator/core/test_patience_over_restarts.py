"""Since when others pass a job that a term keeps waiting is stored, and counts where the coordinator is restarted."""

from typing import Any

from coordinator.core.scheduling.bars import Bars
from coordinator.core.sharing.patience import BAR_PATIENCE
from coordinator.core.sharing.precedence import BarKind
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World, pass_time, report, spec

PATIENCE_SECONDS = int(BAR_PATIENCE.total_seconds())


def of(gpus: int, **fields: Any) -> JobSpec:
    return spec(1, gpus=gpus, project="a", job_class=JobClass.PREEMPTIBLE, **fields)


def barred() -> tuple[World, JobId]:
    """Project a holds six GPUs of the eight that it may have, and its next job wants eight."""
    w = World(("n1", 16), projects=("default", "a"))
    w.promise("a", quota=8, limit=8)
    w.running(of(6))
    return w, w.submit(of(8))


def restart(w: World) -> None:
    """Another coordinator begins, and the agent comes back with all that runs."""
    w.restart()
    w.connect("n1", reports=[report(each, Stage.RUNNING) for each in w.cluster.load.used(NodeId("n1")).executions])


def bar(w: World, job: JobId) -> BarKind | None:
    found = Bars(w.cluster, w.now).of(w.cluster.jobs[job])
    return None if found is None else found.kind


def test_what_was_waited_before_a_restart_counts() -> None:
    w, large = barred()
    pass_time(w, PATIENCE_SECONDS - 60)
    restart(w)
    passes = w.submit(of(1))
    pass_time(w, 60)
    waits = w.submit(of(1))

    assert [w.phase(job) for job in (large, passes, waits)] == [JobPhase.QUEUED, JobPhase.PREPARING, JobPhase.QUEUED]
    assert bar(w, waits) is BarKind.TURN


def test_where_the_clock_of_before_was_ahead_the_wait_begins_with_the_start() -> None:
    w, large = barred()
    w.now -= 2 * BAR_PATIENCE
    restart(w)
    note = w.attempt(large).barred
    assert note is not None
    assert note.since == w.now


def test_the_record_of_the_first_job_alone_says_since_when_a_term_keeps_it_waiting() -> None:
    w, large = barred()
    behind = w.submit(of(8))
    note = w.attempt(large).barred
    assert note is not None
    assert (note.unit, note.since, w.attempt(behind).barred) == ("a", w.now, None)

    w.submit(of(8, priority=1))
    assert w.attempt(large).barred is None


def test_a_job_that_is_placed_waits_for_no_term_any_more() -> None:
    w, large = barred()
    w.promise("a", quota=16, limit=16)

    assert (w.phase(large), w.attempt(large).barred) == (JobPhase.PREPARING, None)
