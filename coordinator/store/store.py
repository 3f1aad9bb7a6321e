"""The contract of a store; `tests/contract/test_store.py` holds every store to it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from coordinator.core.checkpoint_part import CheckpointPart
from coordinator.core.quota_meter import QuotaMeter
from coordinator.core.records import Attempt, Change, Execution, Job, Node, Record
from coordinator.core.spent import SpentSums, SpentWaits, SpentWish
from muster.domain.errors import MusterError
from muster.domain.event import FleetEvent, JobEvent, NodeEvent, StoryEvent
from muster.domain.fleet.access import Project
from muster.domain.fleet.pool import Pool
from muster.domain.fleet.quota import Department
from muster.domain.fleet.window import Window
from muster.domain.ids import JobId, NodeId
from muster.domain.notifications.happening import EventPlace


class StoreError(MusterError):
    """State could not be kept or read; says where, why and what to do. Nothing of the change at hand was stored."""


class StoreFullError(StoreError):
    """State could not be kept because the disk is full, or looks like it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that a store holds."""

    jobs: tuple[Job, ...] = ()
    """The jobs by sequence."""
    attempts: tuple[Attempt, ...] = ()
    """The attempts by job sequence, then number."""
    executions: tuple[Execution, ...] = ()
    """The executions by job sequence, then attempt, then rank."""
    parts: tuple[CheckpointPart, ...] = ()
    """Parts of checkpoints by job sequence, then attempt, name and rank."""
    nodes: tuple[Node, ...] = ()
    """The nodes by name."""
    projects: tuple[Project, ...] = ()
    """The projects by name."""
    departments: tuple[Department, ...] = ()
    """The departments by name."""
    windows: tuple[Window, ...] = ()
    """The windows by name."""
    pools: tuple[Pool, ...] = ()
    """What is said of pools, by name."""
    meters: tuple[QuotaMeter, ...] = ()
    """Meters of quotas, by project and pool."""

    @property
    def records(self) -> tuple[Record, ...]:
        """All of them, those that others belong to first."""
        units: tuple[Record, ...] = (*self.departments, *self.projects, *self.pools, *self.meters)
        of_jobs: tuple[Record, ...] = (*self.jobs, *self.attempts, *self.executions, *self.parts)
        return (*units, *self.nodes, *of_jobs, *self.windows)


class Store(Protocol):
    """Keeps records durably. Synchronous: the engine calls it from its one writer thread, and others only read."""

    def load(self) -> Snapshot:
        """Everything, as last committed."""
        ...

    def executions(self, job: JobId, attempt: int) -> tuple[Execution, ...]:
        """The executions of one attempt as last committed, by rank; any thread may ask, also while another one
        commits.
        """
        ...

    def events(self, job: JobId, after: int, most: int) -> tuple[JobEvent, ...]:
        """Events of a job with a higher number than `after`, by number, at most so many; any thread may ask."""
        ...

    def node_events(self, node: NodeId, after: int, most: int) -> tuple[NodeEvent, ...]:
        """Events of a node, also of a removed one, with a higher number than `after`; as `events`."""
        ...

    def fleet_events(self, after: int, most: int) -> tuple[FleetEvent, ...]:
        """Events of the fleet with a higher number than `after`; as `events`."""
        ...

    def all_job_events(self, after: int, most: int) -> tuple[JobEvent, ...]:
        """Events of all jobs with a higher number than `after`; as `events`. No number is given twice."""
        ...

    def all_stories(self, after: int, most: int) -> tuple[StoryEvent, ...]:
        """Events of all nodes and of the fleet with a higher number than `after`; as `all_job_events`."""
        ...

    def newest_place(self) -> EventPlace:
        """The numbers of the newest events of jobs and of the other stories that are stored; any thread may ask."""
        ...

    def spent(self, wish: SpentWish) -> SpentSums:
        """What attempts have held that touch a span of time, also those of deleted jobs; any thread may ask."""
        ...

    def waits(self, wish: SpentWish, seen_at: datetime) -> tuple[SpentWaits, ...]:
        """How long attempts were in the queue that were placed in a span of time, and had ended at a moment, by group.

        Any thread may ask.
        """
        ...

    def commit(self, changes: Sequence[Change]) -> None:
        """Apply all changes, in order, in one transaction.

        When it returns they are durable; when it raises StoreError, none of them is there. After the last change
        every attempt, event and part of a checkpoint must have its job and every execution its attempt; in between any
        order will do.
        """
        ...

    def close(self) -> None:
        """Let go of files and connections; what was committed stays."""
        ...


def snapshot_of(records: Iterable[Record]) -> Snapshot:
    """All these records in the order that the contract asks for."""
    found = _Sorted()
    for record in records:
        found.add(record)
    return found.snapshot()


class _Sorted:
    """Records by kind."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.attempts: list[Attempt] = []
        self.executions: list[Execution] = []
        self.parts: list[CheckpointPart] = []
        self.nodes: list[Node] = []
        self.units: list[Project | Department] = []
        self.windows: list[Window] = []
        self.pools: list[Pool] = []
        self.meters: list[QuotaMeter] = []

    def add(self, record: Record) -> None:
        match record:
            case Execution():
                self.executions.append(record)
            case Attempt():
                self.attempts.append(record)
            case Job():
                self.jobs.append(record)
            case CheckpointPart():
                self.parts.append(record)
            case Node():
                self.nodes.append(record)
            case Project() | Department():
                self.units.append(record)
            case Window():
                self.windows.append(record)
            case Pool():
                self.pools.append(record)
            case QuotaMeter():
                self.meters.append(record)

    def snapshot(self) -> Snapshot:
        jobs = sorted(self.jobs, key=lambda job: (job.sequence, job.id))
        place = {job.id: number for number, job in enumerate(jobs)}
        units = sorted(self.units, key=lambda unit: unit.name)
        return Snapshot(
            jobs=tuple(jobs),
            attempts=tuple(sorted(self.attempts, key=lambda attempt: (place[attempt.job], attempt.number))),
            executions=tuple(sorted(self.executions, key=lambda each: (place[each.job], each.attempt, each.rank))),
            parts=tuple(sorted(self.parts, key=lambda each: (place[each.job], each.id, each.rank))),
            nodes=tuple(sorted(self.nodes, key=lambda node: node.name)),
            projects=tuple(unit for unit in units if isinstance(unit, Project)),
            departments=tuple(unit for unit in units if isinstance(unit, Department)),
            windows=tuple(sorted(self.windows, key=lambda window: window.name)),
            pools=tuple(sorted(self.pools, key=lambda pool: pool.name)),
            meters=tuple(sorted(self.meters, key=lambda meter: (meter.project, meter.pool))),
        )
