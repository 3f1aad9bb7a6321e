"""Types of events as other systems see them: one table, with how grave each is."""

from collections.abc import Mapping
from enum import StrEnum
from typing import assert_never

from muster.domain.event import FleetEvent, FleetEventKind, JobEvent, JobEventKind, NodeEvent, NodeEventKind
from muster.domain.notifications.happening import AnyEvent

EventKind = JobEventKind | NodeEventKind | FleetEventKind
"""What can happen, to whatever."""


class EventSeverity(StrEnum):
    """How much an event matters to somebody who does not look all the time; each more than those before it."""

    INFO = "info"  #: it went as it should
    WARNING = "warning"  #: somebody may want to look
    CRITICAL = "critical"  #: something has failed, or is lost

    def covers(self, least: "EventSeverity") -> bool:
        """Whether it is at least as grave."""
        order = list(EventSeverity)
        return order.index(self) >= order.index(least)


_GRAVER: Mapping[EventKind, EventSeverity] = {
    JobEventKind.NO_ROOM: EventSeverity.WARNING,
    JobEventKind.GPU_MEMORY: EventSeverity.WARNING,
    JobEventKind.IDLE: EventSeverity.WARNING,
    JobEventKind.RANK_DIFFERS: EventSeverity.WARNING,
    JobEventKind.OUTPUTS_LOST: EventSeverity.WARNING,
    JobEventKind.ATTEMPT_FAILED: EventSeverity.WARNING,
    JobEventKind.FAILED: EventSeverity.CRITICAL,
    NodeEventKind.UNREACHABLE: EventSeverity.WARNING,
    NodeEventKind.INVENTORY_CHANGED: EventSeverity.WARNING,
    NodeEventKind.LOST: EventSeverity.CRITICAL,
    NodeEventKind.GPU_FAULT: EventSeverity.CRITICAL,
    FleetEventKind.COORDINATOR_STARTED: EventSeverity.WARNING,
    FleetEventKind.RESTORED: EventSeverity.WARNING,
    FleetEventKind.AUTHORITY_ROTATING: EventSeverity.WARNING,
    FleetEventKind.DELIVERY_FAILING: EventSeverity.WARNING,
    FleetEventKind.COORDINATOR_AWAY: EventSeverity.CRITICAL,
}


def type_of(kind: EventKind) -> str:
    """The type of events of a kind, such as `muster.job.failed`."""
    return f"muster.{_subject_of(kind)}.{kind.value}"


def severity_of(kind: EventKind) -> EventSeverity:
    """How grave events of a kind are."""
    return _GRAVER.get(kind, EventSeverity.INFO)


def _subject_of(kind: EventKind) -> str:
    match kind:
        case JobEventKind():
            return "job"
        case NodeEventKind():
            return "node"
        case FleetEventKind():
            return "fleet"
        case _:
            assert_never(kind)


EVENT_KINDS: tuple[EventKind, ...] = (*JobEventKind, *NodeEventKind, *FleetEventKind)
"""Everything that can happen."""
EVENT_TYPES: Mapping[str, EventKind] = {type_of(kind): kind for kind in EVENT_KINDS}
"""Every type of event, and what has happened then."""


def sentence_of(event: AnyEvent) -> str:
    """What has happened, for people, without the job or the node."""
    match event:
        case JobEvent():
            return event.text
        case NodeEvent() | FleetEvent():
            return event.sentence
        case _:
            assert_never(event)
