"""Happenings: events of all kinds in one line, each with its place and with whose it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.domain.event import FleetEvent, JobEvent, NodeEvent
from muster.domain.ids import JobId

AnyEvent = JobEvent | NodeEvent | FleetEvent
"""An event of whatever kind."""
MOST_DIGITS = 18
"""Digits of the number of an event."""


class EventPlace(NamedTuple):
    """How far a reader of all events is: jobs count their events, and nodes count theirs together with the fleet."""

    jobs: int = 0
    """The number of the last event of a job."""
    stories: int = 0
    """The number of the last event of a node or of the fleet."""

    def __str__(self) -> str:
        return f"{self.jobs}-{self.stories}"

    @classmethod
    def parse(cls, text: str) -> "EventPlace | None":
        """The place that a text like `12-7` says; None: it says none."""
        jobs, _, stories = text.partition("-")
        return cls(int(jobs), int(stories)) if _is_number(jobs) and _is_number(stories) else None

    def past(self, event: AnyEvent) -> "EventPlace":
        """The place of a reader who has been told this event, too."""
        if isinstance(event, JobEvent):
            return self._replace(jobs=max(self.jobs, event.number))
        return self._replace(stories=max(self.stories, event.number))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldJob:
    """What is said of a job beside its event."""

    id: JobId
    name: str
    project: str
    owner: str
    """The account that submitted it."""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """An event, and what a reader of all events has to know beside it."""

    event: AnyEvent
    place: EventPlace
    """Where a reader goes on after it."""
    fleet: str
    """The id of the fleet."""
    job: ToldJob | None = None
    """The job, of an event of a job."""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS
