"""What is accepted, what is refused, and what is the same submit."""

import pytest

from coordinator.core.answers import Accepted, Noted, RefusalCause, Refused
from coordinator.core.events import DeleteRequested
from coordinator.core.limits import Limits
from coordinator.store.store import Snapshot
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.explanation import NodeRefusal
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World, gpu, inventory, spec


def test_a_job_that_no_node_could_ever_run_is_refused_with_the_reason_per_node() -> None:
    w = World(("a", 4), ("b", 8))

    assert w.try_submit(spec(2, gpus=8)) == Refused(
        cause=RefusalCause.IMPOSSIBLE,
        message="the fleet is too small for it: needs room for 2 executions at once; 1 fits",
        refusals=(
            NodeRefusal(node=NodeId("a"), reason="needs 8 GPUs, 4 are free"),
            NodeRefusal(node=NodeId("b"), reason="has room for 1; for one more it needs 8 GPUs, 0 are free"),
        ),
    )
    assert w.store.load().jobs == ()


def test_a_job_that_no_node_could_ever_run_is_queued_if_the_client_insists() -> None:
    w = World(("a", 4))

    job = w.submit(spec(1, gpus=8), queue_anyway=True)

    assert w.phase(job) is JobPhase.QUEUED


def test_a_full_queue_takes_no_more_until_a_job_has_left_it() -> None:
    w = World(("a", 1))
    w.cluster.limits = Limits(queued=2)
    runs = w.running(spec(1, gpus=1))
    for _ in range(2):
        w.submit(spec(1, gpus=1))

    assert w.try_submit(spec(1, gpus=1)) == Refused(
        cause=RefusalCause.EXHAUSTED,
        message="2 jobs are queued already, as many as the coordinator takes; try again when some have run",
    )
    assert len(w.store.load().jobs) == 3

    w.tell_all(runs, Stage.EXITED, exit=Exit(code=0))
    w.submit(spec(1, gpus=1))


def test_more_nodes_than_any_fleet_has_are_refused_and_known_ones_come_back() -> None:
    w = World(("a", 1), ("b", 1))
    w.cluster.limits = Limits(nodes=2)
    w.disconnect("a")
    assert w.connect("a") == Noted()
    assert w.connect("c", inventory("c", 1)) == Refused(
        cause=RefusalCause.EXHAUSTED,
        message="the coordinator knows 2 nodes and takes no more; remove some that are gone",
    )


def test_jobs_that_have_ended_count_until_they_are_deleted() -> None:
    w = World(("a", 4))
    w.cluster.limits = Limits(executions=5)
    ended = w.running(spec(4))
    w.tell_all(ended, Stage.EXITED, exit=Exit(code=0))

    answer = w.try_submit(spec(2))
    assert isinstance(answer, Refused)
    assert answer.message == (
        "the coordinator keeps 4 executions and takes 5 at most, so 2 more are too many; "
        "delete jobs that have ended (`muster delete`)"
    )
    w.delete(ended)
    w.submit(spec(2))


def test_a_job_is_possible_even_if_its_nodes_are_away_busy_or_have_broken_gpus() -> None:
    w = World(("a", 2))
    w.running(spec(1, gpus=2))
    w.change_inventory("a", gpus=(gpu("a", 0), gpu("a", 1, problems=("uncorrectable ECC errors",))))
    w.disconnect("a")
    w.advance(100)

    assert isinstance(w.try_submit(spec(1, gpus=2)), Accepted)


def test_the_same_key_is_the_same_submit() -> None:
    w = World(("a", 0))
    first = w.submit(spec(1), idempotency_key="k")

    assert w.submit(spec(1), idempotency_key="k") == first
    assert [job.id for job in w.store.load().jobs] == [first]


def test_the_same_key_is_the_same_submit_also_within_one_turn_and_after_a_restart() -> None:
    w = World(("a", 0))
    answers = w.turn(w.submission(spec(1), idempotency_key="k"), w.submission(spec(1), idempotency_key="k"))
    w.restart()
    answers.append(w.try_submit(spec(1), idempotency_key="k"))

    assert [answer.job.id for answer in answers if isinstance(answer, Accepted)] == ["j001"] * 3


def test_the_same_key_is_the_same_submit_even_when_the_job_could_not_be_accepted_any_more() -> None:
    w = World(("a", 2))
    first = w.submit(spec(1, gpus=2), idempotency_key="k")
    w.change_inventory("a", gpus=())

    assert w.submit(spec(1, gpus=2), idempotency_key="k") == first


@pytest.mark.parametrize("other", [spec(2), spec(1, project="of-others")])
def test_a_key_with_another_job_is_refused_and_says_nothing_of_the_first(other: JobSpec) -> None:
    w = World(("a", 0), projects=["default", "of-others"])
    w.submit(spec(1), idempotency_key="k")
    w.restart()

    assert w.try_submit(other, idempotency_key="k") == Refused(
        cause=RefusalCause.TAKEN,
        message="its idempotency key was used for another job before; a key stands for one job of one project, "
        "so submit this one with a new key",
    )


def test_without_a_key_every_submit_is_a_job_of_its_own() -> None:
    w = World(("a", 0))

    assert w.submit(spec(1)) != w.submit(spec(1))


def test_the_key_of_a_deleted_job_is_free_again() -> None:
    w = World()
    first = w.submit(spec(1), idempotency_key="k", queue_anyway=True)
    w.turn(DeleteRequested(job=first, force=True))

    assert w.submit(spec(1), idempotency_key="k", queue_anyway=True) != first


def test_a_dry_run_says_what_a_submit_would_say_and_leaves_nothing() -> None:
    w = World(("a", 0))
    before = w.store.load()

    assert isinstance(w.try_submit(spec(1), dry_run=True), Accepted)
    assert isinstance(w.try_submit(spec(1, gpus=1), dry_run=True), Refused)
    assert w.store.load() == before
    assert w.effects == []


def test_dry_runs_do_not_count_among_the_jobs() -> None:
    w = World(("a", 0))
    w.try_submit(spec(1), dry_run=True)
    job = w.submit(spec(1))

    assert w.cluster.jobs[job].sequence == 1


def test_sequence_numbers_go_on_after_a_restart() -> None:
    w = World(("a", 0))
    w.submit(spec(1))
    w.restart()
    second = w.submit(spec(1), queue_anyway=True)

    assert w.cluster.jobs[second].sequence == 2


def test_an_id_that_is_taken_is_refused_and_the_job_stays_as_it_is() -> None:
    w = World(("a", 0))
    taken = w.submission(spec(1))
    w.turn(taken)
    before = w.store.load()

    assert w.turn(taken) == [
        Refused(cause=RefusalCause.CONFLICT, message="there is a job j001 already; submit again"),
    ]
    assert w.store.load() == before


def test_nothing_is_stored_before_the_first_event() -> None:
    assert World(projects=()).store.load() == Snapshot()
    assert JobId("j001") not in World().cluster.jobs
