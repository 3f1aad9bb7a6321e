"""What executions have left, as it stands by now."""

from dataclasses import replace
from datetime import timedelta

import pytest

from coordinator.views.outputs import outputs_now, wanted_outputs
from muster.domain.data.output_terms import ALL_OUTPUTS, OutputTerms, StoredAfter
from muster.domain.data.outputs import ExecutionOutputs, OutputsStage
from muster.domain.errors import UnavailableError
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit
from tests.builders import World, spec

STORED = ExecutionOutputs(stage=OutputsStage.STORED, tree="a" * 64, size=90, files=1, bytes=7)


def left(w: World, keep: timedelta | None, outputs: ExecutionOutputs = STORED) -> JobId:
    """A job that has ended, with what its one execution has left."""
    one = spec(1)
    job = w.running(replace(one, roles=(replace(one.roles[0], outputs=OutputTerms(keep=keep)),)))
    w.tell(job, 0, Stage.EXITED, outputs=outputs)
    return job


def now_of(w: World, job: JobId) -> ExecutionOutputs:
    found = outputs_now(w.cluster.jobs[job], w.rank(job, 0), w.now)
    assert found is not None
    return found


def test_outputs_go_once_they_were_kept_for_as_long_as_their_job_says() -> None:
    w = World(("a", 1))
    job = left(w, timedelta(days=1))
    w.advance(24 * 3600 - 1)
    assert now_of(w, job).tree == STORED.tree
    w.advance(1)

    gone = now_of(w, job)
    assert (gone.stage, gone.tree, gone.size, gone.bytes) == (OutputsStage.EXPIRED, "", 0, 7)
    assert gone.why == "they were kept for 1d (outputs.keep)"


def test_outputs_stay_with_a_job_that_says_nothing() -> None:
    w = World(("a", 1))
    job = left(w, None)
    w.advance(400 * 24 * 3600)

    assert now_of(w, job).tree == STORED.tree


def test_what_is_not_in_the_depot_is_not_said_to_be_gone() -> None:
    w = World(("a", 1))
    job = left(w, timedelta(days=1), ExecutionOutputs(stage=OutputsStage.ON_NODE, why="no depot"))
    w.advance(2 * 24 * 3600)

    assert now_of(w, job).stage is OutputsStage.ON_NODE


@pytest.mark.parametrize(
    ("stage", "code", "wanted"), [(Stage.EXITED, 0, True), (Stage.EXITED, 3, False), (Stage.STOPPED, 0, False)]
)
def test_outputs_of_success_are_wanted_of_no_other_end(stage: Stage, code: int, *, wanted: bool) -> None:
    w = World(("a", 1))
    job, terms = w.running(spec(1)), OutputTerms(after=StoredAfter.SUCCESS)
    with pytest.raises(UnavailableError, match="nobody has heard yet how"):
        wanted_outputs(w.rank(job, 0), terms)
    if stage is Stage.STOPPED:
        w.stop(job)
        w.tell(job, 0, stage)
    else:
        w.tell(job, 0, stage, exit=Exit(code=code))

    assert wanted_outputs(w.rank(job, 0), terms) == (terms if wanted else None)
    assert wanted_outputs(w.rank(job, 0), ALL_OUTPUTS) == ALL_OUTPUTS
