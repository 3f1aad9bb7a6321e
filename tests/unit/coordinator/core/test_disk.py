"""Free disk that a job wants: looked at node by node, beside what others were promised, and told with numbers."""

from coordinator.core.answers import RefusalCause, Refused
from coordinator.core.placement.placement import Placement, place, refusals
from coordinator.views.explain import explain
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import GIB, World, available, capacity, role, spec

TIB = 1024 * GIB


def wanting(disk: int, count: int = 1, gpus: int = 0) -> JobSpec:
    return spec(roles=(role(count, gpus, disk=disk),))


def fleet(*free: int) -> World:
    """Nodes with a disk of 2 TiB, of which so much is free."""
    w = World(*((name, 1) for name, _ in zip("abc", free, strict=False)))
    for name, left in zip("abc", free, strict=False):
        w.change_inventory(name, disk_total=2 * TIB, disk_free=left)
    return w


def lacks(w: World, job: JobId) -> dict[str, str]:
    """What each node lacks for a job, as `muster why` tells."""
    return {each.node: each.reason for each in explain(w.cluster, job, w.now).refusals}


def test_nodes_with_too_little_free_disk_are_passed_over_although_they_are_like_the_others() -> None:
    having = available(
        *(capacity(name, 8, disk=free * GIB) for name, free in zip("abcd", (10, 99, 100, 250), strict=True))
    )
    fit = place(wanting(100 * GIB, 3), having)

    assert isinstance(fit, Placement)
    assert [seat.node for seat in fit.seats] == ["c", "d", "d"]
    assert [each.reason for each in refusals(wanting(100 * GIB, 4), having)] == [
        "needs 100 GiB of disk, 10 GiB are free",
        "needs 100 GiB of disk, 99 GiB are free",
        "has room for 1; for one more it needs 100 GiB of disk, 0 B are free",
        "has room for 2; for one more it needs 100 GiB of disk, 50 GiB are free",
    ]


def test_a_job_waits_for_free_disk_and_why_says_how_much_there_is() -> None:
    w = fleet(300 * GIB, 100 * GIB)
    job = w.submit(wanting(800 * GIB))

    assert w.phase(job) is JobPhase.QUEUED
    assert lacks(w, job) == {
        "a": "needs 800 GiB of disk, 300 GiB are free",
        "b": "needs 800 GiB of disk, 100 GiB are free",
    }
    w.change_inventory("b", disk_free=900 * GIB)
    assert w.rank(job, 0).node == "b"


def test_what_others_were_promised_is_not_given_twice_until_they_have_ended() -> None:
    w = fleet(300 * GIB)
    first, second = w.running(wanting(200 * GIB)), w.submit(wanting(200 * GIB))

    assert lacks(w, second) == {"a": "needs 200 GiB of disk, 100 GiB are free"}
    w.tell(first, 0, Stage.EXITED)
    assert w.phase(second) is JobPhase.PREPARING


def test_a_job_is_refused_at_the_submit_where_no_disk_is_large_enough_even_if_it_were_empty() -> None:
    w = fleet(100 * GIB, 0)
    answer = w.try_submit(wanting(3 * TIB))

    assert isinstance(answer, Refused)
    assert (answer.cause, answer.message) == (
        RefusalCause.IMPOSSIBLE,
        "no node could ever run it: needs room for 1 execution at once; 0 fit",
    )
    assert [each.reason for each in answer.refusals] == ["needs 3 TiB of disk, 2 TiB are free"] * 2


def test_a_job_that_only_lacks_disk_keeps_no_seats_from_others() -> None:
    w = fleet(100 * GIB)
    job, other = w.submit(wanting(800 * GIB, gpus=1)), w.submit(spec(1, gpus=1))

    assert [w.phase(job), w.phase(other)] == [JobPhase.QUEUED, JobPhase.PREPARING]


def test_seats_are_kept_for_a_job_whose_disk_others_were_promised() -> None:
    w = fleet(300 * GIB)
    first = w.running(wanting(200 * GIB))
    job, small, other = w.submit(wanting(200 * GIB)), w.submit(wanting(50 * GIB)), w.submit(spec(1))

    assert [w.phase(each) for each in (job, small, other)] == [JobPhase.QUEUED, JobPhase.QUEUED, JobPhase.PREPARING]
    w.tell(first, 0, Stage.EXITED)
    assert w.phase(job) is JobPhase.PREPARING


def test_a_node_that_says_nothing_of_its_disk_takes_only_jobs_that_do_not_ask() -> None:
    w = World(("a", 0))
    w.change_inventory("a", disk_total=0, disk_free=0)
    assert isinstance(w.try_submit(wanting(GIB)), Refused)
    assert w.phase(w.submit(spec(1))) is JobPhase.PREPARING
