"""Events of all kinds in one line, with their places and whose they are."""

from collections.abc import Sequence

from muster.domain.event import FleetEvent, JobEvent, NodeEvent
from muster.domain.ids import JobId
from muster.domain.notifications.happening import AnyEvent, EventPlace, Happening, ToldJob
from muster.rpc.v1 import events_pb2 as pb
from muster.wire import checks
from muster.wire.checks import WireError
from muster.wire.events import job_event_from_wire, job_event_to_wire
from muster.wire.stories import fleet_event_from_wire, fleet_event_to_wire, node_event_from_wire, node_event_to_wire


def event_place_to_wire(place: EventPlace) -> pb.EventPlace:
    """How far a reader of all events is."""
    return pb.EventPlace(jobs=place.jobs, stories=place.stories)


def event_place_from_wire(message: pb.EventPlace) -> EventPlace:
    """How far a reader of all events is; raises WireError."""
    return EventPlace(
        jobs=checks.between(message.jobs, 0, checks.MAX_BYTES, "EventPlace.jobs"),
        stories=checks.between(message.stories, 0, checks.MAX_BYTES, "EventPlace.stories"),
    )


def happening_to_wire(happening: Happening) -> pb.Happening:
    """An event, and whose it is."""
    found = pb.Happening(
        place=event_place_to_wire(happening.place),
        fleet=happening.fleet,
        job=None if happening.job is None else _told_job_to_wire(happening.job),
    )
    match happening.event:
        case JobEvent() as event:
            found.job_event.CopyFrom(job_event_to_wire(event))
        case NodeEvent() as event:
            found.node_event.CopyFrom(node_event_to_wire(event))
        case FleetEvent() as event:
            found.fleet_event.CopyFrom(fleet_event_to_wire(event))
    return found


def happening_from_wire(message: pb.Happening) -> Happening:
    """An event, and whose it is; raises WireError."""
    checks.require(message, "place")
    event = _event_from_wire(message)
    job = _told_job_from_wire(message.job) if message.HasField("job") else None
    if isinstance(event, JobEvent) != (job is not None):
        raise WireError("Happening.job", "must be there with events of jobs, and with no others")
    return Happening(
        event=event,
        place=event_place_from_wire(message.place),
        fleet=checks.text(message.fleet, "Happening.fleet"),
        job=job,
    )


def happenings_to_wire(happenings: Sequence[Happening], place: EventPlace) -> pb.Happenings:
    """A page of events, and where its reader goes on."""
    return pb.Happenings(happenings=map(happening_to_wire, happenings), place=event_place_to_wire(place))


def _event_from_wire(message: pb.Happening) -> AnyEvent:
    match message.WhichOneof("event"):
        case "job_event":
            return job_event_from_wire(message.job_event)
        case "node_event":
            return node_event_from_wire(message.node_event)
        case "fleet_event":
            return fleet_event_from_wire(message.fleet_event)
        case _:
            raise WireError("Happening.event", "must be there")


def _told_job_to_wire(job: ToldJob) -> pb.ToldJob:
    return pb.ToldJob(id=job.id, name=job.name, project=job.project, owner=job.owner, labels=job.labels)


def _told_job_from_wire(message: pb.ToldJob) -> ToldJob:
    checks.few(message.labels, "ToldJob.labels")
    return ToldJob(
        id=JobId(checks.identifier(message.id, "ToldJob.id")),
        name=checks.text(message.name, "ToldJob.name"),
        project=checks.text(message.project, "ToldJob.project"),
        owner=checks.text(message.owner, "ToldJob.owner"),
        labels={
            checks.text(key, "ToldJob.labels"): checks.text(value, "ToldJob.labels")
            for key, value in message.labels.items()
        },
    )
