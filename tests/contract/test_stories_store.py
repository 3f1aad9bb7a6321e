"""What every store promises of the stories of nodes and of the fleet."""

from dataclasses import replace

import pytest

from coordinator.core.records import DropJob, DropNode, KeepStoryEvent, TrimStory
from coordinator.store.store import Store, StoreError
from muster.domain.event import FLEET_SUBJECT, JobEventKind, node_subject
from muster.domain.ids import JobId, NodeId
from muster.domain.notifications.happening import EventPlace
from tests.contract.records import events, fleet_event, gang, job, node, node_events, puts
from tests.contract.stores import Open


def test_the_stories_of_nodes_and_of_the_fleet_come_in_order_and_in_pages(open_store: Open) -> None:
    store = open_store()
    store.commit([*node_events("a", 2), fleet_event("red"), *node_events("b", 1)])
    store.commit([*node_events("a", 1, first=2), fleet_event("blue")])

    first = open_store().node_events(NodeId("a"), 0, 2)
    rest = open_store().node_events(NodeId("a"), first[-1].number, 2)
    fleet = open_store().fleet_events(0, 9)

    told = [replace(event, number=0) for event in (*first, *rest)]
    assert told == [kept.event for kept in node_events("a", 3)]
    assert [replace(event, number=0) for event in fleet] == [fleet_event("red").event, fleet_event("blue").event]
    numbers = [event.number for event in (*first, *rest)]
    assert numbers == sorted({*numbers})
    assert open_store().fleet_events(fleet[-1].number, 9) == ()
    assert open_store().node_events(NodeId("nobody"), 0, 9) == ()


def test_an_event_of_a_node_with_an_id_that_is_there_changes_nothing(store: Store) -> None:
    [kept] = node_events("a", 1)
    store.commit([kept, fleet_event()])
    store.commit([KeepStoryEvent(event=replace(kept.event, text="another text")), fleet_event()])

    assert [event.text for event in store.node_events(NodeId("a"), 0, 9)] == ["text 0"]
    assert len(store.fleet_events(0, 9)) == 1


def test_a_trimmed_story_keeps_its_newest_events_and_all_of_others(store: Store) -> None:
    a, b = node_subject(NodeId("a")), node_subject(NodeId("b"))
    store.commit([*node_events("a", 3), *node_events("b", 2), fleet_event("red"), fleet_event("blue")])

    store.commit([*node_events("a", 1, first=3), *(TrimStory(subject=each, keep=2) for each in (a, b))])
    store.commit([TrimStory(subject=FLEET_SUBJECT, keep=1), TrimStory(subject=node_subject(NodeId("nobody")), keep=1)])

    assert [event.text for event in store.node_events(NodeId("a"), 0, 9)] == ["text 2", "text 3"]
    assert [event.text for event in store.node_events(NodeId("b"), 0, 9)] == ["text 0", "text 1"]
    assert [event.project for event in store.fleet_events(0, 9)] == ["blue"]


def test_all_stories_together_are_trimmed_to_their_newest_events(store: Store) -> None:
    store.commit([*node_events("a", 3), *node_events("b", 1), fleet_event()])

    store.commit([TrimStory(subject=None, keep=3), *node_events("c", 1)])

    assert [event.text for event in store.node_events(NodeId("a"), 0, 9)] == ["text 2"]
    assert [len(store.node_events(NodeId(each), 0, 9)) for each in "bc"] == [1, 1]
    assert len(store.fleet_events(0, 9)) == 1


def test_an_event_after_a_trim_stays_although_the_story_is_longer(store: Store) -> None:
    store.commit(
        [*node_events("a", 2), TrimStory(subject=node_subject(NodeId("a")), keep=1), *node_events("a", 1, first=2)]
    )

    assert [event.text for event in store.node_events(NodeId("a"), 0, 9)] == ["text 1", "text 2"]


def test_the_story_of_a_node_outlives_it(store: Store) -> None:
    store.commit([*puts(node("a")), *node_events("a", 1)])

    store.commit([DropNode(node=NodeId("a"))])

    assert len(store.node_events(NodeId("a"), 0, 9)) == 1


def test_nothing_of_a_story_is_stored_with_changes_that_are_refused(store: Store) -> None:
    with pytest.raises(StoreError):
        store.commit([*node_events("a", 1), *events("b", JobEventKind.PLACED)])

    assert store.node_events(NodeId("a"), 0, 9) == ()


def test_events_of_all_jobs_and_of_all_stories_come_in_the_order_in_which_they_were_stored(open_store: Open) -> None:
    store = open_store()
    store.commit([*gang("a"), *gang("b", sequence=2), *events("b", JobEventKind.PLACED), *node_events("n", 1)])
    store.commit([*events("a", JobEventKind.PLACED, JobEventKind.RUNNING), fleet_event("red")])

    first, *rest = open_store().all_job_events(0, 9)
    stories = open_store().all_stories(0, 9)

    assert [(event.job, event.kind) for event in (first, *rest)] == [("b", "placed"), ("a", "placed"), ("a", "running")]
    assert store.all_job_events(first.number, 1) == (rest[0],)
    assert [event.kind for event in stories] == ["cordoned", "project_added"]
    assert store.all_stories(stories[0].number, 9) == stories[1:]
    assert open_store().newest_place() == EventPlace(rest[-1].number, stories[-1].number)


def test_numbers_of_events_that_are_gone_are_not_given_again(open_store: Open) -> None:
    store = open_store()
    store.commit([*gang("a"), *events("a", JobEventKind.PLACED), *gang("b", sequence=2), *node_events("n", 2)])
    store.commit(events("b", JobEventKind.PLACED))
    known = store.newest_place()

    store.commit([DropJob(job=JobId("b")), TrimStory(subject=node_subject(NodeId("n")), keep=0)])
    store = open_store()
    store.commit([*puts(job("c", sequence=3)), *events("c", JobEventKind.SUBMITTED), fleet_event()])

    assert [event.job for event in store.all_job_events(known.jobs, 9)] == ["c"]
    assert [event.kind for event in store.all_stories(known.stories, 9)] == ["project_added"]


def test_a_store_without_events_has_its_newest_place_at_the_beginning(store: Store) -> None:
    assert store.newest_place() == EventPlace()
