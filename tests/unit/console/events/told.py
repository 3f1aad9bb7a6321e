"""Happenings that the tests tell."""

from datetime import UTC, datetime
from typing import Any

from muster.domain.event import FleetEvent, FleetEventKind, JobEvent, JobEventKind, NodeEvent, NodeEventKind
from muster.domain.ids import JobId, NodeId
from muster.domain.notifications.happening import AnyEvent, EventPlace, Happening, ToldJob

AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def of_job(kind: JobEventKind = JobEventKind.FAILED, name: str = "train", **job: Any) -> Happening:
    """Something that happened to a job."""
    event = JobEvent(job=JobId("k3"), attempt=1, kind=kind, at=AT, text="rank 0 failed", nodes=(NodeId("a"),), number=7)
    told = ToldJob(**{"id": JobId("k3"), "name": name, "project": "vision", "owner": "ada", **job})
    return happening(event, told)


def of_node(kind: NodeEventKind = NodeEventKind.LOST) -> Happening:
    """Something that happened to a node."""
    return happening(NodeEvent(node=NodeId("gpu-7"), kind=kind, at=AT, number=3))


def of_fleet(project: str = "") -> Happening:
    """Something that happened to the fleet."""
    return happening(FleetEvent(kind=FleetEventKind.PROJECT_ADDED, at=AT, project=project, by="bob", number=4))


def happening(event: AnyEvent, job: ToldJob | None = None) -> Happening:
    """An event with the place of its reader."""
    return Happening(event=event, place=EventPlace().past(event), fleet="f1ee7", job=job)
