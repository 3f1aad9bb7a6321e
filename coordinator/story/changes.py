"""What of a turn is stored as events of jobs, nodes and the fleet, and which old ones go; all in its transaction."""

from collections.abc import Iterable
from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.notes import Changed, Noticed
from coordinator.core.records import Attempt, Change, DropEvents, KeepEvent, KeepStoryEvent, TrimStory
from coordinator.story.job_events import ATTEMPTS_KEPT, JobEventWriter, shortened
from coordinator.story.moves import Told
from muster.domain.event import FLEET_SUBJECT, NodeEventKind, StorySubject

NODE_EVENTS_KEPT = 100
"""Newest events of a node that are stored, also once it was removed."""
FLEET_EVENTS_KEPT = 1_000
"""Newest events of the fleet that are stored."""
STORIES_KEPT = 100_000
"""Newest events of all nodes and of the fleet that stay when a node is removed; names may come and go for ever."""


def event_changes(cluster: Cluster, stories: Iterable[Told], now: datetime) -> tuple[Change, ...]:
    """What of a turn is stored as events, and which old ones go; the cluster is as it is after the turn."""
    writer = JobEventWriter(cluster, now)
    found: list[Change] = []
    trimmed: dict[StorySubject | None, int] = {}
    for each in stories:
        match each:
            case Noticed(event=event):
                found.append(KeepStoryEvent(event=shortened(event)))
                trimmed[event.subject] = FLEET_EVENTS_KEPT if event.subject == FLEET_SUBJECT else NODE_EVENTS_KEPT
                if event.kind is NodeEventKind.REMOVED:
                    trimmed[None] = STORIES_KEPT
                continue
            case Changed(before=None, after=Attempt(job=job, number=number)) if number - ATTEMPTS_KEPT > 1:
                found.append(DropEvents(job=job, attempt=number - ATTEMPTS_KEPT))
        found += [KeepEvent(event=event) for event in writer.events(each)]
    return (*found, *(TrimStory(subject=subject, keep=keep) for subject, keep in trimmed.items()))
