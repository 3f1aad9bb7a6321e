"""The cluster: all records with the indexes that let a step cost in proportion to what it touches.

The only mutable object of the core; it belongs to the engine.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from coordinator.core.checkpoint_part import CheckpointPart
from coordinator.core.cluster.by_key import Records
from coordinator.core.cluster.deadlines import CycleDue, Deadlines
from coordinator.core.cluster.draining import Draining
from coordinator.core.cluster.gangs import Gangs
from coordinator.core.cluster.job_index import JobIndex
from coordinator.core.cluster.load import Load, NodeProblems
from coordinator.core.cluster.presence import Presence, Presences
from coordinator.core.cluster.queue import Queue, QueueOrder
from coordinator.core.cluster.unit_load import UnitLoad
from coordinator.core.limits import Limits
from coordinator.core.quota_meter import QuotaMeter
from coordinator.core.records import Attempt, Execution, Job, Node, Record
from muster.domain.fleet.access import Project
from muster.domain.fleet.node import NodeState
from muster.domain.fleet.pool import Pool
from muster.domain.fleet.quota import Department
from muster.domain.fleet.window import Window
from muster.domain.gangs.fence import LEASE
from muster.domain.ids import AttemptId, ExecutionId, JobId, NodeId
from muster.domain.jobs.lifecycle import JobPhase, phase
from muster.domain.quantity import counted

HEARTBEAT_INTERVAL = timedelta(seconds=10)
LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Cluster:
    """Composes the records and their indexes; owns no rule. Every index hears of every change of its records."""

    def __init__(self, order: QueueOrder, started_at: datetime = LONG_AGO, fleet_key: bytes = b"") -> None:
        self.started_at = started_at
        """When the coordinator started; times of before are those of another clock."""
        self.fleet_key = fleet_key
        """Secret from which those of the attempts are made."""
        self.limits = Limits()
        self.records = Records()
        self.job_index = JobIndex()
        self.gangs = Gangs(self.records.jobs, self.records.nodes, started_at)
        self.deadlines = Deadlines()
        self.queue = Queue(
            self.records.jobs, self.records.attempts, order, lambda at: self.deadlines.add(at, CycleDue())
        )
        self.load = Load(
            self.records,
            NodeProblems(self.placeable, lambda node: given_up(self.records.nodes[node], self.presence[node])),
            self.queue.try_all_again,
        )
        self.draining = Draining(
            lambda node: (
                bool(self.load.used(node).executions)
                or any(each.stores or each.stores_again for each in self.load.planned(node))
            )
        )
        self.unit_load = UnitLoad(self.records, lambda node: not self.presence.believes_in(node), self.load.used)
        self.presence = Presences(self.load.touch, self.unit_load.touch)

    # reading

    @property
    def jobs(self) -> Mapping[JobId, Job]:
        """Every job."""
        return self.records.jobs

    @property
    def attempts(self) -> Mapping[AttemptId, Attempt]:
        """Every attempt."""
        return self.records.attempts

    @property
    def executions(self) -> Mapping[ExecutionId, Execution]:
        """Every execution that is at hand."""
        return self.records.executions

    @property
    def nodes(self) -> Mapping[NodeId, Node]:
        """Every node that has joined."""
        return self.records.nodes

    @property
    def projects(self) -> Mapping[str, Project]:
        """Every project."""
        return self.records.projects

    def job_of_key(self, idempotency_key: str) -> Job | None:
        """The job that was submitted with this key."""
        job = self.job_index.submits.of_key(idempotency_key) if idempotency_key else None
        return self.records.jobs[job] if job is not None else None

    def newest_attempt(self, job: JobId) -> Attempt:
        """The attempt that counts."""
        return self.records.attempts[self.records.jobs[job].attempt_id]

    def phase(self, job: JobId, *, outputs: bool = True) -> JobPhase:
        """The phase of a job, from its newest attempt; `outputs`: False as if none of it were on their way."""
        attempt_id = self.records.jobs[job].attempt_id
        present = {state for state, count in self.gangs.tally(attempt_id).items() if count}
        storing = outputs and self.gangs.storing(job) > 0
        return phase(present, decided=self.gangs.has_succeeded(attempt_id), storing=storing)

    def placeable(self, node: NodeId) -> str | None:
        """Why nothing can be placed on a node at all; None: something can."""
        presence = self.presence[node]
        if presence.state is NodeState.UNREACHABLE:
            return "is unreachable: its agent is not connected"
        if (problem := given_up(self.records.nodes[node], presence)) is not None:
            return problem
        if presence.unwanted:
            count = len(presence.unwanted)
            return f"is clearing away {counted(count, 'execution')} of before"
        return None

    # changing

    def put(self, record: Record) -> Record | None:  # noqa: C901 - a case for each kind of record
        """Add a record or replace the one with the same key; the one that was there before."""
        before: Record | None
        match record:
            case Execution():
                before = self.records.put(record)
                self._execution_changed(before, record)
            case Attempt():
                before = self.records.put(record)
                for index in (self.gangs, self.queue, self.load, self.unit_load):
                    index.attempt_changed(before, record)
            case Job():
                before = self.records.put(record)
                self._job_changed(before, record)
            case CheckpointPart():
                before = self.records.put(record)
                self.gangs.checkpoints.changed(before, record)
            case Node():
                before = self.records.put(record)
                self.load.node_changed(before, record)
                self.unit_load.node_changed(before, record)
                self.draining.changed(before, record)
            case Project() | Department():
                before = self.records.put(record)
                self.unit_load.unit_changed(record)
            case Window():
                before = self.records.put(record)
                self._rules_changed(before, record)
            case Pool():
                before = self.records.put(record)
                self._rules_changed()
            case QuotaMeter():
                before = self.records.put(record)
        return before

    def drop_job(self, job: JobId) -> None:
        """Forget a job that has ended."""
        dropped = self.records.jobs[job]
        for part in [part for saved in self.gangs.checkpoints.of(job) for part in saved.parts.values()]:
            self.drop_alone(part)
        for number in range(1, dropped.attempt + 1):
            self.drop_members(AttemptId(job, number))
            attempt = self.records.attempts[AttemptId(job, number)]
            self.records.drop(attempt)
            for index in (self.gangs, self.queue, self.load, self.unit_load):
                index.attempt_changed(attempt, None)
        self.records.drop(dropped)
        self._job_changed(dropped, None)

    def drop_members(self, attempt: AttemptId) -> None:
        """Keep no execution of an attempt that has ended."""
        for execution in list(self.gangs.members(attempt)):
            self.records.drop(execution)
            self._execution_changed(execution, None)

    def drop_node(self, node: NodeId) -> None:
        """Forget a node that runs nothing."""
        dropped = self.records.nodes[node]
        self.records.drop(dropped)
        self.load.node_changed(dropped, None)
        self.unit_load.node_changed(dropped, None)
        self.draining.changed(dropped, None)
        self.presence.forget(node)
        self.deadlines.forget_node(node)

    def drop_unit(self, unit: Project | Department) -> None:
        """Forget a project with its meters, whose ended jobs stay, or a department without projects."""
        self.records.drop(unit)
        for meter in [each for each in self.records.meters.values() if each.project == unit.name]:
            self.records.drop(meter)
        self.unit_load.unit_dropped(unit.name)

    def drop_alone(self, record: Window | Pool | CheckpointPart) -> None:
        """Forget a window, what was said of a pool, or a part of a checkpoint."""
        self.records.drop(record)
        if isinstance(record, CheckpointPart):
            self.gangs.checkpoints.changed(record, None)
        else:
            self._rules_changed(*((record, None) if isinstance(record, Window) else ()))

    def appear(self, node: NodeId, now: datetime) -> Presence:
        """Start to believe in a node."""
        self.deadlines.watch_lease(node, now + LEASE)
        return self.presence.appear(node, now)

    def _rules_changed(self, before: Window | None = None, after: Window | None = None) -> None:
        """Hear that a window is other than before, or, without one, that pools are."""
        if before is not None or after is not None:
            self.load.windows.changed(before, after)
        else:
            self.load.pools_changed()
            for node in self.records.nodes:
                self.unit_load.touch(node)
            self.queue.try_all_again()
        limited = any(pool.longest_run is not None for pool in self.records.pools.values())
        self.queue.mind_times(minded=limited or len(self.load.windows) > 0)

    def _job_changed(self, before: Job | None, after: Job | None) -> None:
        self.queue.job_changed(before, after)
        self.gangs.evictable.job_changed(before, after)
        self.unit_load.job_changed(before, after)
        if after is not None:
            self.job_index.put(before, after)
        elif before is not None:
            self.job_index.drop(before)

    def _execution_changed(self, before: Execution | None, after: Execution | None) -> None:
        self.gangs.changed(before, after)
        self.queue.changed(before, after)
        self.load.changed(before, after)
        self.unit_load.changed(before, after)


def given_up(node: Node, presence: Presence) -> str | None:
    """Why no seats are kept on a node; None: they are, though it may be silent for a moment."""
    if presence.state is NodeState.LOST:
        return "is lost: its agent has been silent for too long"
    if node.cordon is not None:
        return f"is cordoned: {node.cordon.reason}" if node.cordon.reason else "is cordoned"
    return None
