"""Evictions in the whole core: orders to victims, claims, protections, and what comes of all that when things break."""

from datetime import timedelta

import pytest

from coordinator.core.events import ChangeRequested, CordonRequested, HoldRequested, InventoryChanged
from coordinator.views.explain import explain
from coordinator.views.quotas import queue_page
from muster.domain.event import JobEventKind
from muster.domain.gangs.plan import Stage
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.failure import Exit, FailureKind
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.queueing.change import JobChange
from muster.domain.jobs.stopping.notice import StopReason
from muster.domain.jobs.stopping.preemption import OnPreempt
from tests.builders import World, inventory, pass_time, report
from tests.unit.coordinator.core.eviction.eviction_world import LEASE_SECONDS, NOTHING, ended, of, running, world


def reason(w: World, job: JobId) -> StopReason | None:
    execution = w.rank(job, 0)
    assert execution.node is not None
    [line] = [line for line in w.last_plan(execution.node).desired if line.execution == execution.id]
    return None if line.stop is None else line.stop.reason


def test_who_borrowed_makes_room_for_who_is_promised_and_comes_back_in_its_old_place() -> None:
    w = world(("n1", 8))
    a = running(w, *[of("a")] * 4)
    b = w.submit(of("b"))

    assert [w.phase(job) for job in a] == [JobPhase.RUNNING] * 3 + [JobPhase.STOPPING]
    assert reason(w, a[3]) is StopReason.PREEMPTED
    assert w.phase(b) is JobPhase.QUEUED
    assert w.attempt(b).claim is not None

    ended(w, a[3])

    assert w.phase(b) is JobPhase.PREPARING
    assert w.attempt(b).claim is None
    first = w.cluster.attempts[AttemptId(a[3], 1)]
    assert (first.preempted_for, first.failure and first.failure.kind) == (b, FailureKind.PREEMPTED)
    assert (w.attempt(a[3]).number, w.phase(a[3]), w.cluster.jobs[a[3]].evictions) == (2, JobPhase.QUEUED, 1)


def test_nobody_else_gets_the_seats_that_are_claimed_however_early_it_asks() -> None:
    w = world(("n1", 8))
    a = running(w, *[of("a")] * 4)
    b = w.submit(of("b"))
    early = w.submit(of("b", priority=100))
    ended(w, a[3])
    assert w.phase(b) is JobPhase.PREPARING
    assert w.phase(early) is JobPhase.QUEUED


def test_a_victim_that_ends_well_in_the_grace_was_evicted_all_the_same() -> None:
    """Scenario C3: the victim ends with 0 in the grace."""
    w = world(("n1", 8))
    a = running(w, *[of("a")] * 4)
    w.submit(of("b"))
    ended(w, a[3], code=0)
    assert w.attempt(a[3]).number == 2


def test_a_job_that_does_not_want_to_come_back_ends_as_stopped() -> None:
    w = world(("n1", 8))
    a = running(w, *[of("a", on_preempt=OnPreempt(restart=False))] * 4)
    w.submit(of("b"))
    ended(w, a[3])
    assert (w.phase(a[3]), w.attempt(a[3]).number) == (JobPhase.STOPPED, 1)


def test_guaranteed_jobs_are_never_evicted() -> None:
    w = world(("n1", 8), a=8)
    a = running(w, *[of("a", 4, job_class=JobClass.GUARANTEED)] * 2)
    w.submit(of("b"))
    assert [w.phase(job) for job in a] == [JobPhase.RUNNING] * 2


def test_who_saved_just_now_goes_first() -> None:
    w = world(("n1", 8))
    a = running(w, *[of("a")] * 4)
    pass_time(w, 100)
    w.tell(a[1], 0, Stage.RUNNING, saved_at=w.now)
    w.submit(of("b"))
    assert [w.phase(job) for job in a].index(JobPhase.STOPPING) == 1


