"""One turn of the engine: what its steps change, and what is to be done once that is durable."""

from dataclasses import replace
from datetime import datetime, timedelta

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.deadlines import ClearanceDue
from coordinator.core.cluster.saved.checkpoints import SavedCheckpoint
from coordinator.core.effects import AnnounceJob, AnnounceStory, Effect, ForgetLogs
from coordinator.core.notes import TurnNotes
from coordinator.core.records import Attempt, Change, Execution, Job, Node, Record
from coordinator.core.turn.changes import Changes
from coordinator.core.turn.metering import Metering
from coordinator.core.turn.sends import Sends
from coordinator.core.turn.spending import SpendingLedger
from muster.domain.errors import IllegalTransitionError
from muster.domain.event import StoryEvent, StorySubject
from muster.domain.fleet.access import Project
from muster.domain.fleet.pool import Pool
from muster.domain.fleet.quota import Department
from muster.domain.fleet.window import Window
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.lifecycle import State, Trigger, advance

_AS_ORDERED = frozenset({State.PREPARING, State.CHECKED_IN, State.ARMED, State.RUNNING, State.SUCCEEDED})
"""States that an agent reached because it was told to; what it does next, or does not, needs no other order."""

_TOO_OLD = "many attempts have come after it"
"""Why nobody waits for outputs of an attempt whose executions are forgotten."""

MOVES_TOLD = 5
"""Last moves of an execution that the error about an impossible one tells."""
DISMISSED_WITHIN = timedelta(seconds=0.2)
"""Seconds by which a node is told to clear ended executions away; the delay lets the order share a message (ADR 34).

Nobody waits for it while others of the gang still start or end. Whoever ends in the same half of it is told at the
same moment."""


