"""CloudEvents 1.0: events in the form that other systems understand, as structured JSON.

See https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_never

from muster.domain.event import FleetEvent, JobEvent, NodeEvent
from muster.domain.notifications.event_types import sentence_of, severity_of, type_of
from muster.domain.notifications.happening import AnyEvent, Happening, ToldJob

CLOUD_EVENT_TYPE = "application/cloudevents+json"
"""The media type of one event."""
SPEC_VERSION = "1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudEvent:
    """An event with the attributes that CloudEvents have."""

    specversion: str = SPEC_VERSION
    id: str
    """Follows from what the event says, so whoever gets it twice can know it."""
    source: str
    """The fleet, as `muster://ID`."""
    type: str
    """What has happened, such as `muster.job.failed`."""
    subject: str
    """What it is about, such as `jobs/k3f0abcd`, `nodes/gpu-7` or `fleet`."""
    time: datetime
    datacontenttype: str = "application/json"
    data: Mapping[str, Any]
    """`severity`, `text` for people, `by` whom it was asked for, and what an event of its kind has besides."""


def cloud_event(happening: Happening) -> CloudEvent:
    """An event as a CloudEvent."""
    event = happening.event
    shared = {"severity": severity_of(event.kind).value, "text": sentence_of(event), "by": event.by}
    return CloudEvent(
        id=event.id,
        source=f"muster://{happening.fleet}",
        type=type_of(event.kind),
        subject=subject_of(event),
        time=event.at,
        data={**shared, **_particulars(event, happening.job)},
    )


def subject_of(event: AnyEvent) -> str:
    """What an event is about, such as `jobs/k3f0abcd`, `nodes/gpu-7` or `fleet`."""
    match event:
        case JobEvent(job=job):
            return f"jobs/{job}"
        case NodeEvent(node=node):
            return f"nodes/{node}"
        case FleetEvent():
            return "fleet"
        case _:
            assert_never(event)


def _particulars(event: AnyEvent, job: ToldJob | None) -> Mapping[str, Any]:
    match event:
        case JobEvent(attempt=attempt, rank=rank, ranks=ranks, nodes=nodes):
            found = {"attempt": attempt, "rank": rank, "ranks": ranks, "nodes": list(nodes)}
            return found if job is None else found | {"job": _job(job)}
        case NodeEvent(node=node):
            return {"node": node}
        case FleetEvent(project=project):
            return {"project": project}
        case _:
            assert_never(event)


def _job(job: ToldJob) -> dict[str, Any]:
    return {"id": job.id, "name": job.name, "project": job.project, "owner": job.owner, "labels": dict(job.labels)}
