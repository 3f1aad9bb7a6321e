"""The account of one turn: what it has changed, as it was before and as it must become durable."""

from collections.abc import Iterable

from coordinator.core.checkpoint_part import CheckpointPart, DropCheckpoint
from coordinator.core.cluster.by_key import RecordKey, Records, key_of_record
from coordinator.core.quota_meter import QuotaMeter
from coordinator.core.records import (
    Attempt,
    Change,
    DropDepartment,
    DropExecutions,
    DropJob,
    DropNode,
    DropPool,
    DropProject,
    DropWindow,
    Execution,
    Job,
    Node,
    Put,
    Record,
)
from muster.domain.data.checkpoint import CheckpointId
from muster.domain.fleet.access import Project
from muster.domain.fleet.pool import Pool
from muster.domain.fleet.quota import Department
from muster.domain.fleet.window import Window
from muster.domain.ids import AttemptId, JobId, NodeId


class Changes:
    """What a turn has changed so far."""

    def __init__(self) -> None:
        self._puts: dict[RecordKey, Record] = {}
        self._before: dict[RecordKey, Record | None] = {}
        """What has changed as it was before; None: it was not there."""
        self._jobs: dict[JobId, None] = {}
        self._nodes: dict[NodeId, None] = {}
        self._projects: dict[str, None] = {}
        self._departments: dict[str, None] = {}
        self._windows: dict[str, None] = {}
        self._pools: dict[str, None] = {}
        self._members: dict[AttemptId, None] = {}
        self._checkpoints: dict[tuple[JobId, CheckpointId], None] = {}

    @property
    def dropped_jobs(self) -> Iterable[JobId]:
        """Jobs that are forgotten."""
        return self._jobs

    @property
    def progress_alone(self) -> bool:
        """Whether something changed, and nothing but how far some executions are."""
        return (
            bool(self._puts)
            and all(isinstance(record, Execution | QuotaMeter) for record in self._puts.values())
            and not (self._jobs or self._nodes or self._projects or self._departments)
            and not (self._windows or self._pools or self._checkpoints)
        )

    def put(self, before: Record | None, after: Record) -> None:
        """Note a record that is new or in place of another one."""
        key = key_of_record(after)
        self._before.setdefault(key, before)
        self._puts[key] = after

    def forget(self, record: Record) -> None:
        """Note that a record of a job is not at hand any more; what this turn wrote of it is still stored."""
        self._before.setdefault(key_of_record(record), record)

    def drop_job(self, job: Job, belongings: Iterable[Attempt | Execution | CheckpointPart]) -> None:
        """Note that a job is forgotten with all that belongs to it."""
        records: tuple[Record, ...] = (job, *belongings)
        for record in records:
            self.forget(record)
            self._puts.pop(key_of_record(record), None)
        self._jobs[job.id] = None

    def drop_node(self, node: Node) -> None:
        """Note that a node is forgotten."""
        self.forget(node)
        self._puts.pop(key_of_record(node), None)
        self._nodes[node.name] = None

    def drop_project(self, project: Project, meters: Iterable[QuotaMeter]) -> None:
        """Note that a project is forgotten with its meters."""
        records: tuple[Record, ...] = (project, *meters)
        for record in records:
            self.forget(record)
            self._puts.pop(key_of_record(record), None)
        self._projects[project.name] = None

    def drop_department(self, department: Department) -> None:
        """Note that a department is forgotten."""
        self.forget(department)
        self._puts.pop(key_of_record(department), None)
        self._departments[department.name] = None

    def drop_window(self, window: Window) -> None:
        """Note that a window is forgotten."""
        self.forget(window)
        self._puts.pop(key_of_record(window), None)
        self._windows[window.name] = None

    def drop_pool(self, pool: Pool) -> None:
        """Note that what was said of a pool is forgotten."""
        self.forget(pool)
        self._puts.pop(key_of_record(pool), None)
        self._pools[pool.name] = None

    def drop_members(self, attempt: AttemptId) -> None:
        """Note that the store forgets the executions of an attempt."""
        self._members[attempt] = None

    def drop_checkpoint(self, parts: Iterable[CheckpointPart]) -> None:
        """Note that all parts of a checkpoint are forgotten."""
        for part in parts:
            self.forget(part)
            self._puts.pop(key_of_record(part), None)
            self._checkpoints[(part.job, part.id)] = None

    def durable(self) -> tuple[Change, ...]:
        """What must become durable, in an order in which every record finds the one it belongs to."""
        return (
            *(DropJob(job=job) for job in self._jobs),
            *(DropNode(node=node) for node in self._nodes),
            *(DropProject(project=project) for project in self._projects),
            *(DropDepartment(department=department) for department in self._departments),
            *(DropWindow(window=window) for window in self._windows),
            *(DropPool(pool=pool) for pool in self._pools),
            *(DropCheckpoint(job=job, checkpoint=checkpoint) for job, checkpoint in self._checkpoints),
            *(Put(record=record) for record in self._puts.values()),
            *(DropExecutions(job=job, attempt=number) for job, number in self._members),
        )

    def before(self, records: Records) -> tuple[Record, ...]:
        """All records as they were before this turn, in no particular order."""
        kept: dict[RecordKey, Record | None] = {key_of_record(record): record for record in records}
        return tuple(record for record in (kept | self._before).values() if record is not None)
