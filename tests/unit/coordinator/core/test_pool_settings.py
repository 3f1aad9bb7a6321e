"""Pools that are set: which nodes are in each, what is refused, and what people are warned of."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from coordinator.core.answers import PoolKept, RefusalCause, Refused
from coordinator.core.events import PoolRemoved, PoolSet
from coordinator.core.requests.quotas import warnings as quota_warnings
from coordinator.views.nodes import node_view
from coordinator.views.pools import pool_views
from muster.domain.fleet.pool import Pool
from muster.domain.fleet.quota import MOST_POOLS, Amounts, UnitKind
from muster.domain.gangs.plan import Stage
from muster.domain.ids import NodeId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.placing.pool_choice import PoolChoice
from tests.builders import World, inventory, quota_unit, spec

FAST: Mapping[str, str] = {"gpu": "h100"}


def fleet(**labels: Mapping[str, str]) -> World:
    """Nodes with two GPUs and these labels, by name."""
    w = World()
    for name, said in labels.items():
        w.connect(name, inventory(name, 2, labels=said))
    return w


def put(w: World, name: str, selector: Mapping[str, str] = FAST, *, anyway: bool = False) -> tuple[str, ...]:
    """Set a pool; what its admin is warned of."""
    answer = w.turn(PoolSet(pool=Pool(name=name, selector=selector), anyway=anyway))[0]
    assert isinstance(answer, PoolKept), answer
    return answer.warnings


def refused(w: World, event: PoolSet | PoolRemoved) -> Refused:
    answer = w.turn(event)[0]
    assert isinstance(answer, Refused)
    return answer


def wanting(*pools: str, count: int = 1) -> JobSpec:
    return spec(count, gpus=2, pools=tuple(PoolChoice(pool=pool) for pool in pools))


def test_nodes_that_a_selector_takes_are_in_that_pool_from_now_on_also_those_that_come_later() -> None:
    w = fleet(a=FAST, b={})
    put(w, "fast")
    w.connect("c", inventory("c", 2, labels=FAST))

    assert [(view.pool.name, view.nodes) for view in pool_views(w.cluster)] == [
        ("default", ("b",)),
        ("fast", ("a", "c")),
    ]
    assert [node_view(w.cluster, NodeId(node)).pool for node in "abc"] == ["fast", "default", "fast"]


def test_a_job_that_names_a_pool_goes_to_what_its_selector_takes_and_waits_beside_others() -> None:
    w = fleet(a=FAST, b={})
    put(w, "fast")

    assert [w.seats(w.submit(wanting("fast"))) for _ in range(2)] == [["a"], [None]]


def test_a_job_that_waits_is_placed_when_another_node_comes_into_its_pool() -> None:
    w = fleet(a=FAST, b={"gpu": "h200"})
    put(w, "fast")
    first, second = w.submit(wanting("fast")), w.submit(wanting("fast"))

    put(w, "fast", {"gpu": "h200"})

    assert (w.seats(first), w.seats(second)) == (["a"], ["b"])


def test_no_gang_lies_in_two_pools_once_they_are_two() -> None:
    w = fleet(a=FAST, b={})
    put(w, "fast")
    assert w.seats(w.submit(spec(2, gpus=2), queue_anyway=True)) == [None, None]

    w.turn(PoolRemoved(name="fast"))
    assert [view.pool.name for view in pool_views(w.cluster)] == ["default"]
    assert w.seats(w.submit(spec(1, gpus=2))) == [None]  # the gang has both nodes by now


def test_what_runs_goes_on_and_counts_in_the_pool_in_which_it_was_placed_also_after_a_restart() -> None:
    w = fleet(a=FAST, b={})
    job = w.submit(spec(1, gpus=2))
    w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    put(w, "fast")

    for _ in range(2):
        held = {view.pool.name: view.held.gpus for view in pool_views(w.cluster)}
        assert held == {"default": 2000, "fast": 0}
        w.restart()


def test_pools_are_the_same_after_a_restart() -> None:
    w = fleet(a=FAST, b={})
    put(w, "fast")
    before = pool_views(w.cluster)
    w.restart()

    assert [(view.pool, view.nodes) for view in pool_views(w.cluster)] == [(view.pool, view.nodes) for view in before]


def test_a_pool_is_shown_with_what_it_has_and_what_is_held() -> None:
    w = fleet(a=FAST)
    put(w, "fast")
    w.submit(spec(1, gpus=1, cpus=2))

    [view] = pool_views(w.cluster)
    assert (view.is_set, view.capacity, view.held) == (
        True,
        Amounts(2000, 64_000, 512 * 1024),
        Amounts(1000, 2000, 0),
    )


def test_a_node_that_two_pools_take_is_in_the_first_by_name_and_their_admin_is_warned() -> None:
    w = fleet(a={"gpu": "h100", "rack": "7"}, b={"rack": "7"}, c={"gpu": "h100", "pool": "old"})
    put(w, "fast")

    assert put(w, "b-rack", {"rack": "7"}) == ("node a is in pool b-rack, though fast claims it too",)
    assert put(w, "fast") == (
        "node a is in pool b-rack, though fast claims it too",
        "node c is in pool fast, though old claims it too",
    )


def test_a_warning_names_the_first_nodes_and_counts_the_others() -> None:
    w = fleet(**{name: {"gpu": "h100", "pool": "old"} for name in "abcde"})
    assert put(w, "fast") == ("nodes a, b, c and 2 more are in pool fast, though old claims them too",)


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        ({"gpu": "h10"}, "none has gpu=h10; did you mean gpu=h100?"),
        ({"gpus": "h100"}, 'none has a label "gpus"; did you mean "gpu"?'),
        ({"zzz": "1"}, 'none has a label "zzz"'),
        ({"gpu": "h100", "rack": "7"}, "no node carries the labels of pool fast;"),
    ],
)
def test_a_selector_that_takes_no_node_is_refused_with_the_nearest_label(selector: dict[str, str], why: str) -> None:
    w = fleet(a=FAST, b={"rack": "7"})

    answer = refused(w, PoolSet(pool=Pool(name="fast", selector=selector)))

    assert answer.cause is RefusalCause.CONFLICT
    assert why in answer.message
    assert answer.message.endswith("; `--anyway` sets it before there are any")
    assert put(w, "fast", selector, anyway=True) == ()


def test_a_pool_is_changed_although_its_nodes_are_gone() -> None:
    w = fleet(a=FAST)
    put(w, "fast", {"gpu": "b200"}, anyway=True)
    limited = Pool(name="fast", selector={"gpu": "b200"}, longest_run=timedelta(days=1))

    assert isinstance(w.turn(PoolSet(pool=limited))[0], PoolKept)


def test_a_job_that_names_an_unknown_pool_is_refused_with_the_nearest_name() -> None:
    w = fleet(a=FAST)
    put(w, "fast")

    answer = w.try_submit(wanting("default", "fats"))

    assert isinstance(answer, Refused)
    assert (answer.cause, answer.message) == (
        RefusalCause.INVALID,
        'pools[1]: there is no pool "fats"; did you mean "fast"?',
    )
    assert w.seats(w.submit(wanting("fats"), queue_anyway=True)) == [None]


def test_terms_for_a_pool_that_is_not_there_are_warned_of() -> None:
    w = fleet(a=FAST)
    put(w, "fast")
    unit = quota_unit("default", UnitKind.PROJECT, quota=1)
    w.change_units(replace(unit, terms=unit.terms.with_pool("fasst", unit.terms.everywhere)))

    assert (
        'default has terms for a pool that is not there: there is no pool "fasst"; did you mean "fast"?'
        in quota_warnings(w.cluster)
    )


def test_whoever_removes_a_pool_is_told_of_jobs_that_wait_for_it() -> None:
    w = fleet(a=FAST)
    put(w, "fast")
    w.submit(wanting("fast"))
    w.submit(wanting("fast"))

    answer = w.turn(PoolRemoved(name="fast"))[0]

    assert isinstance(answer, PoolKept)
    assert answer.warnings == (
        "1 queued job names it; what names no other pool waits until there is one of that name, or until it is stopped",
    )


def test_a_pool_that_is_not_set_is_not_removed() -> None:
    w = fleet(a={"pool": "old"})
    put(w, "fast", {}, anyway=True)

    assert refused(w, PoolRemoved(name="fasst")).message == 'there is no pool "fasst"; did you mean "fast"?'
    assert refused(w, PoolRemoved(name="old")).message == (
        'nothing is set for pool "old"; it is there because nodes are in it by their label'
    )


def test_there_are_so_many_pools_and_no_more() -> None:
    w = World()
    for number in range(MOST_POOLS):
        put(w, f"pool-{number}", {}, anyway=True)

    assert refused(w, PoolSet(pool=Pool(name="one-more"))).cause is RefusalCause.EXHAUSTED
    assert put(w, "pool-7", {}) == ()
