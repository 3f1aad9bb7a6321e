"""Checkpoints of jobs: when one is whole, and with which one the next attempt begins."""

from dataclasses import replace

import pytest

from coordinator.core.events import ResumeRequested, StopRequested, SuspendRequested
from muster.domain.data.checkpoint import (
    BAD_WITHIN,
    CheckpointId,
    CheckpointToRestore,
    NamedTree,
    ToldCheckpoints,
)
from muster.domain.event import JobEventKind
from muster.domain.gangs.plan import Stage
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World, pass_time, spec
from tests.unit.coordinator.core.saving import (
    RANK0,
    fail,
    found_by,
    kept,
    part,
    restores,
    save,
    save_all,
    saving,
    start_again,
    whole,
)


def test_one_is_whole_once_every_rank_has_stored_its_part() -> None:
    w = World(("a", 0))
    job = w.running(saving(2))
    save(w, job, 0, part("step-100", 1, "0"))
    assert (whole(w, job), w.attempt(job).saved_at) == ([], None)
    w.advance(5)
    save(w, job, 1, part("step-100", 1, "1"))

    assert (whole(w, job), w.attempt(job).saved_at) == (["step-100"], w.now)
    assert (w.attempt(job).checkpoints.whole, w.attempt(job).checkpoints.newest) == (1, "step-100")


def test_the_part_of_the_first_rank_makes_one_whole_where_no_other_is_needed() -> None:
    w = World(("a", 0))
    job = w.running(saving(3, ranks=RANK0))
    save(w, job, 1, part("step-100", 1))
    assert kept(w, job) == set()
    save(w, job, 0, part("step-100", 1))

    assert whole(w, job) == ["step-100"]


def test_the_next_attempt_finds_the_newest_whole_one_and_each_rank_its_own_part_before_that_of_the_first() -> None:
    w = World(("a", 0))
    job = w.running(saving(2))
    save_all(w, job, "step-100", 1)
    save_all(w, job, "step-200", 2)
    save(w, job, 0, part("step-300", 3, "0"))
    fail(w, job)

    assert restores(w, job) == CheckpointId(1, "step-200")
    own, first = (NamedTree(tree=part("step-200", 2, rank).tree, size=80) for rank in "10")
    assert found_by(w, job, 0) == CheckpointToRestore(attempt=1, name="step-200", trees=(first,))
    assert found_by(w, job, 1) == CheckpointToRestore(attempt=1, name="step-200", trees=(own, first))


def test_all_ranks_find_the_part_of_the_first_one_where_that_is_all() -> None:
    w = World(("a", 0))
    job = w.running(saving(2, ranks=RANK0))
    save(w, job, 0, part("step-100", 1))
    fail(w, job)

    assert found_by(w, job, 0) == found_by(w, job, 1) != None  # noqa: E711 - a chain


def test_the_first_attempt_and_one_without_a_whole_one_find_nothing() -> None:
    w = World(("a", 0))
    job = w.running(saving(2))
    assert found_by(w, job) is None
    save(w, job, 0, part("step-100", 1))
    fail(w, job)

    assert (restores(w, job), found_by(w, job)) == (None, None)


def test_no_attempt_begins_while_parts_of_the_one_before_are_on_their_way() -> None:
    w = World(("a", 0))
    job = w.running(saving(1))
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=1), checkpoints=ToldCheckpoints(storing=True))
    pass_time(w, 100)
    assert (w.cluster.jobs[job].attempt, w.phase(job)) == (1, JobPhase.STORING)
    last = ToldCheckpoints(parts=(part("step-100", 1),))
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=1), checkpoints=last)

    assert (w.cluster.jobs[job].attempt, restores(w, job)) == (2, CheckpointId(1, "step-100"))


def test_what_it_had_is_free_meanwhile_and_its_node_keeps_it() -> None:
    w = World(("a", 1))
    wanted = saving(1)
    gpu = replace(wanted, roles=(replace(wanted.roles[0], resources=spec(1, 1).roles[0].resources),))
    job = w.running(gpu)
    w.tell(job, 0, Stage.EXITED, log_complete=True, exit=Exit(code=1), checkpoints=ToldCheckpoints(storing=True))
    other = w.submit(spec(1, gpus=1))
    w.advance(1)

    assert w.phase(other) is JobPhase.PREPARING
    assert w.cluster.load.is_planned(NodeId("a"), w.rank(job, 0).id)


def test_a_lost_node_lets_the_next_attempt_begin_without_its_parts() -> None:
    w = World(("a", 0), ("b", 0))
    job = w.running(saving(1))
    node = w.seat(job)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=1), checkpoints=ToldCheckpoints(storing=True))
    w.disconnect(node)
    w.advance(200)

    assert w.cluster.jobs[job].attempt == 2
    assert not w.cluster.gangs.saving(AttemptId(job, 1))


def test_a_stop_meanwhile_is_followed_by_no_other_attempt() -> None:
    w = World(("a", 0))
    job = w.running(saving(1))
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=1), checkpoints=ToldCheckpoints(storing=True))
    w.turn(StopRequested(job=job))
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=1), checkpoints=ToldCheckpoints())

    assert (w.cluster.jobs[job].attempt, w.phase(job)) == (1, JobPhase.FAILED)
    assert w.cluster.jobs[job].ended_at == w.now


def test_a_job_that_is_suspended_goes_on_from_what_it_saved_at_the_end() -> None:
    w = World(("a", 0))
    job = w.running(saving(1))
    w.turn(SuspendRequested(job=job))
    w.tell(job, 0, Stage.EXITED, checkpoints=ToldCheckpoints(storing=True))
    w.turn(ResumeRequested(job=job))
    w.tell(job, 0, Stage.EXITED, checkpoints=ToldCheckpoints(parts=(part("step-100", 1),)))

    assert (w.cluster.jobs[job].attempt, restores(w, job)) == (2, CheckpointId(1, "step-100"))


