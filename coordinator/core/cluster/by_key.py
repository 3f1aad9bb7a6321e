"""All records by key: the one place that is written; every index follows from it."""

from collections.abc import Iterator, MutableMapping
from typing import TypeVar, cast

from coordinator.core.checkpoint_part import CheckpointPart
from coordinator.core.quota_meter import QuotaMeter
from coordinator.core.records import Attempt, Execution, Job, Node, Record
from muster.domain.data.checkpoint import CheckpointId
from muster.domain.fleet.access import Project
from muster.domain.fleet.pool import Pool
from muster.domain.fleet.quota import Department
from muster.domain.fleet.window import Window
from muster.domain.ids import AttemptId, ExecutionId, JobId, NodeId

RecordT = TypeVar("RecordT", bound=Record)

RecordKey = tuple[type[Record], object]
"""The kind of a record and its key among those of its kind."""


def key_of_record(record: Record) -> RecordKey:
    """What tells a record from all others."""
    match record:
        case Execution():
            return (Execution, record.id)
        case Job():
            return (Job, record.id)
        case Attempt():
            return (Attempt, record.attempt_id)
        case Node() | Project() | Department() | Window() | Pool():
            return (type(record), record.name)
        case CheckpointPart():
            return (CheckpointPart, (record.job, record.id, record.rank))
        case QuotaMeter():
            return (QuotaMeter, (record.project, record.pool))


class Records:
    """Jobs, attempts, executions, parts of checkpoints, nodes, projects, departments, windows, pools, meters by key."""

    def __init__(self) -> None:
        self.jobs: dict[JobId, Job] = {}
        self.attempts: dict[AttemptId, Attempt] = {}
        self.executions: dict[ExecutionId, Execution] = {}
        self.nodes: dict[NodeId, Node] = {}
        self.projects: dict[str, Project] = {}
        self.departments: dict[str, Department] = {}
        self.windows: dict[str, Window] = {}
        self.pools: dict[str, Pool] = {}
        self.meters: dict[tuple[str, str], QuotaMeter] = {}
        """Meters by project and pool."""
        self.parts: dict[tuple[JobId, CheckpointId, int], CheckpointPart] = {}
        """Parts of checkpoints by job, checkpoint and rank."""
        self._tables: dict[type[Record], MutableMapping[object, Record]] = {
            Job: cast("MutableMapping[object, Record]", self.jobs),
            Attempt: cast("MutableMapping[object, Record]", self.attempts),
            Execution: cast("MutableMapping[object, Record]", self.executions),
            CheckpointPart: cast("MutableMapping[object, Record]", self.parts),
            Node: cast("MutableMapping[object, Record]", self.nodes),
            Project: cast("MutableMapping[object, Record]", self.projects),
            Department: cast("MutableMapping[object, Record]", self.departments),
            Window: cast("MutableMapping[object, Record]", self.windows),
            Pool: cast("MutableMapping[object, Record]", self.pools),
            QuotaMeter: cast("MutableMapping[object, Record]", self.meters),
        }

    def __iter__(self) -> Iterator[Record]:
        """All of them, jobs before their attempts and executions."""
        for table in self._tables.values():
            yield from table.values()

    def get(self, key: RecordKey) -> Record | None:
        """The record with this key; None: there is none."""
        return self._tables[key[0]].get(key[1])

    def put(self, record: RecordT) -> RecordT | None:
        """Add a record or replace the one with the same key; the one that was there before."""
        kind, key = key_of_record(record)
        table = self._tables[kind]
        before = table.get(key)
        table[key] = record
        return cast("RecordT | None", before)

    def drop(self, record: Record) -> None:
        """Forget a record."""
        kind, key = key_of_record(record)
        del self._tables[kind][key]
