"""Outputs that are stored while user code runs: told at once, and stored whatever becomes of the rest."""

from dataclasses import replace
from datetime import timedelta

from coordinator.views.outputs import outputs_now
from muster.domain.data.output_terms import OutputTerms
from muster.domain.data.outputs import STORING_OUTPUTS, ExecutionOutputs, OutputsStage
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.restart import RestartPolicy
from tests.builders import World, spec

ONE = spec(1, gpus=1, restarts=RestartPolicy(infrastructure=0), on_disconnect=OnDisconnect.STOP)
LIVE = ExecutionOutputs(stage=OutputsStage.LIVE, tree="ab" * 32, size=90, files=1, bytes=7)
MORE = replace(LIVE, tree="cd" * 32, files=2)
STORED = replace(MORE, stage=OutputsStage.STORED)


def outputs(w: World, job: JobId) -> ExecutionOutputs:
    found = w.rank(job, 0).outputs
    assert found is not None
    return found


def running(w: World) -> JobId:
    """A job that has stored something and goes on."""
    job = w.running(ONE)
    w.tell(job, 0, Stage.RUNNING, outputs=LIVE)
    return job


def test_what_is_stored_so_far_is_told_while_the_job_runs() -> None:
    w = World(("a", 1))
    job = running(w)
    assert (outputs(w, job).tree, w.phase(job)) == (LIVE.tree, JobPhase.RUNNING)
    at = outputs(w, job).at
    w.advance(5)
    w.tell(job, 0, Stage.RUNNING, outputs=LIVE)
    assert outputs(w, job).at == at
    w.tell(job, 0, Stage.RUNNING, outputs=MORE)
    assert outputs(w, job).tree == MORE.tree


def test_it_stays_so_while_the_rest_is_on_its_way_and_its_job_waits() -> None:
    w = World(("a", 1))
    job = running(w)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=0), outputs=STORING_OUTPUTS)
    assert (w.phase(job), outputs(w, job).stage, outputs(w, job).tree) == (
        JobPhase.STORING,
        OutputsStage.STORING,
        LIVE.tree,
    )
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=0), outputs=STORED)
    assert (w.phase(job), outputs(w, job).stage, outputs(w, job).tree) == (
        JobPhase.SUCCEEDED,
        OutputsStage.STORED,
        MORE.tree,
    )


def test_late_words_of_a_job_that_runs_change_nothing_once_it_has_ended() -> None:
    w = World(("a", 1))
    job = running(w)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=0), outputs=STORING_OUTPUTS)
    w.tell(job, 0, Stage.RUNNING, outputs=MORE)
    assert outputs(w, job).stage is OutputsStage.STORING
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=0), outputs=STORED)
    w.tell(job, 0, Stage.RUNNING, outputs=LIVE)
    assert outputs(w, job).tree == MORE.tree


def test_what_a_lost_node_had_stored_is_there_and_the_rest_is_said_to_be_lost() -> None:
    w = World(("a", 1))
    job = running(w)
    w.disconnect("a")
    w.advance(1000)
    assert w.phase(job) is JobPhase.FAILED
    assert (outputs(w, job).stage, outputs(w, job).tree) == (OutputsStage.LOST, LIVE.tree)
    assert "while user code ran" in outputs(w, job).why


def test_what_was_stored_so_is_kept_as_long_as_the_job_says() -> None:
    w = World(("a", 1))
    job = running(w)
    w.disconnect("a")
    w.advance(1000)
    record = w.cluster.jobs[job]
    role = replace(record.spec.roles[0], outputs=OutputTerms(keep=timedelta(days=1)))
    kept = replace(record, spec=replace(record.spec, roles=(role,)))
    soon, later = (outputs_now(kept, w.rank(job, 0), w.now + timedelta(days=days)) for days in (0, 2))
    assert [each and each.tree for each in (soon, later)] == [LIVE.tree, ""]
