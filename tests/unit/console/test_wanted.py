"""Which rows somebody wants: conditions, orders and pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.mirror.rows import JOB_FIELDS, NODE_FIELDS, MirrorRow, job_row, node_row
from console.mirror.wanted import MOST_CONDITIONS, RowsWanted, conditions_of, order_of
from muster.domain.errors import InvalidJobError
from muster.domain.jobs.lifecycle import JobPhase
from tests.unit.console.mirrored import a_job, a_node

JOBS = [
    job_row(a_job("a", 1, "red", phase=JobPhase.RUNNING, priority=5, labels={"team": "x"})),
    job_row(a_job("b", 2, "red", phase=JobPhase.QUEUED, priority=-1)),
    job_row(a_job("c", 3, "blue", phase=JobPhase.RUNNING, priority=5, labels={"team": "y"})),
]


def found(where: list[str], sort: str = "") -> str:
    """The ids of the jobs that are wanted, in order."""
    wanted = RowsWanted(conditions=conditions_of(where, JOB_FIELDS), order=order_of(sort, JOB_FIELDS), size=100)
    return "".join(row.key.name for row in wanted.of(JOBS)[0])


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ([], "cba"),
        (["phase==running"], "ca"),
        (["phase!=running"], "b"),
        (["phase==running", "project==red"], "a"),
        (["priority>=5"], "ca"),
        (["priority<=0"], "b"),
        (["priority==5.0"], "ca"),
        (["priority==high"], ""),
        (["name=@me-b"], "b"),
        (["name!@b"], "ca"),
        (["name=^name-a"], "a"),
        (["name=$c"], "c"),
        (["label.team==x"], "a"),
        (["label.team=="], "b"),
        (["label.team!=x"], "cb"),
        (["submitted_at<=2026-11-27T09:00:02Z"], "ba"),
        (["submitted_at>=2026-11-27T09:00:03"], "c"),
        (["submitted_at==2026-11-27T10:00:02+01:00"], "b"),
        (["started_at>=2026-11-27T09:00:00Z"], ""),
        (["started_at=="], "cba"),
        (["name==a==b"], ""),
    ],
)
def test_conditions_say_which_jobs_are_wanted(where: list[str], ids: str) -> None:
    assert found(where) == ids


@pytest.mark.parametrize(
    ("sort", "ids"),
    [
        ("name", "abc"),
        ("-name", "cba"),
        ("priority", "bca"),
        ("-priority,name", "acb"),
        ("project,-submitted_at", "cba"),
        ("label.team", "bac"),
    ],
)
def test_orders_say_which_comes_first(sort: str, ids: str) -> None:
    assert found([], sort) == ids


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("phase", "where=phase is no condition like phase==running"),
        ("phase=running", "is no condition"),
        ("fase==running", "where: there is no field 'fase'; there are attempt, "),
        ("label.==x", "there is no field 'label.'"),
        ("priority>=high", "where: 'high' is no number, which priority is"),
        ("submitted_at<=monday", "where: 'monday' is no time like 2026-11-27T09:00:00Z, which submitted_at is"),
        ("name==" + "x" * 500, "is no condition"),
    ],
)
def test_a_condition_that_means_nothing_is_refused(where: str, told: str) -> None:
    with pytest.raises(InvalidJobError) as refused:
        found([where])
    assert told in str(refused.value)


def test_an_order_that_means_nothing_is_refused() -> None:
    with pytest.raises(InvalidJobError, match="sort: there is no field 'size'"):
        found([], "size")
    with pytest.raises(InvalidJobError, match=f"where names {MOST_CONDITIONS + 1}"):
        found(["name==x"] * (MOST_CONDITIONS + 1))


def test_nodes_are_found_by_what_they_have() -> None:
    rows = [node_row(a_node("n")), node_row(a_node("m"))]
    conditions = conditions_of(["gpus_free>=2", "cordoned==false", "pool==fast"], NODE_FIELDS)
    page, _ = RowsWanted(conditions=conditions, size=10).of(rows)
    assert [row.key.name for row in page] == ["m", "n"]


_rows = st.lists(
    st.tuples(st.integers(1, 30), st.integers(-2, 2), st.sampled_from(["red", "blue"])), unique_by=lambda each: each[0]
).map(lambda found: [job_row(a_job(f"j{s}", s, project, priority=p)) for s, p, project in found])


@given(_rows, st.integers(1, 5), st.sampled_from(["", "priority", "-priority,project", "-submitted_at", "project"]))
def test_page_over_page_is_the_whole(rows: list[MirrorRow], size: int, sort: str) -> None:
    order = order_of(sort, JOB_FIELDS)
    whole, nothing = RowsWanted(order=order, size=1000).of(rows)
    assert nothing == ""
    told, page, pages = list[MirrorRow](), "", 0
    while pages == 0 or page:
        part, page = RowsWanted(order=order, size=size, page=page).of(rows)
        told += part
        pages += 1
    assert told == whole
    assert pages == max(1, -(-len(rows) // size))


@given(_rows, st.integers(1, 5))
def test_without_an_order_pages_go_on_at_numbers_of_jobs_as_the_coordinator_has_them(
    rows: list[MirrorRow], size: int
) -> None:
    page, following = RowsWanted(size=size).of(rows)
    if following:
        assert int(following) == -page[-1].place


@pytest.mark.parametrize("page", ["x", "bnVsbA==", "W10=", "W1sxXSwgMSwgIngiXQ==", "é", "12"])
def test_a_page_that_nobody_has_told_is_refused(page: str) -> None:
    order = order_of("name,priority", JOB_FIELDS)
    with pytest.raises(InvalidJobError, match="is not a page token"):
        RowsWanted(order=order, size=1, page=page).of(JOBS)