def test_who_is_protected_goes_when_that_is_over_and_a_deadline_wakes_the_queue() -> None:
    """Scenario R7: who has the right to seats waits until the first of those who have them may go."""
    w = world(("n1", 8), min_runtime=timedelta(minutes=10))
    a = running(w, *[of("a", 4)] * 2)
    b = w.submit(of("b", 4))
    assert [w.phase(job) for job in a] == [JobPhase.RUNNING] * 2
    assert "are safe until" in explain(w.cluster, b, w.now).summary

    pass_time(w, 580)

    assert [w.phase(job) for job in a] == [JobPhase.STOPPING, JobPhase.RUNNING]


def test_who_was_evicted_is_protected_twice_as_long_the_next_time() -> None:
    w = world(("n1", 4), min_runtime=timedelta(minutes=1), a=0, b=4)
    [a] = running(w, of("a", 4))
    pass_time(w, 61)
    b = w.submit(of("b", 4))
    ended(w, a)
    w.tell_all(b, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    w.tell(b, 0, Stage.EXITED, exit=Exit(code=0))
    w.tell_all(a, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    w.submit(of("b", 4))
    pass_time(w, 100)
    assert w.phase(a) is JobPhase.RUNNING
    pass_time(w, 30)
    assert w.phase(a) is JobPhase.STOPPING


def test_who_was_evicted_again_and_again_is_protected_four_times_as_long_and_no_longer() -> None:
    w = world(("n1", 4), min_runtime=timedelta(minutes=1), a=0, b=4)
    [a] = running(w, of("a", 4))
    for safe in (60, 120, 240, 240):
        b = w.submit(of("b", 4))
        pass_time(w, safe - 20)
        assert w.phase(a) is JobPhase.RUNNING
        pass_time(w, 20)
        assert w.phase(a) is JobPhase.STOPPING
        ended(w, a)
        w.tell_all(b, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
        w.tell(b, 0, Stage.EXITED, exit=Exit(code=0))
        w.tell_all(a, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)


def test_what_is_claimed_and_free_already_is_kept_until_the_claim_ends() -> None:
    w = world(("n1", 8))
    a = running(w, *[of("a")] * 3)
    b = w.submit(of("b", 4))
    late = w.submit(of("b"))
    assert [w.phase(job) for job in (a[2], b, late)] == [JobPhase.STOPPING, JobPhase.QUEUED, JobPhase.QUEUED]
    w.stop(b)
    assert w.phase(late) is JobPhase.PREPARING


def test_priorities_of_different_projects_are_not_compared() -> None:
    w = world(("n1", 8), a=0, b=4)
    w.promise("default", quota=0, min_runtime=NOTHING)
    [other, mine] = running(w, of("default", 4, priority=1), of("a", 4, priority=900))
    w.submit(of("b", 4))
    assert [w.phase(job) for job in (other, mine)] == [JobPhase.RUNNING, JobPhase.STOPPING], "the newer one goes"


def test_what_waits_is_told_that_others_are_stopped_for_it() -> None:
    w = world(("n1", 8))
    running(w, *[of("a")] * 4)
    b = w.submit(of("b"))
    assert "1 job is stopped for it" in explain(w.cluster, b, w.now).summary
    assert [line.reason for line in queue_page(w.cluster, w.now, everybody, everybody, 1, 10).lines] == ["evicting"]
    [told] = [each for each in w.store.events(b, 0, 100) if each.kind is JobEventKind.CLAIMED]
    assert told.text == "1 job is stopped for it; once they have gone it is placed on n1"


def test_who_makes_room_is_told_so_in_its_events() -> None:
    w = world(("n1", 8))
    a = running(w, *[of("a")] * 4)
    w.submit(of("b"))
    assert "stopping: had to make room for a job of another project" in explain(w.cluster, a[3], w.now).summary
    ended(w, a[3])
    told = {each.kind: each.text for each in w.store.events(a[3], 0, 100)}
    assert told[JobEventKind.STOPPING] == "had to make room for a job of another project"
    assert told[JobEventKind.ATTEMPT_FAILED] == "had to make room for a job of another project; another attempt follows"


@pytest.mark.parametrize("when", ["before the victim ends", "after it has ended"])
def test_a_claim_outlives_the_coordinator(when: str) -> None:
    """Scenario C1: the coordinator dies between the order to the victims and their end."""
    w = world(("n1", 8))
    a = running(w, *[of("a")] * 4)
    b = w.submit(of("b"))
    last = w.rank(a[3], 0).id
    others = [report(w.rank(job, 0).id, Stage.RUNNING) for job in a[:3]]
    w.restart()
    if when == "after it has ended":
        w.connect("n1", reports=[*others, report(last, Stage.EXITED, exit=Exit(code=143))])
    else:
        w.connect("n1", reports=[*others, report(last, Stage.RUNNING)])
        assert w.phase(b) is JobPhase.QUEUED
        ended(w, a[3])
    assert w.phase(b) is JobPhase.PREPARING
    assert w.phase(a[3]) is JobPhase.QUEUED


def test_a_claim_ends_when_its_node_is_cordoned_and_the_job_is_tried_anew() -> None:
    w = world(("n1", 8), ("n2", 8))
    a = running(w, *[of("a", 8)] * 2)
    b = w.submit(of("b", 4))
    [node] = {seat.node for seat in w.attempt(b).claim.seats}  # type: ignore[union-attr]  # it has one
    other = next(job for job in a if w.phase(job) is JobPhase.RUNNING)
    w.turn(CordonRequested(node=NodeId(node), reason="", restart_jobs=False))
    claim = w.attempt(b).claim
    assert claim is None or {seat.node for seat in claim.seats} != {node}
    assert w.phase(other) in {JobPhase.RUNNING, JobPhase.STOPPING}


def test_a_job_that_is_deleted_leaves_no_claim() -> None:
    w = world(("n1", 8))
    a = running(w, *[of("a")] * 4)
    b = w.submit(of("b"))
    w.stop(b)
    ended(w, a[3])
    assert not len(w.cluster.load.claims)
    assert w.phase(a[3]) is JobPhase.PREPARING


def test_higher_priorities_of_a_project_evict_lower_ones_without_any_terms() -> None:
    w = World(("n1", 4))
    pass_time(w, LEASE_SECONDS)
    low, mid = running(w, of("default", priority=0), of("default", priority=10))
    high = w.submit(of("default", priority=20))
    assert (w.phase(low), w.phase(mid)) == (JobPhase.STOPPING, JobPhase.RUNNING)
    ended(w, low)
    assert w.phase(high) is JobPhase.PREPARING


def test_spare_jobs_make_room_for_any_other() -> None:
    w = World(("n1", 4))
    pass_time(w, LEASE_SECONDS)
    spare = running(w, *[of("default", 1, job_class=JobClass.SPARE)] * 4)
    w.submit(of("default", 2))
    assert [w.phase(job) for job in spare] == [JobPhase.RUNNING] * 2 + [JobPhase.STOPPING] * 2


def test_what_a_part_of_a_victim_had_that_has_ended_is_not_claimed_twice() -> None:
    w = World(("n1", 4))
    pass_time(w, LEASE_SECONDS)
    [gang] = running(w, of("default", 1, 3, cpus=20))
    w.tell(gang, 0, Stage.EXITED, exit=Exit(code=0))
    w.running(of("default", 1, cpus=20, job_class=JobClass.GUARANTEED))
    high = w.submit(of("default", 1, 3, cpus=20, priority=9))
    assert w.attempt(high).claim is None
    assert w.phase(gang) is JobPhase.RUNNING


def test_a_project_says_how_long_its_jobs_may_take_to_make_room() -> None:
    w = world(("n1", 8))
    w.promise("a", quota=4, min_runtime=NOTHING, grace_max=timedelta(seconds=12))
    a = running(w, *[of("a")] * 4)
    w.submit(of("b"))
    execution = w.rank(a[3], 0)
    [line] = [line for line in w.last_plan("n1").desired if line.execution == execution.id]
    assert line.stop is not None
    assert line.stop.grace == timedelta(seconds=12)


def test_a_limit_is_kept_while_a_victim_elsewhere_still_holds_what_it_has() -> None:
    w = world(("n1", 2), ("n2", 2), a=4)
    w.promise("a", quota=4, limit=2, min_runtime=NOTHING)
    [low] = running(w, of("a", 2))
    high = w.submit(of("a", 2, priority=9, exclude_nodes=(NodeId(str(w.seat(low))),)))
    assert w.phase(low) is JobPhase.STOPPING
    w.submit(of("b", 1))
    assert w.phase(high) is JobPhase.QUEUED
    ended(w, low)
    assert w.phase(high) is JobPhase.PREPARING


def test_a_claim_ends_where_its_unit_may_not_have_that_much_any_more() -> None:
    w = world(("n1", 8))
    a = running(w, *[of("a")] * 4)
    b = w.submit(of("b"))
    w.promise("b", quota=4, limit=1, min_runtime=NOTHING)
    assert w.attempt(b).claim is None
    ended(w, a[3])
    assert w.phase(a[3]) is JobPhase.PREPARING


def test_a_claim_ends_where_its_node_has_too_little_by_now_and_room_is_made_anew() -> None:
    w = world(("n1", 8))
    a = running(w, *[of("a", cpus=10)] * 4)
    b = w.submit(of("b", cpus=10))
    before = [w.phase(job) for job in a]
    w.turn(InventoryChanged(node=NodeId("n1"), inventory=inventory("n1", 8, cpus=35)))

    assert before == [JobPhase.RUNNING] * 3 + [JobPhase.STOPPING]
    assert [w.phase(job) for job in a] == [JobPhase.RUNNING] * 2 + [JobPhase.STOPPING] * 2
    ended(w, a[2])
    ended(w, a[3])
    assert w.phase(b) is JobPhase.PREPARING


def test_a_claim_ends_when_its_node_is_lost_in_the_grace() -> None:
    """Scenario C2: the node of the victim is lost in the grace."""
    w = world(("n1", 8))
    running(w, *[of("a")] * 4)
    b = w.submit(of("b"))
    w.disconnect("n1")
    assert w.attempt(b).claim is not None
    pass_time(w, 3600)
    assert w.attempt(b).claim is None


def test_a_job_that_is_held_claims_nothing() -> None:
    w = world(("n1", 8))
    running(w, *[of("a")] * 4)
    b = w.submit(of("b"))
    w.turn(HoldRequested(job=b))
    assert w.attempt(b).claim is None


def test_a_priority_that_is_raised_while_a_job_waits_makes_others_give_way() -> None:
    w = World(("n1", 4))
    pass_time(w, LEASE_SECONDS)
    running(w, *[of("default", 2)] * 2)
    late = w.submit(of("default", 2))
    assert w.attempt(late).claim is None
    w.turn(ChangeRequested(job=late, change=JobChange(priority=5)))
    assert w.attempt(late).claim is not None


def test_a_job_that_has_not_started_is_safe_until_it_has() -> None:
    w = world(("n1", 4), a=0, b=4)
    a = w.submit(of("a", 4))
    w.submit(of("b", 4))
    assert w.phase(a) is JobPhase.PREPARING
    w.tell_all(a, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    assert w.phase(a) is JobPhase.STOPPING


def test_no_more_than_sixteen_jobs_wait_for_others_to_go() -> None:
    w = World(("n1", 40))
    pass_time(w, LEASE_SECONDS)
    running(w, *[of("default", 1, job_class=JobClass.SPARE)] * 40)
    wanted = [w.submit(of("default", 1)) for _ in range(20)]
    assert sum(w.attempt(job).claim is not None for job in wanted) == 16


def everybody(_: object) -> bool:
    return True
