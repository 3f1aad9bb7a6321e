"""What every store promises of what attempts have held."""

from datetime import UTC, datetime, timedelta

from coordinator.core.records import DropJob, KeepSpent, TrimSpent
from coordinator.core.spent import Spent, SpentGroup, SpentWaits, SpentWish
from coordinator.store.store import Store
from muster.domain.fleet.quota import Amounts
from muster.domain.ids import JobId
from tests.contract.stores import Open

KINDS = ("project", "owner", "pool", "job_class")
BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


def spent(number: int, first: int, last: int, **other: object) -> KeepSpent:
    """An attempt that held a GPU from an hour to an hour, and half of it in vain."""
    seconds = (last - first) * 3600
    said: dict[str, object] = {"project": "red", "owner": "ann", "pool": "h100", "job_class": "spare", **other}
    return KeepSpent(
        spent=Spent(
            job=JobId(f"j{number}"),
            attempt=1,
            name=f"job-{number}",
            held=Amounts(1000 * seconds, 2000 * seconds, 3 * seconds),
            lost=500 * seconds,
            borrowed=100 * seconds,
            placed_at=hour(first),
            ended_at=hour(last),
            **{"outcome": "succeeded", **said},  # type: ignore[arg-type]  # a builder takes any field
        )
    )


def hour(number: int) -> datetime:
    return BEGIN + timedelta(hours=number)


def wish(first: int | None, last: int, **other: object) -> SpentWish:
    since = None if first is None else hour(first)
    return SpentWish(since=since, until=hour(last), **{"most": 100, "words": KINDS, **other})  # type: ignore[arg-type]  # a builder takes any field


