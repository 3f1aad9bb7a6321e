"""Where others make room for a job: in pools, on nodes and outside of windows as the job itself would be placed."""

from datetime import timedelta

from coordinator.core.events import WindowRemoved, WindowSet
from muster.domain.fleet.window import Window
from muster.domain.ids import NodeId
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.placing.affinity import Affinity, LabelExpression, LabelOperator
from muster.domain.jobs.placing.pool_choice import PoolChoice
from tests.builders import World, inventory, pass_time
from tests.unit.coordinator.core.eviction.eviction_world import LEASE_SECONDS, NOTHING, ended, of, running, world


def in_pools(**pools: int) -> World:
    """Nodes with four GPUs, so many in each pool, of projects a and b with a promise of four GPUs in each."""
    w = World(projects=("default", "a", "b"))
    for pool, count in pools.items():
        for number in range(count):
            w.connect(f"{pool}-{number}", inventory(f"{pool}-{number}", 4, labels={"pool": pool}))
    for project, quota in (("a", 4), ("b", 4), ("default", 0)):
        w.promise(project, quota=quota, min_runtime=NOTHING)
    pass_time(w, LEASE_SECONDS)
    return w


def test_whoever_makes_room_is_in_a_pool_that_the_job_wants() -> None:
    w = in_pools(h100=2, a100=2)
    h100, a100 = (PoolChoice(pool="h100"),), (PoolChoice(pool="a100"),)
    old = running(w, *[of("a", 4, pools=h100)] * 2)
    new = running(w, *[of("a", 4, pools=a100)] * 2)

    b = w.submit(of("b", 4, pools=h100))

    assert [w.phase(job) for job in (*old, *new)] == [JobPhase.RUNNING, JobPhase.STOPPING, *[JobPhase.RUNNING] * 2]
    ended(w, old[1])
    assert w.phase(b) is JobPhase.PREPARING


def test_victims_are_looked_for_in_later_pools_too_and_a_gang_never_lies_in_two() -> None:
    w = in_pools(h100=1, a100=2)
    running(w, of("a", 4, pools=(PoolChoice(pool="h100"),), job_class=JobClass.GUARANTEED))
    a100 = running(w, *[of("a", 4, pools=(PoolChoice(pool="a100"),))] * 2)
    w.promise("b", quota=8, min_runtime=NOTHING)

    b = w.submit(of("b", 4, 2, pools=(PoolChoice(pool="h100"), PoolChoice(pool="a100"))))
    assert [w.phase(job) for job in a100] == [JobPhase.RUNNING] * 2, "a keeps the four that it is promised"

    w.promise("a", quota=0, min_runtime=NOTHING)
    assert [w.phase(job) for job in a100] == [JobPhase.STOPPING] * 2
    claim = w.attempt(b).claim
    assert claim is not None
    assert [seat.node for seat in claim.seats] == ["a100-0", "a100-1"]


def test_a_job_that_has_its_nodes_for_itself_waits_for_the_whole_node() -> None:
    w = world(("n1", 8), a=0, b=8)
    a = running(w, *[of("a")] * 2)
    b = w.submit(of("b", 2, exclusive=True))
    assert [w.phase(job) for job in a] == [JobPhase.STOPPING] * 2
    ended(w, a[0])
    assert w.phase(b) is JobPhase.QUEUED
    assert w.phase(a[0]) is JobPhase.QUEUED, "nobody else is placed on what is kept whole"
    ended(w, a[1])
    assert w.phase(b) is JobPhase.PREPARING


def test_nobody_makes_room_on_a_node_that_a_window_closes() -> None:
    w = world(("n1", 4), a=0, b=4)
    [a] = running(w, of("a", 4))
    window = Window(name="w", begins=w.now + timedelta(hours=1), ends=w.now + timedelta(hours=2), nodes=(NodeId("n1"),))
    w.turn(WindowSet(window=window))
    b = w.submit(of("b", 4))
    assert (w.phase(a), w.phase(b)) == (JobPhase.RUNNING, JobPhase.QUEUED)
    w.turn(WindowRemoved(name="w"))
    assert w.phase(a) is JobPhase.STOPPING


def test_room_is_made_on_nodes_that_the_job_needs() -> None:
    w = World(projects=("default", "a", "b"))
    for rack in ("r1", "r2", "r3"):
        w.connect(rack, inventory(rack, 4, labels={"rack": rack, "host": rack}))
    w.promise("b", quota=4)
    w.promise("a", quota=0, min_runtime=NOTHING)
    w.promise("default", quota=0)
    pass_time(w, LEASE_SECONDS)
    running(w, *[of("a", 4)] * 3)
    needs = LabelExpression(key="rack", operator=LabelOperator.NOT_IN, values=("r1", "r3"))
    b = w.submit(of("b", 4, affinity=Affinity(required=((needs,),))))
    claim = w.attempt(b).claim
    assert claim is not None
    assert [seat.node for seat in claim.seats] == ["r2"]


def test_nobody_is_evicted_while_a_node_with_room_is_silent_for_a_moment() -> None:
    """Scenario R8: there would be room if a node were there that is silent and not lost."""
    w = world(("n1", 8), ("n2", 8))
    a = running(w, *[of("a")] * 4)
    w.disconnect("n2")
    assert len({w.seat(job) for job in a}) == 1
    w.submit(of("b"))
    assert [w.phase(job) for job in a] == [JobPhase.RUNNING] * 4