def test_a_name_that_a_rank_writes_anew_is_never_whole_where_others_have_parts_too() -> None:
    w = World(("a", 0))
    job = w.running(saving(2))
    save(w, job, 0, part("latest", 1, "100"))
    save(w, job, 0, part("latest", 2, "200"))
    save(w, job, 1, part("latest", 1, "100"))
    assert whole(w, job) == []
    save(w, job, 0, part("latest", 3, "100"))

    assert whole(w, job) == []


def test_a_single_part_that_is_written_anew_is_the_newer_checkpoint() -> None:
    w = World(("a", 0))
    job = w.running(saving(1))
    save(w, job, 0, part("latest", 1, "100"))
    save(w, job, 0, part("latest", 2, "200"))
    fail(w, job)

    found = found_by(w, job)
    assert found is not None
    assert [each.tree for each in found.trees] == [part("latest", 2, "200").tree]


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_stored_again_as_it_was_is_no_newer_for_that(count: int) -> None:
    """A second name for a file, or another mode, is a change that an agent sees."""
    w = World(("a", 0))
    job = w.running(saving(count))
    save_all(w, job, "a", 1)
    save_all(w, job, "b", 2)
    save_all(w, job, "a", 3)
    fail(w, job)

    assert (whole(w, job), restores(w, job)) == (["b", "a"], CheckpointId(1, "b"))


def test_parts_of_two_attempts_never_make_one_whole() -> None:
    w = World(("a", 0))
    job = w.running(saving(2))
    save(w, job, 0, part("step-100", 1, "0"))
    start_again(w, job)
    save(w, job, 1, part("step-100", 1, "1"))

    assert whole(w, job) == []


def test_a_checkpoint_after_which_two_attempts_failed_at_once_gives_way_to_the_one_before() -> None:
    w = World(("a", 0))
    job = w.running(saving(1))
    save(w, job, 0, part("good", 1), part("broken", 2))
    start_again(w, job)
    start_again(w, job)
    assert restores(w, job) == CheckpointId(1, "broken")
    start_again(w, job)

    assert restores(w, job) == CheckpointId(1, "good")
    assert w.cluster.jobs[job].checkpoints.bad == (CheckpointId(1, "broken"),)


def test_it_stays_where_there_is_none_before_it() -> None:
    w = World(("a", 0))
    job = w.running(saving(1))
    save(w, job, 0, part("only", 1))
    for _ in range(4):
        start_again(w, job)

    assert (restores(w, job), w.cluster.jobs[job].checkpoints.bad) == (CheckpointId(1, "only"), ())


def test_attempts_that_ran_for_long_or_were_ended_by_others_say_nothing_about_it() -> None:
    w = World(("a", 0))
    job = w.running(saving(1))
    save(w, job, 0, part("good", 1), part("newest", 2))
    for _ in range(3):
        start_again(w, job, int(BAD_WITHIN.total_seconds()))
    for _ in range(3):
        w.turn(SuspendRequested(job=job))
        w.tell(job, 0, Stage.EXITED)
        w.turn(ResumeRequested(job=job))
        w.tell_all(job, Stage.PREPARING, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)

    assert restores(w, job) == CheckpointId(1, "newest")


def not_restored(w: World, job: JobId, kind: FailureKind) -> None:
    """An attempt fails before its user code began; another one runs, or waits."""
    w.tell(job, 0, Stage.PREPARING)
    w.tell(job, 0, Stage.FAILED, failure=Failure(kind=kind, message="checkpoint: no"))
    pass_time(w, 60)


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (FailureKind.DATA, "newest"),  # the depot, or a server of inputs, was away
        (FailureKind.CHECKPOINT, "good"),
    ],
)
def test_only_what_is_wrong_with_the_checkpoint_itself_counts_against_it(kind: FailureKind, found: str) -> None:
    w = World(("a", 0))
    job = w.running(saving(1))
    save(w, job, 0, part("good", 1), part("newest", 2))
    fail(w, job)
    for _ in range(2):
        not_restored(w, job, kind)

    assert restores(w, job) == CheckpointId(1, found)


def test_nothing_is_waited_for_where_its_job_is_deleted() -> None:
    w = World(("a", 0))
    job = w.running(saving(1))
    w.delete(job, force=True)
    w.tell(job, 0, Stage.EXITED, checkpoints=ToldCheckpoints(storing=True))

    assert job not in w.cluster.jobs


def told(w: World, job: JobId) -> list[str]:
    """What people are told of checkpoints."""
    kinds = {JobEventKind.CHECKPOINTED, JobEventKind.RESTORING, JobEventKind.CHECKPOINT_BAD}
    return [event.text for event in w.store.events(job, 0, 1000) if event.kind in kinds]


def test_people_are_told_which_one_is_whole_and_restored_and_why_none_is() -> None:
    w = World(("a", 0))
    job = w.running(saving(2))
    save(w, job, 0, part("s", 1, "0"))
    start_again(w, job)
    save_all(w, job, "t", 1)
    for _ in range(2):
        start_again(w, job)

    assert told(w, job) == [
        "attempt 2 begins anew: there is no whole checkpoint; s of attempt 1 lacks rank 1",
        "checkpoint t is whole: all parts are stored",
        "attempt 3 goes on from checkpoint t of attempt 2",
        "attempt 4 goes on from checkpoint t of attempt 2",
    ]