class Turn:
    """Changes the cluster on behalf of several events and keeps account of it."""

    def __init__(self, cluster: Cluster, now: datetime) -> None:
        self.cluster = cluster
        self.now = now
        """The time of the events that are stepped."""
        self.room_changed = False
        """Whether the queue is worth another look."""
        self.notes = TurnNotes()
        self.sends = Sends(cluster, self.notes)
        self.ledger = SpendingLedger()
        """What attempts that end in this turn have held."""
        self.metering = Metering(cluster)
        """The meters of quotas that run at another pace after this step."""
        self._changes = Changes()
        self._jobs: dict[JobId, None] = {}
        """Jobs that are other than before."""
        self.doomed: dict[JobId, None] = {}
        """Jobs that are dropped at the end of the turn."""
        self._subjects: dict[StorySubject, datetime] = {}
        """Subjects whose stories go on, with the time of the last event of each; jobs are none of them."""

    def go_on(self, now: datetime) -> None:
        """Take in more events, which came at this time."""
        for meter in self.metering.settled(self.now):
            self.put(meter)
        self.now = now

    def reconsider_queue(self) -> None:
        """Have the queue looked at: something came free, or somebody joined the queue."""
        if not self.room_changed:
            self.notes.room_changed()
        self.room_changed = True

    def queue_considered(self) -> None:
        """Note that the queue is being looked at."""
        self.room_changed = False

    # records

    def put(self, record: Record) -> None:
        """Add or replace a record."""
        before = self.cluster.put(record)
        self._changes.put(before, record)
        if isinstance(record, Job | Attempt):
            self.notes.change(before if isinstance(before, Job | Attempt) else None, record)
        if isinstance(record, Project | Department):
            self.metering.touch_all()
        if isinstance(record, Execution | Attempt):
            self._jobs[record.job] = None
        elif isinstance(record, Job):
            self._jobs[record.id] = None

    def move(self, execution: Execution, trigger: Trigger) -> Execution:
        """Bring an execution to its next state, note the time, and tell its node if it shall do something else now."""
        try:
            state = advance(f"execution {execution.id}", execution.state, trigger)
        except IllegalTransitionError as error:
            raise error.after(_moves(execution, self.notes)) from None
        times = {each: at for each, at in execution.times.items() if each is not state}
        after = self.metering.moved(execution, replace(execution, state=state, times={**times, state: self.now}))
        self.notes.transition(execution, after)
        self.put(after)
        if state not in _AS_ORDERED:
            self.replan(after)
        return after

    def doom(self, job: JobId) -> None:
        """Have a job dropped at the end of the turn, when nothing looks at it any more."""
        self.doomed[job] = None

    def drop_doomed(self) -> None:
        """Drop what was doomed."""
        for job in list(self.doomed):
            self.drop(job)

    def drop(self, job: JobId) -> None:
        """Forget a job that has ended, and its logs."""
        cluster = self.cluster
        record = cluster.jobs[job]
        self.notes.drop(record)
        attempt_ids = [AttemptId(job, number) for number in range(1, record.attempt + 1)]
        members = [member for attempt_id in attempt_ids for member in cluster.gangs.members(attempt_id)]
        for member in members:
            if member.node is not None and cluster.load.is_planned(member.node, member.id):
                self.replan(member)
        attempts = (cluster.attempts[attempt_id] for attempt_id in attempt_ids)
        parts = (part for saved in cluster.gangs.checkpoints.of(job) for part in saved.parts.values())
        self._changes.drop_job(record, (*attempts, *members, *parts))
        cluster.drop_job(job)
        self.doomed.pop(job, None)
        self._jobs[job] = None

    def forget_members(self, attempt_id: AttemptId) -> None:
        """Leave the executions of an old attempt to the store; what their nodes have not sent of logs is given up."""
        for execution in list(self.cluster.gangs.members(attempt_id)):
            self._changes.forget(execution)
            if execution.node is not None and self.cluster.load.is_planned(execution.node, execution.id):
                self.put(execution.given_up(_TOO_OLD))
                self.dismiss(execution)
        self.cluster.drop_members(attempt_id)
        attempt = self.cluster.attempts[attempt_id]
        if attempt.failure is not None and attempt.failure.log_tail:
            self.put(replace(attempt, failure=replace(attempt.failure, log_tail=())))

    def drop_members(self, attempt_id: AttemptId) -> None:
        """Have the store forget the executions of an old attempt, which are no longer in memory."""
        self.put(replace(self.cluster.attempts[attempt_id], executions_dropped=True))
        self._changes.drop_members(attempt_id)

    def forget(self, record: Node | Project | Department | Window | Pool | SavedCheckpoint) -> None:
        """Forget a node that runs nothing, a project without live jobs, an empty department, a window, a pool, or all
        parts of a checkpoint.
        """
        match record:
            case Node(name=node):
                self._changes.drop_node(record)
                self.sends.forget(node)
                self.cluster.drop_node(node)
                self.reconsider_queue()
            case Project():
                meters = self.cluster.records.meters.values()
                self._changes.drop_project(record, [each for each in meters if each.project == record.name])
                self.cluster.drop_unit(record)
                self.metering.touch_all()
            case Department():
                self._changes.drop_department(record)
                self.cluster.drop_unit(record)
                self.metering.touch_all()
            case Window():
                self._changes.drop_window(record)
                self.cluster.drop_alone(record)
                self.reconsider_queue()
            case SavedCheckpoint():
                parts = tuple(record.parts.values())
                self._changes.drop_checkpoint(parts)
                for part in parts:
                    self.cluster.drop_alone(part)
                    self._jobs[part.job] = None
            case Pool():
                self._changes.drop_pool(record)
                self.cluster.drop_alone(record)
                self.reconsider_queue()

    # what nodes are told

    def replan(self, execution: Execution) -> None:
        """Have the plan line of an execution sent to its node."""
        self.sends.line(execution)

    def dismiss(self, execution: Execution) -> None:
        """Have its node told, with its next order or soon, that it may clear an execution away."""
        node = execution.node
        if node is None or (presence := self.cluster.presence.get(node)) is None or presence.session is None:
            return  # a new stream begins with the whole plan
        if presence.dismiss(execution.id):
            since = timedelta(microseconds=self.now.microsecond) % (DISMISSED_WITHIN / 2)
            self.cluster.deadlines.add(self.now - since + DISMISSED_WITHIN, ClearanceDue(node=node))

    def close_session(self, node: NodeId) -> None:
        """Do without the stream of a node until it opens a new one."""
        presence = self.cluster.presence[node]
        if presence.session is not None:
            self.sends.close(node, presence.session)
            presence.closed()

    def notice(self, event: StoryEvent) -> None:
        """Note what happened to a node or to the fleet; no two events of one of them have the same time."""
        last = self._subjects.get(event.subject)
        if last is not None and event.at <= last:
            event = replace(event, at=last + timedelta(microseconds=1))
        self._subjects[event.subject] = event.at
        self.notes.notice(event)

    # what comes of it

    @property
    def may_wait(self) -> bool:
        """Whether all that it changes is how far some executions are: nobody is to do anything else on account of it.

        An agent that is told to clear away what has ended anyway may hear so a little later.
        """
        return self._changes.progress_alone and self.sends.may_wait

    def changes(self) -> tuple[Change, ...]:
        """What must become durable, in an order in which every record finds the one it belongs to."""
        return (*self._changes.durable(), *self.ledger.changes())

    def before(self) -> tuple[Record, ...]:
        """All records of the cluster as they were before this turn, in no particular order."""
        return self._changes.before(self.cluster.records)

    def take_effects(self) -> tuple[Effect, ...]:
        """What to do once the changes are durable. Called once: plans that are taken raise revisions."""
        # Whoever waits for an end hears of it first: what nodes do then is no more than clearing away.
        jobs = self.cluster.jobs
        self._jobs |= dict.fromkeys(self.notes.unused)
        ended = {job: None for job in self._jobs if job in jobs and jobs[job].ended_at}
        return (
            *self.sends.take_closed(),
            *(AnnounceJob(job=job) for job in ended),
            *self.sends.take_plans(),
            *(AnnounceJob(job=job) for job in self._jobs if job not in ended),
            *(AnnounceStory(subject=subject) for subject in self._subjects),
            *(ForgetLogs(job=job) for job in self._changes.dropped_jobs),
        )


def _moves(execution: Execution, notes: TurnNotes) -> tuple[str, ...]:
    """The last moves of an execution, each with its time and, if it was in this turn, its cause."""
    causes = {note.after.state: note.cause for note in notes.of(execution.id)}
    return tuple(
        f"{state} at {at.isoformat()}" + (f" ({causes[state]})" if state in causes else "")
        for state, at in list(execution.times.items())[-MOVES_TOLD:]
    )
