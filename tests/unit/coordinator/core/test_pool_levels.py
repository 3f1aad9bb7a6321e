"""Levels that a pool has of its own: which gangs stay together by them, and what people are warned of."""

from collections.abc import Mapping

from coordinator.core.answers import PoolKept
from coordinator.core.events import PoolRemoved, PoolSet
from coordinator.views.explain import explain
from muster.domain.fleet.pool import Pool
from muster.domain.gangs.plan import Stage
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.placing.topology import Topology
from tests.builders import World, inventory, spec

PLACES: Mapping[str, tuple[str, str]] = {"n1": ("r1", "a"), "n2": ("r2", "a"), "n3": ("r1", "b"), "n4": ("r2", "b")}
"""The rack and the row of each node."""


def fleet() -> World:
    w = World()
    for name, (rack, row) in PLACES.items():
        w.connect(name, inventory(name, 8, labels={"pool": "h100", "rack": rack, "row": row}))
    return w


def put(w: World, *levels: str) -> tuple[str, ...]:
    """Give the pool these levels; what its admin is warned of."""
    answer = w.turn(PoolSet(pool=Pool(name="h100", levels=levels)))[0]
    assert isinstance(answer, PoolKept), answer
    return answer.warnings


def gang(required: str | None = None) -> JobSpec:
    """Two executions that need a whole node each."""
    return spec(2, gpus=8, topology=Topology(required=required))


def end(w: World, job: str) -> None:
    for execution in [each for each in w.cluster.executions.values() if each.job == job]:
        w.tell(execution.job, execution.rank, Stage.EXITED, exit=Exit(code=0), log_complete=True)


def test_a_gang_stays_together_by_the_levels_of_its_pool() -> None:
    w = fleet()
    by_rack = w.submit(gang())
    assert w.seats(by_rack) == ["n1", "n3"]
    end(w, by_rack)

    put(w, "row")

    assert w.seats(w.submit(gang())) == ["n1", "n2"]


def test_what_runs_stays_where_it_is_when_levels_change_and_when_they_are_taken_back() -> None:
    w = fleet()
    put(w, "row")
    job = w.running(gang())
    put(w, "rack")
    w.turn(PoolRemoved(name="h100"))

    assert w.seats(job) == ["n1", "n2"]
    assert w.phase(job) is JobPhase.RUNNING


def test_a_job_that_requires_a_level_which_the_pool_does_not_have_waits_and_starts_once_it_has() -> None:
    w = fleet()
    put(w, "row")
    job = w.submit(gang("rack"), queue_anyway=True)
    assert w.seats(job) == [None, None]
    assert "its levels are row" in explain(w.cluster, job, w.now).summary

    put(w, "row", "rack")
    assert w.seats(job) == [None, None]  # no two nodes of a row are in one rack

    put(w, "rack")
    assert w.seats(job) == ["n1", "n3"]


def test_levels_hold_after_a_restart_of_the_coordinator_and_for_nodes_that_come_later() -> None:
    w = fleet()
    put(w, "row")
    w.restart()
    for name in PLACES:
        w.connect(name)
    w.connect("n5", inventory("n5", 8, labels={"pool": "h100", "rack": "r1", "row": "c"}))
    w.connect("n6", inventory("n6", 8, labels={"pool": "h100", "rack": "r2", "row": "c"}))

    pairs = {tuple(w.seats(w.submit(gang()))) for _ in range(3)}

    assert pairs == {("n1", "n2"), ("n3", "n4"), ("n5", "n6")}


def test_whoever_names_a_level_that_no_node_of_the_pool_carries_is_warned_with_the_nearest_label() -> None:
    w = fleet()

    assert put(w, "row", "rack") == ()
    assert put(w, "rows") == (
        'no node of pool h100 carries the label "rows", which is one of its levels; did you mean "row"?',
    )
