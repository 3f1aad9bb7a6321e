"""One turn of the engine: what its steps change, and what is to be done once that is durable."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from coordinator.core import plans
from coordinator.core.cluster import Cluster
from coordinator.core.deadlines import AttemptKey, ClearanceDue
from coordinator.core.effects import AnnounceJob, CloseSession, Effect, ForgetLogs, SendPlan
from coordinator.core.records import (
    Attempt,
    Change,
    DropExecutions,
    DropJob,
    DropNode,
    Execution,
    Job,
    Node,
    Put,
    Record,
)
from muster.domain.ids import ExecutionId, JobId, NodeId
from muster.domain.lifecycle import TERMINAL, State, Trigger, advance

_AS_ORDERED = frozenset({State.PREPARING, State.CHECKED_IN, State.ARMED, State.RUNNING, State.SUCCEEDED})
"""States that an agent reached because it was told to; what it does next, or does not, needs no other order."""

DISMISSED_WITHIN = timedelta(seconds=0.2)
"""In which a node is told what it may clear away. Nobody waits for that, while others of the gang still start or end,
and what is told along with the next order needs no message of its own. Whoever ends in the same half of it is told at
the same moment."""


class Turn:
    """Changes the cluster on behalf of several events and keeps account of it."""

    def __init__(self, cluster: Cluster, now: datetime) -> None:
        self.cluster = cluster
        self.now = now
        self.room_changed = False
        """Whether the queue is worth another look: something came free, or somebody joined the queue."""
        self._puts: dict[object, Record] = {}
        self._before: dict[tuple[type[Record], object], Record | None] = {}
        """What the turn has changed as it was before; None: it was not there."""
        self._drops: dict[JobId, None] = {}
        self._dropped_nodes: dict[NodeId, None] = {}
        self._dropped_members: dict[AttemptKey, None] = {}
        self._jobs: dict[JobId, None] = {}
        self._plans: dict[NodeId, dict[ExecutionId, None]] = {}
        self._whole_plans: dict[NodeId, None] = {}
        self._doomed: dict[JobId, None] = {}
        self._closed: dict[int, NodeId] = {}

    def put(self, record: Record) -> None:
        """Add or replace a record."""
        key = _key(record)
        if (named := (type(record), key)) not in self._before:
            self._before[named] = _kept(self.cluster, record)
        self.cluster.put(record)
        self._puts[key] = record
        if not isinstance(record, Node):
            self._jobs[record.id if isinstance(record, Job) else record.job] = None

    def move(self, execution: Execution, trigger: Trigger) -> Execution:
        """Bring an execution to its next state, note the time, and tell its node if it shall do something else now."""
        state = advance(f"execution {execution.id}", execution.state, trigger)
        after = replace(execution, state=state, times={**execution.times, state: self.now})
        self.put(after)
        if state not in _AS_ORDERED:
            self.replan(after)
        return after

    def replan(self, execution: Execution) -> None:
        """Have the plan line of an execution sent to its node."""
        if execution.node is not None:
            self._plans.setdefault(execution.node, {})[execution.id] = None

    def replan_node(self, node: NodeId) -> None:
        """Have the whole plan of a node sent."""
        self._whole_plans[node] = None

    def dismiss(self, execution: Execution) -> None:
        """Have its node told, with its next order or soon, that it may clear an execution away."""
        node = execution.node
        if node is None or (presence := self.cluster.presence.get(node)) is None or presence.session is None:
            return  # a new stream begins with the whole plan
        if not presence.dismissed:
            since = timedelta(microseconds=self.now.microsecond) % (DISMISSED_WITHIN / 2)
            self.cluster.deadlines.add(self.now - since + DISMISSED_WITHIN, ClearanceDue(node=node))
        presence.dismissed[execution.id] = None

    def tell_dismissed(self, node: NodeId) -> None:
        """Have a node told now what it may clear away, if it was not told by the way."""
        presence = self.cluster.presence.get(node)
        if presence is not None and presence.dismissed:
            self._plans.setdefault(node, {})

    def close_session(self, node: NodeId) -> None:
        """Do without the stream of a node until it opens a new one."""
        presence = self.cluster.presence[node]
        if presence.session is not None:
            self._closed[presence.session] = node
            presence.session = None
            self.cluster.touch(node)

    def doom(self, job: JobId) -> None:
        """Have a job dropped at the end of the turn, when nothing looks at it any more."""
        self._doomed[job] = None

    def drop_doomed(self) -> None:
        """Drop what was doomed."""
        for job in list(self._doomed):
            self.drop(job)

    def drop(self, job: JobId) -> None:
        """Forget a job that has ended, and its logs."""
        self._remember(self.cluster.jobs[job])
        for key in ((job, number) for number in range(1, self.cluster.jobs[job].attempt + 1)):
            self._remember(self.cluster.attempts[key])
            for execution in self.cluster.members(key):
                self._remember(execution)
                self._puts.pop(execution.id, None)
                if execution.node is not None and self.cluster.is_planned(execution.node, execution.id):
                    self.replan(execution)
            self._puts.pop(key, None)
        self._puts.pop(job, None)
        self._doomed.pop(job, None)
        self.cluster.drop_job(job)
        self._drops[job] = None
        self._jobs[job] = None

    def forget_members(self, key: AttemptKey) -> None:
        """Leave the executions of an old attempt to the store; what their nodes have not sent of logs is given up."""
        for execution in list(self.cluster.members(key)):
            self._remember(execution)
            if execution.node is not None and self.cluster.is_planned(execution.node, execution.id):
                self.put(replace(execution, log_complete=True))  # as complete as it will ever be
                self.dismiss(execution)
        self.cluster.forget_members(key)
        attempt = self.cluster.attempts[key]
        if attempt.failure is not None and attempt.failure.log_tail:
            self.put(replace(attempt, failure=replace(attempt.failure, log_tail=())))

    def drop_members(self, key: AttemptKey) -> None:
        """Have the store forget the executions of an old attempt, which are no longer in memory."""
        self.put(replace(self.cluster.attempts[key], executions_dropped=True))
        self._dropped_members[key] = None

    def drop_node(self, node: NodeId) -> None:
        """Forget a node that runs nothing and has no stream."""
        self._remember(self.cluster.nodes[node])
        self._puts.pop(("node", node), None)
        self._plans.pop(node, None)
        self._whole_plans.pop(node, None)
        self.cluster.drop_node(node)
        self._dropped_nodes[node] = None
        self.room_changed = True

    @property
    def may_wait(self) -> bool:
        """Whether all that it changes is how far some executions are: nobody is to do anything else on account of it.

        An agent that is told to clear away what has ended anyway may hear so a little later.
        """
        told = (execution for lines in self._plans.values() for execution in lines)
        return (
            bool(self._puts)
            and all(isinstance(record, Execution) for record in self._puts.values())
            and not (self._drops or self._dropped_nodes or self._whole_plans or self._closed)
            and all(self._is_over(execution) for execution in told)
        )

    def _is_over(self, execution: ExecutionId) -> bool:
        there = self.cluster.executions.get(execution)
        return there is None or there.state in TERMINAL

    def changes(self) -> tuple[Change, ...]:
        """What must become durable, in an order in which every record finds the one it belongs to."""
        return (
            *(DropJob(job=job) for job in self._drops),
            *(DropNode(node=node) for node in self._dropped_nodes),
            *(Put(record=record) for record in self._puts.values()),
            *(DropExecutions(job=job, attempt=number) for job, number in self._dropped_members),
        )

    def before(self) -> tuple[Record, ...]:
        """All records of the cluster as they were before this turn, in no particular order."""
        kept: dict[tuple[type[Record], object], Record | None] = {
            (type(record), _key(record)): record for record in _records(self.cluster)
        }
        return tuple(record for record in (kept | self._before).values() if record is not None)

    def effects(self) -> tuple[Effect, ...]:
        """What to do once it is."""
        # Whoever waits for an end hears of it first: what nodes do then is no more than clearing away.
        ended = {job: None for job in self._jobs if job in self.cluster.jobs and self.cluster.jobs[job].ended_at}
        return (
            *(CloseSession(node=node, session=session) for session, node in self._closed.items()),
            *(AnnounceJob(job=job) for job in ended),
            *self._sends(),
            *(AnnounceJob(job=job) for job in self._jobs if job not in ended),
            *(ForgetLogs(job=job) for job in self._drops),
        )

    def _remember(self, record: Record) -> None:
        """Keep a record that is about to be dropped, unless the turn has changed it already."""
        self._before.setdefault((type(record), _key(record)), record)

    def _sends(self) -> Iterator[SendPlan]:
        gangs = plans.Gangs(self.cluster)
        for node in {**self._whole_plans, **dict.fromkeys(self._plans)}:
            presence = self.cluster.presence.get(node)
            if presence is None or presence.session is None:
                continue
            dismissed, presence.dismissed = presence.dismissed, {}
            if node in self._whole_plans:
                plan = plans.whole(self.cluster, node, gangs)
            else:
                plan = plans.change(self.cluster, node, {**self._plans[node], **dismissed}, gangs)
            yield SendPlan(node=node, session=presence.session, plan=plan)


def _key(record: Record) -> object:
    match record:
        case Job() | Execution():
            return record.id
        case Attempt():
            return (record.job, record.number)
        case Node():
            return ("node", record.name)


def _records(cluster: Cluster) -> Iterator[Record]:
    yield from cluster.jobs.values()
    yield from cluster.attempts.values()
    yield from cluster.executions.values()
    yield from cluster.nodes.values()


def _kept(cluster: Cluster, record: Record) -> Record | None:
    """The record of the cluster with the same key."""
    match record:
        case Execution():
            return cluster.executions.get(record.id)
        case Job():
            return cluster.jobs.get(record.id)
        case Attempt():
            return cluster.attempts.get((record.job, record.number))
        case Node():
            return cluster.nodes.get(record.name)
