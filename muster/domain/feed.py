"""The feed: what the coordinator knows and how it changes, for programs that keep a picture of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from muster.domain.fleet.access import Project
from muster.domain.fleet.node import NodeView
from muster.domain.fleet.standing_view import QueueLine
from muster.domain.jobs.view import JobView

FEED_QUEUE = 200
"""Lines of the queue that a feed tells."""


class FeedPart(StrEnum):
    """What a reader of the feed can ask for."""

    JOBS = "jobs"
    NODES = "nodes"
    PROJECTS = "projects"
    QUEUE = "queue"


class FeedKey(NamedTuple):
    """A thing that the feed tells of."""

    part: FeedPart
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPlace:
    """How far a reader has come."""

    instance: str = ""
    """A life of the coordinator and rights of the reader, for which `revision` means something; empty: none."""
    revision: int = 0
    """All changes up to this one are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedBatch:
    """Changes since the batch before; each thing as it is now, at its newest change."""

    place: FeedPlace
    """How far the reader has come with it."""
    anew: bool = False
    """Whether the reader forgets what it knew before this batch."""
    caught_up: bool = False
    """Whether nothing more was known when it was made."""
    complete_from: int = 0
    """The revision from which on everything is told that went; what went before may be missing."""
    jobs: Sequence[JobView] = ()
    nodes: Sequence[NodeView] = ()
    projects: Sequence[Project] = ()
    gone: Sequence[FeedKey] = field(default=())
    """What is there no longer."""
    queue: Sequence[QueueLine] | None = None
    """The first of those that wait; None: as before."""
