"""A store without a disk: for unit tests and the simulator."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, count, islice
from operator import attrgetter
from typing import TypeVar, assert_never

from coordinator.core.checkpoint_part import CheckpointPart, DropCheckpoint
from coordinator.core.quota_meter import QuotaMeter
from coordinator.core.records import (
    Attempt,
    Change,
    DropDepartment,
    DropEvents,
    DropExecutions,
    DropJob,
    DropNode,
    DropPool,
    DropProject,
    DropWindow,
    Execution,
    Job,
    KeepEvent,
    KeepSpent,
    KeepStoryEvent,
    Node,
    Put,
    Record,
    SpentChange,
    StoryChange,
    TrimSpent,
    TrimStory,
)
from coordinator.core.spent import SpentSums, SpentWaits, SpentWish
from coordinator.store.records.memory_accounts import MemoryAccounts
from coordinator.store.records.memory_stories import MemoryStories
from coordinator.store.store import Snapshot, StoreError, snapshot_of
from muster.domain.data.checkpoint import CheckpointId
from muster.domain.event import FLEET_SUBJECT, FleetEvent, JobEvent, NodeEvent, StoryEvent, node_subject
from muster.domain.fleet.access import Project
from muster.domain.fleet.pool import Pool
from muster.domain.fleet.quota import Department
from muster.domain.fleet.window import Window
from muster.domain.ids import ExecutionId, JobId, NodeId
from muster.domain.notifications.happening import EventPlace

Key = TypeVar("Key")
Value = TypeVar("Value")


class MemoryStore:
    """Keeps records for as long as it lives, also after `close`, so that a restart can be played through."""

    def __init__(self) -> None:
        self._jobs: dict[JobId, _Kept] = {}
        self._nodes: dict[NodeId, Node] = {}
        self._numbers = count(1)
        self._projects: dict[str, Project] = {}
        self._departments: dict[str, Department] = {}
        self._windows: dict[str, Window] = {}
        self._pools: dict[str, Pool] = {}
        self._meters: dict[tuple[str, str], QuotaMeter] = {}
        self._stories = MemoryStories()
        self._accounts = MemoryAccounts()

    def load(self) -> Snapshot:
        """Everything, as last committed."""
        kept = self._jobs.values()
        return snapshot_of(
            chain(
                (each.job for each in kept if each.job),
                (attempt for each in kept for attempt in each.attempts.values()),
                (execution for each in kept for execution in each.executions.values()),
                (part for each in kept for part in each.parts.values()),
                self._nodes.values(),
                self._projects.values(),
                self._departments.values(),
                self._windows.values(),
                self._pools.values(),
                self._meters.values(),
            )
        )

    def executions(self, job: JobId, attempt: int) -> tuple[Execution, ...]:
        """The executions of one attempt as last committed, by rank."""
        every = self._jobs.get(job, _Kept()).executions.values()
        return tuple(sorted((each for each in every if each.attempt == attempt), key=lambda each: each.rank))

    def events(self, job: JobId, after: int, most: int) -> tuple[JobEvent, ...]:
        """Events of a job after a number."""
        every = self._jobs.get(job, _Kept()).events.values()
        return tuple(islice((event for event in every if event.number > after), most))

    def node_events(self, node: NodeId, after: int, most: int) -> tuple[NodeEvent, ...]:
        """Events of a node after a number."""
        told = self._stories.events(node_subject(node), after, most)
        return tuple(event for event in told if isinstance(event, NodeEvent))

    def fleet_events(self, after: int, most: int) -> tuple[FleetEvent, ...]:
        """Events of the fleet after a number."""
        told = self._stories.events(FLEET_SUBJECT, after, most)
        return tuple(event for event in told if isinstance(event, FleetEvent))

    def all_job_events(self, after: int, most: int) -> tuple[JobEvent, ...]:
        """Events of all jobs after a number."""
        every = (event for kept in self._jobs.values() for event in kept.events.values() if event.number > after)
        return tuple(sorted(every, key=attrgetter("number"))[:most])

    def all_stories(self, after: int, most: int) -> tuple[StoryEvent, ...]:
        """Events of all nodes and of the fleet after a number."""
        return self._stories.all_events(after, most)

    def newest_place(self) -> EventPlace:
        """The numbers of the newest events."""
        events = (event.number for kept in self._jobs.values() for event in kept.events.values())
        return EventPlace(max(events, default=0), self._stories.newest)

    def spent(self, wish: SpentWish) -> SpentSums:
        """What attempts have held in a span of time."""
        return self._accounts.sums(wish)

    def waits(self, wish: SpentWish, seen_at: datetime) -> tuple[SpentWaits, ...]:
        """How long attempts were in the queue, by group."""
        return self._accounts.waits(wish, seen_at)

    def commit(self, changes: Sequence[Change]) -> None:
        """Apply all changes, or none if one is impossible."""
        draft = _Draft(self._jobs, self._numbers, self._meters)
        for change in changes:
            draft.take(change)
        for job, kept in draft.jobs.items():
            kept.check(job)
        _settle(self._jobs, {job: None if kept.job is None else kept for job, kept in draft.jobs.items()})
        _settle(self._nodes, draft.nodes)
        _settle(self._projects, draft.projects)
        _settle(self._departments, draft.departments)
        _settle(self._windows, draft.windows)
        _settle(self._pools, draft.pools)
        _settle(self._meters, draft.meters)
        self._stories.apply(draft.stories)
        self._accounts.apply(draft.spent)

    def close(self) -> None:
        """Nothing to let go of."""


class _Draft:
    """What a commit makes of the records that it touches; None: it drops one."""

    def __init__(
        self, kept: Mapping[JobId, "_Kept"], numbers: Iterator[int], meters: Iterable[tuple[str, str]]
    ) -> None:
        self._kept = kept
        self._meters = meters
        self._numbers = numbers
        self.jobs: dict[JobId, _Kept] = {}
        self.nodes: dict[NodeId, Node | None] = {}
        self.projects: dict[str, Project | None] = {}
        self.departments: dict[str, Department | None] = {}
        self.windows: dict[str, Window | None] = {}
        self.pools: dict[str, Pool | None] = {}
        self.meters: dict[tuple[str, str], QuotaMeter | None] = {}
        self.stories: list[StoryChange] = []
        self.spent: list[SpentChange] = []

    def take(self, change: Change) -> None:
        match change:
            case Put(record=record):
                self.put(record)
            case DropJob(job=job):
                self.jobs[job] = _Kept()
            case DropExecutions(job=job, attempt=number):
                self.of_job(job).drop(number)
            case DropCheckpoint(job=job, checkpoint=checkpoint):
                self.of_job(job).drop_checkpoint(checkpoint)
            case DropNode() | DropProject() | DropDepartment() | DropWindow() | DropPool():
                self.drop(change)
            case KeepEvent(event=event):
                self.of_job(event.job).keep(replace(event, number=next(self._numbers)))
            case KeepStoryEvent() | TrimStory():
                self.stories.append(change)
            case KeepSpent() | TrimSpent():
                self.spent.append(change)
            case DropEvents(job=job, attempt=number):
                self.of_job(job).drop_events(number)
            case _:
                assert_never(change)

    def drop(self, change: DropNode | DropProject | DropDepartment | DropWindow | DropPool) -> None:
        match change:
            case DropNode(node=node):
                self.nodes[node] = None
            case DropProject(project=project):
                self.projects[project] = None
                self.meters.update({key: None for key in (*self._meters, *self.meters) if key[0] == project})
            case DropDepartment(department=department):
                self.departments[department] = None
            case DropWindow(window=window):
                self.windows[window] = None
            case DropPool(pool=pool):
                self.pools[pool] = None
            case _:
                assert_never(change)

    def put(self, record: Record) -> None:
        match record:
            case Node():
                self.nodes[record.name] = record
            case Project():
                self.projects[record.name] = record
            case Department():
                self.departments[record.name] = record
            case Window():
                self.windows[record.name] = record
            case Pool():
                self.pools[record.name] = record
            case QuotaMeter():
                self.meters[record.project, record.pool] = record
            case Job():
                self.of_job(record.id).put(record)
            case Attempt() | Execution() | CheckpointPart():
                self.of_job(record.job).put(record)
            case _:
                assert_never(record)

    def of_job(self, job: JobId) -> "_Kept":
        """What belongs to a job, to be changed."""
        if job not in self.jobs:
            self.jobs[job] = self._kept.get(job, _Kept()).copy()
        return self.jobs[job]


def _settle(kept: dict[Key, Value], drafted: Mapping[Key, Value | None]) -> None:
    """Keep what was drafted, the newest last."""
    for key, value in drafted.items():
        kept.pop(key, None)
        if value is not None:
            kept[key] = value


@dataclass(slots=True, kw_only=True)
class _Kept:
    """What belongs to one job."""

    job: Job | None = None
    attempts: dict[int, Attempt] = field(default_factory=dict)
    executions: dict[ExecutionId, Execution] = field(default_factory=dict)
    parts: dict[tuple[CheckpointId, int], CheckpointPart] = field(default_factory=dict)
    events: dict[str, JobEvent] = field(default_factory=dict)
    """Events by id, in the order of their numbers."""

    def copy(self) -> "_Kept":
        return _Kept(
            job=self.job,
            attempts=dict(self.attempts),
            executions=dict(self.executions),
            parts=dict(self.parts),
            events=dict(self.events),
        )

    def put(self, record: Job | Attempt | Execution | CheckpointPart) -> None:
        match record:
            case Job():
                self.job = record
            case Attempt():
                self.attempts[record.number] = record
            case Execution():
                self.executions[record.id] = record
            case CheckpointPart():
                self.parts[record.id, record.rank] = record
            case _:
                assert_never(record)

    def drop(self, attempt: int) -> None:
        kept = self.executions.items()
        self.executions = {key: execution for key, execution in kept if execution.attempt != attempt}

    def drop_checkpoint(self, checkpoint: CheckpointId) -> None:
        self.parts = {key: part for key, part in self.parts.items() if part.id != checkpoint}

    def keep(self, event: JobEvent) -> None:
        self.events.setdefault(event.id, event)

    def drop_events(self, attempt: int) -> None:
        self.events = {key: event for key, event in self.events.items() if event.attempt != attempt}

    def check(self, job: JobId) -> None:
        if self.job is None and (self.attempts or self.executions or self.parts or self.events):
            raise StoreError(f"cannot store what belongs to {job}: there is no such job")
        for execution in self.executions.values():
            if execution.attempt not in self.attempts:
                raise StoreError(f"cannot store execution {execution.id}: there is no attempt {execution.attempt}")
