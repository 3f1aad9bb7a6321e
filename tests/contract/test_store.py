"""What every store promises."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from coordinator.core.checkpoint_part import DropCheckpoint
from coordinator.core.records import (
    Change,
    DropEvents,
    DropExecutions,
    DropJob,
    DropNode,
    DropPool,
    DropProject,
    DropWindow,
    KeepEvent,
    Put,
)
from coordinator.store.store import Snapshot, Store, StoreError
from muster.domain.event import JobEventKind
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.lifecycle import State
from tests.contract.records import (
    attempt,
    events,
    execution,
    gang,
    ids,
    job,
    meter,
    node,
    part,
    pool,
    project,
    puts,
    window,
)
from tests.contract.stores import Open


def test_a_new_store_is_empty(store: Store) -> None:
    assert store.load() == Snapshot()


def test_what_was_committed_is_loaded(store: Store) -> None:
    store.commit([*gang("a"), *puts(node(), project())])

    assert store.load() == Snapshot(
        projects=(project(),),
        jobs=(job("a"),),
        attempts=(attempt("a"),),
        executions=(execution("a", rank=0), execution("a", rank=1)),
        nodes=(node(),),
    )


def test_parts_of_checkpoints_are_replaced_and_go_with_their_checkpoint_or_their_job(store: Store) -> None:
    first, second, other = part("a", rank=0), part("a", rank=1), part("a", name="step-200")
    store.commit([*gang("a"), *gang("b", sequence=2), *puts(first, second, other, part("b"))])
    again = replace(second, tree="cd" * 32)
    store.commit([Put(record=again)])
    assert store.load().parts == (first, again, other, part("b"))
    store.commit([DropCheckpoint(job=JobId("a"), checkpoint=first.id)])
    assert store.load().parts == (other, part("b"))
    store.commit([DropJob(job=JobId("a"))])

    assert store.load().parts == (part("b"),)


def test_nothing_to_commit_is_no_fault(store: Store) -> None:
    store.commit([])

    assert store.load() == Snapshot()


def test_reopening_keeps_everything(open_store: Open) -> None:
    store = open_store()
    store.commit([*gang("a"), *puts(node())])
    before = store.load()

    assert open_store().load() == before


def test_a_closed_store_may_be_closed_again(store: Store) -> None:
    store.close()
    store.close()


def test_jobs_come_by_sequence_and_the_rest_by_their_job(store: Store) -> None:
    store.commit(gang("first", sequence=10, size=11))
    store.commit(gang("second", sequence=9, size=1))
    store.commit(puts(attempt("second", 10), attempt("second", 2), execution("second", 2)))

    loaded = store.load()

    assert [each.id for each in loaded.jobs] == ["second", "first"]
    assert [(each.job, each.number) for each in loaded.attempts] == [
        ("second", 1),
        ("second", 2),
        ("second", 10),
        ("first", 1),
    ]
    assert [each.id for each in loaded.executions] == ids(
        ("second", 1, 0),
        ("second", 2, 0),
        *(("first", 1, rank) for rank in range(11)),
    )


def test_nodes_come_by_name(store: Store) -> None:
    store.commit(puts(node("b"), node("Z"), node("a"), node("ä")))

    assert [each.name for each in store.load().nodes] == ["Z", "a", "b", "ä"]


def test_projects_come_by_name_as_they_were_put_last(store: Store) -> None:
    store.commit(puts(project("b"), project("a")))
    store.commit(puts(project("a", any_user=True)))

    assert store.load().projects == (project("a", any_user=True), project("b"))


def test_windows_come_by_name_as_they_were_put_last_and_go_alone(store: Store) -> None:
    store.commit(puts(window("b"), window("a")))
    store.commit(puts(window("a", reason="new disks")))
    assert store.load().windows == (window("a", reason="new disks"), window("b"))

    store.commit([DropWindow(window="a")])

    assert store.load().windows == (window("b"),)


def test_pools_come_by_name_as_they_were_put_last_and_go_alone(store: Store) -> None:
    store.commit(puts(pool("b"), pool("a")))
    store.commit(puts(pool("a", gpu="süd")))
    assert store.load().pools == (pool("a", gpu="süd"), pool("b"))

    store.commit([DropPool(pool="a")])

    assert store.load().pools == (pool("b"),)


def test_meters_come_by_project_and_pool_and_go_with_their_project(store: Store) -> None:
    store.commit(puts(meter("b"), meter("a", "v100"), meter("a"), project("a"), project("b")))
    store.commit(puts(meter("a", millionths=0)))
    assert store.load().meters == (meter("a", millionths=0), meter("a", "v100"), meter("b"))

    store.commit([DropProject(project="a")])

    assert store.load().meters == (meter("b"),)


def test_what_others_belong_to_is_loaded_before_them(store: Store) -> None:
    store.commit([*gang("a"), *puts(node(), pool())])

    kinds = [type(record).__name__ for record in store.load().records]
    assert list(dict.fromkeys(kinds)) == ["Pool", "Node", "Job", "Attempt", "Execution"]


def test_a_project_is_dropped_alone_and_its_jobs_stay(open_store: Open) -> None:
    first = open_store()
    first.commit([*gang("a"), *puts(project(job("a").spec.project), project("b"))])
    before = first.load()

    first.commit([DropProject(project=job("a").spec.project)])
    first.close()

    assert open_store().load() == replace(before, projects=(project("b"),))


def test_a_project_of_a_name_that_was_dropped_is_the_new_one(store: Store) -> None:
    store.commit(puts(project("a", any_user=True)))

    store.commit([DropProject(project="a"), *puts(project("a"))])
    assert store.load().projects == (project("a"),)
    store.commit([*puts(project("a", any_user=True)), DropProject(project="a")])
    assert store.load().projects == ()


def test_a_record_replaces_the_one_with_its_key(store: Store) -> None:
    store.commit([*gang("a", size=1), *puts(node())])
    changed = (
        replace(job("a"), attempt=2),
        replace(attempt("a"), deadline=attempt("a").placed_at),
        execution("a", state=State.RUNNING),
        node(address="10.0.0.2"),
    )

    store.commit(puts(*changed))

    loaded = store.load()
    assert (*loaded.jobs, *loaded.attempts, *loaded.executions, *loaded.nodes) == changed


def test_of_two_records_with_one_key_in_a_batch_the_last_counts(store: Store) -> None:
    store.commit([*gang("a", size=1), *puts(execution("a", state=State.PLACED), execution("a", state=State.ARMED))])

    assert [each.state for each in store.load().executions] == [State.ARMED]


def test_records_of_a_batch_may_come_before_what_they_belong_to(store: Store) -> None:
    store.commit(list(reversed(gang("a", size=1))))

    assert store.load().executions == (execution("a"),)


def test_dropping_a_job_drops_all_that_belongs_to_it_and_no_more(store: Store) -> None:
    store.commit([*gang("a"), *gang("b", sequence=2), *puts(node())])

    store.commit([DropJob(job=JobId("a"))])

    loaded = store.load()
    assert {each.id for each in loaded.jobs} == {"b"}
    assert {each.job for each in loaded.attempts} == {"b"}
    assert [each.id for each in loaded.executions] == ids(("b", 1, 0), ("b", 1, 1))
    assert loaded.nodes == (node(),)


def test_events_of_a_job_come_in_the_order_in_which_they_were_stored_and_in_pages(open_store: Open) -> None:
    store = open_store()
    kinds = (JobEventKind.SUBMITTED, JobEventKind.PLACED, JobEventKind.RUNNING, JobEventKind.SUCCEEDED)
    store.commit([*gang("a"), *gang("b", sequence=2), *events("b", JobEventKind.SUBMITTED), *events("a", *kinds[:2])])
    store.commit(events("a", *kinds[2:]))

    first = open_store().events(JobId("a"), 0, 3)
    rest = open_store().events(JobId("a"), first[-1].number, 3)

    assert [event.kind for event in (*first, *rest)] == list(kinds)
    assert [replace(event, number=0) for event in (*first, *rest)] == [kept.event for kept in events("a", *kinds)]
    assert open_store().events(JobId("nobody"), 0, 3) == ()


def test_an_event_with_an_id_that_is_there_changes_nothing(store: Store) -> None:
    first, second = events("a", JobEventKind.EXITED, JobEventKind.EXITED)
    store.commit([*gang("a"), first, KeepEvent(event=replace(second.event, text="another text"))])
    store.commit([KeepEvent(event=replace(first.event, rank=1)), second])

    assert [(event.rank, event.text) for event in store.events(JobId("a"), 0, 9)] == [(None, "text"), (1, "text")]


def test_events_go_with_their_job_and_with_their_attempt(store: Store) -> None:
    again = KeepEvent(event=replace(events("a", JobEventKind.PLACED)[0].event, attempt=2))
    store.commit([*gang("a"), *gang("b", sequence=2), *events("a", JobEventKind.PLACED), again])
    store.commit(events("b", JobEventKind.PLACED))

    store.commit([DropEvents(job=JobId("a"), attempt=1)])
    assert [event.attempt for event in store.events(JobId("a"), 0, 9)] == [2]

    store.commit([DropJob(job=JobId("b"))])
    assert store.events(JobId("b"), 0, 9) == ()


def test_an_event_of_a_job_that_is_not_there_is_refused_with_all_beside_it(store: Store) -> None:
    with pytest.raises(StoreError):
        store.commit([*gang("a"), *events("b", JobEventKind.PLACED)])

    assert store.load() == Snapshot()


def test_dropping_the_executions_of_an_attempt_keeps_the_attempt_and_all_others(store: Store) -> None:
    store.commit([*gang("a"), *gang("b", sequence=2), *puts(attempt("a", 2), execution("a", 2))])

    store.commit([*puts(execution("a", 1, 7)), DropExecutions(job=JobId("a"), attempt=1)])

    loaded = store.load()
    assert [(each.job, each.number) for each in loaded.attempts] == [("a", 1), ("a", 2), ("b", 1)]
    assert [each.id for each in loaded.executions] == ids(("a", 2, 0), ("b", 1, 0), ("b", 1, 1))


def test_the_executions_of_one_attempt_come_by_rank(store: Store) -> None:
    store.commit([*gang("a", size=11), *gang("b", sequence=2), *puts(attempt("a", 2), execution("a", 2))])

    assert store.executions(JobId("a"), 1) == tuple(execution("a", rank=rank) for rank in range(11))
    assert store.executions(JobId("a"), 2) == (execution("a", 2),)
    assert store.executions(JobId("a"), 3) == store.executions(JobId("nobody"), 1) == ()


def test_another_thread_may_ask_for_executions(store: Store) -> None:
    store.commit(gang("a"))

    with ThreadPoolExecutor(1) as other:
        assert len(other.submit(store.executions, JobId("a"), 1).result(60)) == 2


def test_dropping_a_node_keeps_its_executions(store: Store) -> None:
    store.commit([*gang("a"), *puts(node("node-1"), node("node-2"))])

    store.commit([DropNode(node=NodeId("node-1"))])

    loaded = store.load()
    assert [each.name for each in loaded.nodes] == ["node-2"]
    assert [each.node for each in loaded.executions] == ["node-1", "node-1"]


def test_dropping_what_is_not_there_changes_nothing(store: Store) -> None:
    store.commit(gang("a"))
    before = store.load()

    store.commit(
        [
            DropJob(job=JobId("b")),
            DropNode(node=NodeId("b")),
            DropProject(project="b"),
            DropExecutions(job=JobId("b"), attempt=1),
            DropExecutions(job=JobId("a"), attempt=2),
        ]
    )

    assert store.load() == before


def test_changes_apply_in_order(store: Store) -> None:
    store.commit([*gang("a"), *puts(node())])

    store.commit(
        [
            *puts(execution("a", rank=7)),
            DropJob(job=JobId("a")),
            *gang("a", size=1),
            DropNode(node=NodeId("node-1")),
            *puts(node(address="10.0.0.9")),
        ],
    )

    loaded = store.load()
    assert loaded.executions == (execution("a"),)
    assert loaded.nodes == (node(address="10.0.0.9"),)


def test_a_record_put_before_its_drop_is_gone(store: Store) -> None:
    store.commit([*gang("a"), DropJob(job=JobId("a")), *puts(node()), DropNode(node=NodeId("node-1"))])

    assert store.load() == Snapshot()


IMPOSSIBLE: dict[str, list[Change]] = {
    "an attempt without a job": [*puts(attempt("nobody"))],
    "an execution without a job": [*puts(execution("nobody"))],
    "an execution without an attempt": [*puts(execution("a", number=2))],
    "an execution of a dropped job": [DropJob(job=JobId("a")), *puts(execution("a"))],
}


@pytest.mark.parametrize("last", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_batch_with_an_impossible_change_changes_nothing(store: Store, last: list[Change]) -> None:
    store.commit([*gang("a"), *puts(node(), project())])
    before = store.load()
    drops = (DropNode(node=NodeId("node-1")), DropProject(project="vision"))

    with pytest.raises(StoreError):
        store.commit([*gang("b", sequence=2), *puts(node("node-2")), *drops, *last])

    assert store.load() == before
    store.commit(gang("b", sequence=2))
    assert [each.id for each in store.load().jobs] == ["a", "b"]


def test_two_thousand_executions_come_back_in_order(open_store: Open) -> None:
    open_store().commit(gang("a", size=2000))

    loaded = open_store().load()

    assert loaded.executions == tuple(execution("a", rank=rank) for rank in range(2000))


@pytest.mark.parametrize(
    "name", ["trajnostní-běh", "訓練", "🚂", 'it\'s "quoted"; DROP TABLE jobs', "a%b_c\\d", "line\nend"]
)
def test_any_name_is_only_a_name(store: Store, name: str) -> None:
    store.commit([*gang(name), *puts(node(name))])

    loaded = store.load()
    assert (loaded.jobs, loaded.nodes) == ((job(name),), (node(name),))

    store.commit([DropJob(job=JobId(name)), DropNode(node=NodeId(name))])
    assert store.load() == Snapshot()


def test_a_megabyte_of_inline_files_comes_back(open_store: Open) -> None:
    large = job("a", content=bytes(range(256)) * 4096)

    open_store().commit(puts(large))

    assert open_store().load().jobs == (large,)
