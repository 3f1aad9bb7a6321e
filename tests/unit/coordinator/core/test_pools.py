"""The pools and nodes on which a job is placed."""

from datetime import timedelta
from typing import Any

from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.placing.pool_choice import PoolChoice
from tests.builders import World, inventory, pass_time, spec

H100, A100 = PoolChoice(pool="h100"), PoolChoice(pool="a100")
A100_LATER = PoolChoice(pool="a100", after=timedelta(minutes=10))


def fleet(**pools: int) -> World:
    """Nodes with four GPUs: so many in each pool, called like it."""
    w = World()
    for pool, count in pools.items():
        for number in range(count):
            name = f"{pool}-{number}"
            w.connect(name, inventory(name, 4, labels={"pool": pool, "type": f"{pool}-node"}))
    return w


def whole(nodes: int = 1, **fields: Any) -> JobSpec:
    """A job of whole nodes."""
    return spec(nodes, gpus=4, **fields)


def end(w: World, job: JobId) -> None:
    w.delete(job, force=True)
    w.tell_all(job, Stage.STOPPED)


def test_a_job_goes_to_the_first_of_its_pools_that_has_room() -> None:
    """Scenario N1: the first pool is full, the second one is free."""
    w = fleet(h100=1, a100=1)
    wanted = whole(pools=(H100, A100))

    assert [w.seats(w.submit(wanted)) for _ in range(3)] == [["h100-0"], ["a100-0"], [None]]


def test_a_job_goes_to_a_later_pool_when_it_has_waited_for_as_long_as_it_says() -> None:
    """Scenario N2: the second pool is there for it after some time."""
    w = fleet(h100=1, a100=1)
    w.submit(whole(pools=(H100,)))
    job = w.submit(whole(pools=(H100, A100_LATER)))

    pass_time(w, 590)
    assert w.seats(job) == [None]
    pass_time(w, 10)
    assert w.seats(job) == ["a100-0"]


def test_the_time_until_a_later_pool_goes_on_over_a_restart_of_the_coordinator() -> None:
    w = fleet(h100=1, a100=1)
    w.submit(whole(pools=(H100,)))
    job = w.submit(whole(pools=(H100, A100_LATER)))
    pass_time(w, 300)
    w.restart()
    for node in ("h100-0", "a100-0"):
        w.connect(node)

    pass_time(w, 290)
    assert w.seats(job) == [None]
    pass_time(w, 10)
    assert w.seats(job) == ["a100-0"]


def test_a_gang_is_never_split_between_pools() -> None:
    """Scenario N3: both pools together would have room for it."""
    w = fleet(h100=2, a100=2)
    named, any_pool = w.submit(whole(4, pools=(H100, A100)), queue_anyway=True), w.submit(whole(4), queue_anyway=True)

    assert (w.seats(named), w.seats(any_pool)) == ([None] * 4, [None] * 4)
    assert w.cluster.queue.refused[named] == "needs room for 4 executions at once; at most 2 fit in one pool"


def test_a_job_without_pools_goes_to_any_of_them() -> None:
    w = fleet(h100=1, a100=1)

    assert [w.seats(w.submit(whole())) for _ in range(2)] == [["a100-0"], ["h100-0"]]


def test_a_job_that_no_pool_could_hold_is_refused() -> None:
    w = fleet(h100=2, a100=2)
    w.try_submit(whole(3))

    assert list(w.cluster.jobs) == []


def test_nodes_that_change_their_pool_take_the_jobs_of_the_new_one() -> None:
    w = fleet(h100=1)
    job = w.submit(whole(pools=(A100,)), queue_anyway=True)
    assert w.seats(job) == [None]

    w.change_inventory("h100-0", labels={"pool": "a100"})

    assert w.seats(job) == ["h100-0"]


def test_a_job_that_names_types_goes_to_nodes_of_these() -> None:
    w = fleet(a100=1, h100=1)

    assert w.seats(w.submit(whole(node_types=("h100-node", "b200-node")))) == ["h100-0"]


def test_a_job_does_not_go_to_nodes_that_it_excludes() -> None:
    w = fleet(a100=2)

    assert w.seats(w.submit(whole(exclude_nodes=("a100-0",)))) == ["a100-1"]


def test_an_exclusive_job_goes_to_nodes_on_which_nothing_runs_and_nothing_goes_beside_it() -> None:
    """Scenario N6: one node has another job, the other one nothing."""
    w = World(("n1", 4), ("n2", 4))
    assert w.seats(w.submit(spec(1, cpus=1))) == ["n1"]
    exclusive = w.submit(spec(1, gpus=1, exclusive=True))
    assert w.seats(exclusive) == ["n2"]

    other = w.submit(spec(1, gpus=4))
    another = w.submit(spec(1, gpus=1))
    assert (w.seats(other), w.seats(another)) == (["n1"], [None])
    end(w, exclusive)
    assert w.seats(another) == ["n2"]


def test_what_is_kept_for_an_exclusive_job_takes_nothing_else_even_where_there_is_room() -> None:
    w = World(("n1", 4))
    running = w.submit(spec(1, cpus=1))
    exclusive, small = w.submit(spec(1, cpus=1, exclusive=True)), w.submit(spec(1, cpus=1))
    assert (w.seats(exclusive), w.seats(small)) == ([None], [None])

    end(w, running)

    assert (w.phase(exclusive), w.phase(small)) == (JobPhase.PREPARING, JobPhase.QUEUED)


def test_an_exclusive_job_does_not_take_a_node_of_which_something_is_kept_for_another() -> None:
    w = World(("n1", 4))
    w.submit(spec(1, gpus=2))
    head = w.submit(spec(1, gpus=4))
    exclusive = w.submit(spec(1, cpus=1, exclusive=True))

    assert (w.seats(head), w.seats(exclusive)) == ([None], [None])
