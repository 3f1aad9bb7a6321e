"""Many jobs that are accepted together or not at all."""

from coordinator.core.answers import AllAccepted, NoneAccepted, RefusalCause, Refused
from coordinator.core.events import JobsSubmitted, JobSubmitted
from coordinator.core.limits import Limits
from coordinator.core.requests.jobs import REFUSED
from muster.domain.ids import NodeId
from muster.domain.jobs.explanation import NodeRefusal
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World, spec

ONE_GPU = spec(1, gpus=1)
TOO_LARGE = spec(1, gpus=9)


def together(*jobs: JobSubmitted) -> JobsSubmitted:
    return JobsSubmitted(jobs=jobs)


def test_all_are_accepted_in_order_and_placed_as_if_they_had_come_one_by_one() -> None:
    w = World(("a", 2))

    (answer,) = w.turn(together(*(w.submission(ONE_GPU) for _ in range(3))))

    assert isinstance(answer, AllAccepted)
    assert [job.id for job in answer.jobs] == ["j001", "j002", "j003"]
    assert [job.sequence for job in answer.jobs] == [1, 2, 3]
    assert [w.phase(job.id) for job in answer.jobs] == [JobPhase.PREPARING, JobPhase.PREPARING, JobPhase.QUEUED]
    assert [job.id for job in w.store.load().jobs] == ["j001", "j002", "j003"]


def test_as_soon_as_one_is_refused_none_is_accepted_and_every_refused_one_is_named() -> None:
    w = World(("a", 4))
    before = w.store.load()

    (answer,) = w.turn(together(*(w.submission(each) for each in (ONE_GPU, TOO_LARGE, ONE_GPU, TOO_LARGE))))

    assert isinstance(answer, NoneAccepted)
    assert list(answer.refused) == [1, 3]
    first, second = answer.refused.values()
    assert first.cause is second.cause is RefusalCause.IMPOSSIBLE
    assert first.message == second.message
    assert first.message.startswith("no node could ever run it: ")
    assert first.refusals == (NodeRefusal(node=NodeId("a"), reason="needs 9 GPUs, 4 are free"),)
    assert second.refusals == ()
    assert w.store.load() == before
    assert w.effects == []


def test_of_very_many_refusals_the_first_ones_are_told() -> None:
    w = World(("a", 4))

    (answer,) = w.turn(together(*(w.submission(TOO_LARGE) for _ in range(REFUSED + 1))))

    assert isinstance(answer, NoneAccepted)
    assert list(answer.refused) == list(range(REFUSED))


def test_those_before_it_in_the_list_count_when_there_is_not_room_for_all() -> None:
    w = World(("a", 1))
    w.cluster.limits = Limits(queued=3, executions=6)
    for _ in range(2):
        w.submit(ONE_GPU)

    (queue,) = w.turn(together(*(w.submission(ONE_GPU) for _ in range(3))))
    (memory,) = w.turn(together(w.submission(spec(2)), w.submission(spec(3))))

    assert queue == NoneAccepted(
        refused={
            2: Refused(
                cause=RefusalCause.EXHAUSTED,
                message="3 jobs are queued already, as many as the coordinator takes; try again when some have run",
            )
        }
    )
    assert memory == NoneAccepted(
        refused={
            1: Refused(
                cause=RefusalCause.EXHAUSTED,
                message="the coordinator keeps 4 executions and takes 6 at most, so 3 more are too many; "
                "delete jobs that have ended (`muster delete`)",
            )
        }
    )


def test_the_same_keys_are_the_same_submits_also_after_a_restart() -> None:
    w = World(("a", 0))
    (first,) = w.turn(together(*(w.submission(spec(1), idempotency_key=key) for key in "ab")))
    w.restart()
    (again,) = w.turn(together(*(w.submission(spec(1), idempotency_key=key) for key in "abb")))

    assert isinstance(first, AllAccepted)
    assert isinstance(again, AllAccepted)
    assert [job.id for job in again.jobs] == ["j001", "j002", "j002"]
    assert [job.id for job in w.store.load().jobs] == ["j001", "j002"]


def test_one_key_for_two_jobs_of_one_call_is_refused() -> None:
    w = World(("a", 0))
    (answer,) = w.turn(together(*(w.submission(spec(size), idempotency_key="k") for size in (1, 1, 2))))

    assert isinstance(answer, NoneAccepted)
    assert {place: refused.cause for place, refused in answer.refused.items()} == {2: RefusalCause.TAKEN}


def test_two_of_one_id_are_refused() -> None:
    w = World(("a", 0))
    once = w.submission(spec(1))

    assert w.turn(together(once, once)) == [
        NoneAccepted(
            refused={
                1: Refused(cause=RefusalCause.CONFLICT, message="there is a job j001 already; submit again"),
            }
        )
    ]


def test_a_dry_run_leaves_nothing() -> None:
    w = World(("a", 0))
    before = w.store.load()

    (answer,) = w.turn(together(*(w.submission(spec(1), dry_run=True) for _ in range(2))))

    assert isinstance(answer, AllAccepted)
    assert w.store.load() == before
    assert w.effects == []