def by_project(groups: tuple[SpentGroup, ...]) -> dict[str, tuple[int, int, int]]:
    return {group.project: (group.attempts, group.evicted, group.held.gpus // 3_600_000) for group in groups}


def test_attempts_that_are_alike_are_summed_up_and_are_there_when_it_is_opened_again(open_store: Open) -> None:
    open_store().commit([spent(1, 0, 2), spent(2, 1, 4, outcome="preempted"), spent(3, 0, 1, project="blue")])

    found = open_store().spent(wish(None, 9))

    assert by_project(found.groups) == {"red": (2, 1, 5), "blue": (1, 0, 1)}
    [red] = [group for group in found.groups if group.project == "red"]
    assert (red.owner, red.pool, red.job_class, red.job, red.name) == ("ann", "h100", "spare", "", "")
    assert red.held == Amounts(1000 * 5 * 3600, 2000 * 5 * 3600, 3 * 5 * 3600)
    assert red.lost == 500 * 5 * 3600
    assert red.borrowed == 100 * 5 * 3600
    assert (found.edges, found.kept_since) == ((), None)


def test_attempts_that_lie_in_a_span_in_part_are_given_one_by_one(store: Store) -> None:
    inside, over_begin, over_end, over_both = (
        spent(1, 3, 4),
        spent(2, 0, 4),
        spent(3, 3, 9),
        spent(4, 0, 9),
    )
    store.commit([inside, over_begin, over_end, over_both, spent(5, 0, 2), spent(6, 6, 9)])

    found = store.spent(wish(2, 6))

    assert by_project(found.groups) == {"red": (1, 0, 1)}
    assert sorted(found.edges, key=lambda each: each.job) == [over_begin.spent, over_end.spent, over_both.spent]


def test_only_some_projects_and_one_pool_are_asked_for(store: Store) -> None:
    store.commit([spent(1, 0, 1), spent(2, 0, 1, project="blue"), spent(3, 0, 9, pool="a100"), spent(4, 0, 9)])

    assert by_project(store.spent(wish(None, 2, projects=frozenset({"blue"}))).groups) == {"blue": (1, 0, 1)}
    assert store.spent(wish(None, 2, projects=frozenset())).groups == ()
    a100 = store.spent(wish(None, 2, pool="a100"))
    assert (a100.groups, [each.job for each in a100.edges]) == ((), ["j3"])


def test_jobs_are_told_apart_when_they_are_asked_for_and_no_more_of_them_than_that(store: Store) -> None:
    store.commit([spent(1, 0, 1), spent(2, 0, 2)])

    found = store.spent(wish(None, 9, words=("job", "name"))).groups

    assert sorted((group.job, group.name, group.attempts) for group in found) == [
        ("j1", "job-1", 1),
        ("j2", "job-2", 1),
    ]
    assert len(store.spent(wish(None, 9, words=("job", "name"), most=1)).groups) == 1


def test_what_was_stored_already_is_not_stored_again(store: Store) -> None:
    store.commit([spent(1, 0, 1)])
    store.commit([spent(1, 0, 5), spent(2, 0, 1)])
    assert by_project(store.spent(wish(None, 9)).groups) == {"red": (2, 0, 2)}


def test_it_outlives_its_job(store: Store) -> None:
    store.commit([spent(1, 0, 1)])
    store.commit([DropJob(job=JobId("j1"))])
    assert by_project(store.spent(wish(None, 9)).groups) == {"red": (1, 0, 1)}


def test_the_oldest_is_dropped_and_told_of(store: Store) -> None:
    store.commit([*(spent(number, number, number + 1) for number in range(5)), TrimSpent(keep=3)])
    assert store.spent(wish(None, 9)).kept_since == hour(3)

    store.commit([spent(5, 5, 6), TrimSpent(keep=3)])

    found = store.spent(wish(None, 9, words=("job", "name")))
    assert sorted(group.job for group in found.groups) == ["j3", "j4", "j5"]
    assert found.kept_since == hour(4)
    assert found.groups


def test_a_store_in_which_nothing_was_used_says_so(store: Store) -> None:
    store.commit([TrimSpent(keep=3)])
    found = store.spent(wish(None, 9))
    assert (found.groups, found.edges, found.kept_since) == ((), (), None)


def test_busy_time_is_that_of_attempts_whose_gpus_told_and_absent_where_none_did(store: Store) -> None:
    told = [spent(1, 0, 1, busy=700), spent(2, 0, 1, busy=30), spent(3, 0, 1), spent(4, 0, 1, project="blue")]
    store.commit(told)

    assert {each.project: each.busy for each in store.spent(wish(None, 9)).groups} == {"red": 730, "blue": None}


def waits(found: tuple[SpentWaits, ...]) -> dict[str, list[int]]:
    return {each.project: sorted(each.waits) for each in found}


def test_waits_are_told_by_group(store: Store) -> None:
    red = [spent(number, 0, 1, waited=waited) for number, waited in enumerate([90, 10, 10])]
    store.commit([*red, spent(20, 0, 1, project="blue", waited=7)])

    found = store.waits(wish(None, 9), hour(9))

    assert waits(found) == {"red": [10, 10, 90], "blue": [7]}
    assert {(each.owner, each.pool, each.job) for each in found} == {("ann", "h100", "")}
    assert len(store.waits(wish(None, 9, most=1), hour(9))) == 1


def test_waits_count_by_the_time_of_the_placement_once_the_attempt_has_ended(store: Store) -> None:
    before, within, over_end, after, later = (
        spent(1, 0, 4, waited=1),
        spent(2, 2, 3, waited=2),
        spent(3, 5, 8, waited=30),
        spent(4, 6, 7, waited=4),
        spent(5, 5, 9, waited=5),
    )
    store.commit([before, within, over_end, after, later])
    assert waits(store.waits(wish(2, 6), hour(8))) == {"red": [2, 30]}


def test_attempts_of_which_no_wait_is_known_are_left_out(store: Store) -> None:
    store.commit([spent(1, 0, 1), spent(2, 0, 1, waited=3)])
    assert waits(store.waits(wish(None, 9), hour(9))) == {"red": [3]}
    assert store.waits(wish(None, 9, projects=frozenset({"blue"})), hour(9)) == ()
