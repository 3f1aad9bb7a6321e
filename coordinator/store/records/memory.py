"""A store without a disk: for unit tests and the simulator."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import assert_never

from coordinator.core.records import (
    Attempt,
    Change,
    DropEvents,
    DropExecutions,
    DropJob,
    DropNode,
    Execution,
    Job,
    KeepEvent,
    Node,
    Put,
)
from coordinator.store.store import Snapshot, StoreError, snapshot
from muster.domain.fleet.access import Project
from muster.domain.ids import ExecutionId, JobId, NodeId
from muster.domain.jobs.event import JobEvent


class MemoryStore:
    """Keeps records for as long as it lives, also after `close`, so that a restart can be played through."""

    def __init__(self) -> None:
        self._jobs: dict[JobId, _Kept] = {}
        self._nodes: dict[NodeId, Node] = {}
        self._numbers = count(1)
        self._projects: dict[str, Project] = {}

    def load(self) -> Snapshot:
        """Everything, as last committed."""
        kept = self._jobs.values()
        return snapshot(
            (each.job for each in kept if each.job),
            (attempt for each in kept for attempt in each.attempts.values()),
            (execution for each in kept for execution in each.executions.values()),
            self._nodes.values(),
            self._projects.values(),
        )

    def executions(self, job: JobId, attempt: int) -> tuple[Execution, ...]:
        """The executions of one attempt as last committed, by rank."""
        every = self._jobs.get(job, _Kept()).executions.values()
        return tuple(sorted((each for each in every if each.attempt == attempt), key=lambda each: each.rank))

    def events(self, job: JobId, after: int, most: int) -> tuple[JobEvent, ...]:
        """Events of a job after a number."""
        every = self._jobs.get(job, _Kept()).events.values()
        return tuple(islice((event for event in every if event.number > after), most))

    def commit(self, changes: Sequence[Change]) -> None:  # noqa: C901 - one line for each kind of change
        """Apply all changes, or none if one is impossible."""
        jobs: dict[JobId, _Kept] = {}
        nodes: dict[NodeId, Node | None] = {}
        projects: dict[str, Project] = {}
        for change in changes:
            match change:
                case Put(record=record):
                    if isinstance(record, Node):
                        nodes[record.name] = record
                    elif isinstance(record, Project):
                        projects[record.name] = record
                    else:
                        self._draft(jobs, record.id if isinstance(record, Job) else record.job).put(record)
                case DropJob(job=job):
                    jobs[job] = _Kept()
                case DropExecutions(job=job, attempt=number):
                    self._draft(jobs, job).drop(number)
                case DropNode(node=name):
                    nodes[name] = None
                case KeepEvent(event=event):
                    self._draft(jobs, event.job).keep(replace(event, number=next(self._numbers)))
                case DropEvents(job=job, attempt=number):
                    self._draft(jobs, job).drop_events(number)
                case _:
                    assert_never(change)
        for job, kept in jobs.items():
            kept.check(job)
        self._keep(jobs, nodes)
        self._projects.update(projects)

    def close(self) -> None:
        """Nothing to let go of."""

    def _draft(self, jobs: dict[JobId, "_Kept"], job: JobId) -> "_Kept":
        if job not in jobs:
            jobs[job] = self._jobs.get(job, _Kept()).copy()
        return jobs[job]

    def _keep(self, jobs: dict[JobId, "_Kept"], nodes: dict[NodeId, Node | None]) -> None:
        for job, kept in jobs.items():
            self._jobs[job] = kept
            if kept.job is None:
                del self._jobs[job]
        for name, node in nodes.items():
            self._nodes.pop(name, None)
            if node:
                self._nodes[name] = node


@dataclass(slots=True, kw_only=True)
class _Kept:
    """What belongs to one job."""

    job: Job | None = None
    attempts: dict[int, Attempt] = field(default_factory=dict)
    executions: dict[ExecutionId, Execution] = field(default_factory=dict)
    events: dict[str, JobEvent] = field(default_factory=dict)
    """Events by id, in the order of their numbers."""

    def copy(self) -> "_Kept":
        return _Kept(
            job=self.job, attempts=dict(self.attempts), executions=dict(self.executions), events=dict(self.events)
        )

    def put(self, record: Job | Attempt | Execution) -> None:
        match record:
            case Job():
                self.job = record
            case Attempt():
                self.attempts[record.number] = record
            case Execution():
                self.executions[record.id] = record
            case _:
                assert_never(record)

    def drop(self, attempt: int) -> None:
        kept = self.executions.items()
        self.executions = {key: execution for key, execution in kept if execution.attempt != attempt}

    def keep(self, event: JobEvent) -> None:
        self.events.setdefault(event.id, event)

    def drop_events(self, attempt: int) -> None:
        self.events = {key: event for key, event in self.events.items() if event.attempt != attempt}

    def check(self, job: JobId) -> None:
        if self.job is None and (self.attempts or self.executions or self.events):
            raise StoreError(f"cannot store attempts, executions or events of {job}: there is no such job")
        for execution in self.executions.values():
            if execution.attempt not in self.attempts:
                raise StoreError(f"cannot store execution {execution.id}: there is no attempt {execution.attempt}")
