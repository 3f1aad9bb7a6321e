"""Places of readers, types of events and CloudEvents."""

from datetime import UTC, datetime

import pytest

from muster.domain.event import FleetEvent, FleetEventKind, JobEvent, JobEventKind, NodeEvent, NodeEventKind
from muster.domain.ids import JobId, NodeId
from muster.domain.notifications.cloud_event import cloud_event
from muster.domain.notifications.event_types import EVENT_KINDS, EVENT_TYPES, EventSeverity, severity_of
from muster.domain.notifications.happening import AnyEvent, EventPlace, Happening, ToldJob

AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
FAILED = JobEvent(
    job=JobId("k3"),
    attempt=2,
    kind=JobEventKind.FAILED,
    at=AT,
    text="rank 3 failed",
    rank=3,
    ranks="3",
    nodes=(NodeId("a"),),
    number=7,
)
LOST = NodeEvent(node=NodeId("a"), kind=NodeEventKind.LOST, at=AT, number=4)
ADDED = FleetEvent(kind=FleetEventKind.PROJECT_ADDED, at=AT, project="red", by="bob", number=5)
JOB = ToldJob(id=JobId("k3"), name="train", project="red", owner="ada", labels={"paper": "icml"})


def happening(event: AnyEvent) -> Happening:
    return Happening(
        event=event, place=EventPlace(7, 5), fleet="f1ee7", job=JOB if isinstance(event, JobEvent) else None
    )


@pytest.mark.parametrize("place", [EventPlace(), EventPlace(12, 7), EventPlace(10**17, 0)])
def test_a_place_is_read_back_from_its_text(place: EventPlace) -> None:
    assert EventPlace.parse(str(place)) == place


@pytest.mark.parametrize("text", ["", "7", "7-", "-7", "a-1", "1-1-1", "-1-1", "²-1", "1-" + "9" * 19])
def test_what_is_no_place_is_none(text: str) -> None:
    assert EventPlace.parse(text) is None


def test_a_reader_is_past_an_event_in_the_line_of_its_kind() -> None:
    assert EventPlace(1, 2).past(FAILED) == EventPlace(7, 2)
    assert EventPlace(1, 2).past(LOST) == EventPlace(1, 4)
    assert EventPlace(9, 9).past(ADDED) == EventPlace(9, 9)


def test_every_kind_of_event_has_a_type_of_its_own() -> None:
    assert len(EVENT_TYPES) == len(EVENT_KINDS)
    assert EVENT_TYPES["muster.job.failed"] is JobEventKind.FAILED
    assert EVENT_TYPES["muster.node.lost"] is NodeEventKind.LOST
    assert EVENT_TYPES["muster.fleet.project_added"] is FleetEventKind.PROJECT_ADDED


def test_failures_are_graver_than_what_goes_as_it_should() -> None:
    assert [severity_of(kind) for kind in (JobEventKind.FAILED, JobEventKind.ATTEMPT_FAILED, JobEventKind.RUNNING)] == [
        EventSeverity.CRITICAL,
        EventSeverity.WARNING,
        EventSeverity.INFO,
    ]
    assert EventSeverity.CRITICAL.covers(EventSeverity.WARNING)
    assert not EventSeverity.INFO.covers(EventSeverity.WARNING)


def test_an_event_of_a_job_is_a_cloud_event_with_its_job() -> None:
    told = cloud_event(happening(FAILED))

    assert (told.specversion, told.id, told.type, told.subject) == (
        "1.0",
        "job/k3/2/failed/3",
        "muster.job.failed",
        "jobs/k3",
    )
    assert (told.source, told.time, told.datacontenttype) == ("muster://f1ee7", AT, "application/json")
    assert told.data == {
        "severity": "critical",
        "text": "rank 3 failed",
        "by": "",
        "attempt": 2,
        "rank": 3,
        "ranks": "3",
        "nodes": ["a"],
        "job": {"id": "k3", "name": "train", "project": "red", "owner": "ada", "labels": {"paper": "icml"}},
    }


def test_events_of_nodes_and_of_the_fleet_say_whose_they_are() -> None:
    lost, added = cloud_event(happening(LOST)), cloud_event(happening(ADDED))

    assert (lost.subject, lost.data["node"], lost.data["text"]) == ("nodes/a", "a", "node is lost")
    assert (added.subject, added.data["project"], added.data["by"]) == ("fleet", "red", "bob")
