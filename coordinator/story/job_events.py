"""Events of jobs, made from what a turn did."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from coordinator.core.causes import EventCause
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.notes import Changed, Dropped, Noticed, Offered, OutputsSettled, WentUnused
from coordinator.core.records import Attempt, Execution, Job, SeatClaim
from coordinator.core.turn import idling
from coordinator.story.checkpoints import restoring_text
from coordinator.story.moves import NODES_TOLD, CommonMove, Told, listed_nodes, listed_ranks, nodes_of
from coordinator.story.outputs import outputs_events
from muster.domain.event import END_OF, FleetEvent, JobEvent, JobEventKind, NodeEvent
from muster.domain.fleet.pool import PortionRule
from muster.domain.gangs.plan import Goal
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.queueing.change import differences
from muster.domain.quantity import counted, moment_text

NODES_KEPT = 32
"""Nodes that one event lists; its text says how many there are."""
TEXT_KEPT = 1_000
"""Characters of the text of an event; of a gang that missed its check-in, the reason may name thousands of ranks."""
ENDS_KEPT = 64
"""Executions of an attempt whose ends are stored, good and bad ones counted apart; the end of the job counts all."""
HOLDS_KEPT, CHANGES_KEPT = 100, 100
"""How often it is told of an attempt that it begins to wait, and of a job that it is changed."""
NOTICES_KEPT = 100
"""Events of an attempt that say that nobody uses it; a job may be looked after late again and again."""
CHECKPOINTS_TOLD = 100
"""Checkpoints of an attempt of which it is told that they are whole; a list has all that are kept."""
ATTEMPTS_KEPT = 100
"""Newest attempts of a job whose events are stored, beside those of the first one."""

AnyEvent = TypeVar("AnyEvent", JobEvent, NodeEvent | FleetEvent)

_BAD = (State.FAILED, State.LOST)
_OF_ALL = (FailureKind.SUSPENDED, FailureKind.PREEMPTED)
"""Failures that concern all executions of an attempt alike."""


class JobEventWriter:
    """Puts what a turn did into words, one thing after the other."""

    def __init__(self, cluster: Cluster, now: datetime) -> None:
        self._cluster = cluster
        self._now = now
        self._last: dict[tuple[AttemptId, State], Execution] = {}
        """Which execution of an attempt came last into a state, in this turn."""

    def events(self, told: Told) -> Iterator[JobEvent]:
        """The events of something that was done; none of a job that is gone."""
        if isinstance(told, CommonMove):
            self._last[(told.attempt_id, told.after)] = told.members[-1]
            if told.job in self._cluster.jobs:
                yield from self._move(told)
        elif not isinstance(told, Dropped | Noticed) and _job_of(told) in self._cluster.jobs:
            match told:
                case Changed():
                    yield from self._change(told)
                case Offered(first=True):
                    text = f"there is no room for it yet: {told.refusal}"
                    yield self._event(told.job.attempt_id, JobEventKind.NO_ROOM, text, told.cause)
                case OutputsSettled(left=left, cause=cause):
                    for kind, text, members in outputs_events(left):
                        yield _of_ranks(self._event(left[0].attempt_id, kind, text, cause), members)
                case WentUnused(notices=notices) if notices <= NOTICES_KEPT:
                    yield self._unused(told)

    def _unused(self, unused: WentUnused) -> JobEvent:
        rule = idling.rule_text(self._cluster, unused.job.attempt_id)
        told = f" ({rule})" if rule else ""
        text = f"nobody uses it; it is stopped in {_since(self._now, unused.ends_at)} unless somebody does{told}"
        return self._event(unused.job.attempt_id, JobEventKind.IDLE, text, unused.cause)

    def _move(self, move: CommonMove) -> Iterator[JobEvent]:
        tally = self._cluster.gangs.tally(move.attempt_id)
        count = len(move.members)
        if move.after is State.PREPARING:
            if tally[State.PLACED] + count == sum(tally.values()):  # the first ones
                text = "images, directories and ports are being prepared"
                yield self._event(move.attempt_id, JobEventKind.PREPARING, text, move.cause)
            return
        if move.after is State.SUCCEEDED:
            ended = tally[State.SUCCEEDED]
        elif move.after in _BAD:
            ended = sum(tally[state] for state in _BAD)
        else:
            return
        if ended - count < ENDS_KEPT:
            yield self._end(move)

    def _end(self, move: CommonMove) -> JobEvent:
        how = "ended well" if move.after is State.SUCCEEDED else move.end
        who = f"rank {move.ranks}" if len(move.members) == 1 else f"ranks {move.ranks}"
        text = f"{who} on {listed_nodes(move.nodes)}: {how}"
        return replace(
            self._event(move.attempt_id, JobEventKind.EXITED, text, move.cause),
            rank=min(member.rank for member in move.members),
            ranks=move.ranks,
            nodes=move.nodes[:NODES_KEPT],
        )

    def _change(self, change: Changed) -> Iterator[JobEvent]:
        before, after, cause = change
        match before, after:
            case None, Job():
                by = f" by {cause.who}" if cause.who else ""
                text = f"submitted{by}: {counted(after.spec.size, 'execution')}{_waits(after)}"
                yield self._event(AttemptId(after.id, 1), JobEventKind.SUBMITTED, text, cause)
            case None, Attempt(number=number) if number > 1:
                yield from self._late_end(AttemptId(after.job, number - 1), cause)
                yield self._begin(after, cause)
            case Job(), Job():
                if after.changes > before.changes and after.changes <= CHANGES_KEPT:
                    text = f"{cause.who or 'somebody'} changed it: {', '.join(differences(before.spec, after.spec))}"
                    yield self._event(after.attempt_id, JobEventKind.CHANGED, text, cause)
                if len(after.checkpoints.bad) > len(before.checkpoints.bad):
                    bad = after.checkpoints.bad[-1]
                    text = (
                        f"two attempts in a row that began with checkpoint {bad} failed at once; an older one is next"
                    )
                    yield self._event(after.attempt_id, JobEventKind.CHECKPOINT_BAD, text, cause)
                if after.stop_requested_at is not None and before.stop_requested_at is None:
                    asked = f"{cause.who or 'somebody'} asked for it to be stopped"
                    text = asked if cause.who else after.stop_reason or asked
                    yield self._event(after.attempt_id, JobEventKind.STOPPING, text, cause)
                if after.ended_at is not None and before.ended_at is None:
                    kind = END_OF[self._cluster.phase(after.id)]
                    yield self._event(after.attempt_id, kind, self._ending(after), cause)
            case Attempt(), Attempt():
                yield from self._attempt(before, after, cause)

    def _late_end(self, ended: AttemptId, cause: EventCause) -> Iterator[JobEvent]:
        """The end of an attempt whose checkpoints were stored after it, so that the next one comes only now."""
        attempt = self._cluster.attempts[ended]
        if attempt.ended_at is not None and attempt.ended_at < self._now:
            text = f"{attempt.failure}; another attempt follows, as its checkpoints are stored"
            yield _placed(self._event(ended, JobEventKind.ATTEMPT_FAILED, text, cause), attempt)

    def _saved(self, before: Attempt, after: Attempt, cause: EventCause) -> Iterator[JobEvent]:
        """What is told of the checkpoints with which an attempt begins, and of those that it makes."""
        if after.placed_at is not None and before.placed_at is None and (text := restoring_text(self._cluster, after)):
            yield self._event(after.attempt_id, JobEventKind.RESTORING, text, cause)
        if before.checkpoints.whole < after.checkpoints.whole <= CHECKPOINTS_TOLD:
            text = f"checkpoint {after.checkpoints.newest} is whole: all parts are stored"
            yield self._event(after.attempt_id, JobEventKind.CHECKPOINTED, text, cause)

    def _begin(self, attempt: Attempt, cause: EventCause) -> JobEvent:
        """The event of an attempt that is new, which is in the queue or waits."""
        job = self._cluster.jobs[attempt.job]
        if attempt.queued_since is not None:
            return self._event(attempt.attempt_id, JobEventKind.QUEUED, self._pause(attempt), cause)
        text = f"attempt {attempt.number} waits{_waits(job)}"
        return self._event(attempt.attempt_id, JobEventKind.WAITING, text, cause)

    def _hold(self, before: Attempt, after: Attempt, cause: EventCause) -> Iterator[JobEvent]:
        """What is told of an attempt that begins to wait, or that comes into the queue again."""
        if after.times_held > HOLDS_KEPT:
            return
        if after.times_held > before.times_held:
            text = f"waits{_waits(self._cluster.jobs[after.job])}"
            yield self._event(after.attempt_id, JobEventKind.WAITING, text, cause)
        elif before.queued_since is None and after.queued_since is not None:
            text = f"attempt {after.number} is queued: nothing keeps it out of the queue any more"
            yield self._event(after.attempt_id, JobEventKind.QUEUED, text, cause)

    def _attempt(self, before: Attempt, after: Attempt, cause: EventCause) -> Iterator[JobEvent]:
        attempt_id, size = after.attempt_id, self._cluster.jobs[after.job].spec.size
        since = f"{_since(after.placed_at, self._now)} after placement"
        yield from self._hold(before, after, cause)
        if after.claim is not None and before.claim is None:
            yield self._claim(after, after.claim, cause)
        if after.placed_at is not None and before.placed_at is None:
            nodes = nodes_of(self._cluster.gangs.members(attempt_id))
            text = f"{counted(size, 'execution')} on {_nodes(nodes)}"
            yield replace(self._event(attempt_id, JobEventKind.PLACED, text, cause), nodes=nodes[:NODES_KEPT])
        yield from self._saved(before, after, cause)
        if after.checked_in_at is not None and before.checked_in_at is None:
            text = f"all {size} are prepared, {since}{self._slowest(attempt_id, State.CHECKED_IN)}"
            yield self._event(attempt_id, JobEventKind.CHECKED_IN, text, cause)
        if after.released_at is not None and before.released_at is None:
            text = f"all {size} are armed and were told to start{self._slowest(attempt_id, State.ARMED)}"
            yield self._event(attempt_id, JobEventKind.RELEASED, text, cause)
        if after.started_at is not None and before.started_at is None:
            text = f"user code was started in all {size}, {since}{self._slowest(attempt_id, State.RUNNING)}"
            yield self._event(attempt_id, JobEventKind.RUNNING, text, cause)
        if after.over_portion and not before.over_portion:
            stopped = "it is stopped" if after.enforce is PortionRule.STOP else "nothing stops it"
            yield self._event(attempt_id, JobEventKind.GPU_MEMORY, f"{after.over_portion}; {stopped}", cause)
        if after.goal is Goal.STOP and before.goal is not Goal.STOP:
            yield from self._stopping(after, cause)
        if (
            after.ended_at is not None
            and before.ended_at is None
            and after.number < self._cluster.jobs[after.job].attempt
        ):
            text = f"{after.failure}; another attempt follows"
            yield _placed(self._event(attempt_id, JobEventKind.ATTEMPT_FAILED, text, cause), after)

    def _claim(self, attempt: Attempt, claim: SeatClaim, cause: EventCause) -> JobEvent:
        """The event of an attempt that gets seats for sure, and how many are stopped for it."""
        leaving = (self._cluster.attempts[each] for each in self._cluster.gangs.evictable.leaving)
        victims = {each.job for each in leaving if each.preempted_for == attempt.job}
        stopped = f"{counted(len(victims), 'job')} {'is' if len(victims) == 1 else 'are'} stopped for it"
        nodes = tuple(dict.fromkeys(seat.node for seat in claim.seats))
        text = f"{stopped if victims else 'others are leaving'}; once they have gone it is placed on {_nodes(nodes)}"
        return replace(self._event(attempt.attempt_id, JobEventKind.CLAIMED, text, cause), nodes=nodes[:NODES_KEPT])

    def _stopping(self, attempt: Attempt, cause: EventCause) -> Iterator[JobEvent]:
        """Why what still runs of an attempt is stopped, unless somebody asked for that, which is told already."""
        attempt_id = attempt.attempt_id
        if self._cluster.attempts[attempt_id].ended_at is not None or self._cluster.jobs[attempt.job].stop_requested_at:
            return
        why = "rank 0 ended well" if attempt.failure is None else str(attempt.failure)
        whole = attempt.failure is not None and attempt.failure.kind in _OF_ALL
        text = why if whole else f"{why}; the others are stopped"
        yield _placed(self._event(attempt_id, JobEventKind.STOPPING, text, cause), attempt)

    def _slowest(self, attempt_id: AttemptId, state: State) -> str:
        """The rank that came last, where there are several."""
        last = self._last.get((attempt_id, state))
        if last is None or self._cluster.jobs[attempt_id.job].spec.size == 1:
            return ""
        return f"; the last was rank {last.rank} on {last.node}"

    def _pause(self, attempt: Attempt) -> str:
        text = f"attempt {attempt.number} is queued"
        if attempt.not_before is None:
            return text
        return f"{text} and begins in {_since(self._now, attempt.not_before)} at the earliest"

    def _ending(self, job: Job) -> str:
        """How a job ended, and what became of each of its executions."""
        attempt = self._cluster.newest_attempt(job.id)
        tally = self._cluster.gangs.tally(job.attempt_id)
        counts = ", ".join(f"{tally[state]} {state}" for state in State if tally[state])
        ran = "" if attempt.released_at is None else f", {_since(attempt.released_at, self._now)} after its release"
        failure = "" if attempt.failure is None else f": {attempt.failure}"
        gave_up = f"; not started again: {job.gave_up}" if job.gave_up else ""
        reason = f"; {job.stop_reason}" if job.stop_reason else ""
        return f"{counts}{ran}{failure}{gave_up}{reason}"

    def _event(self, attempt_id: AttemptId, kind: JobEventKind, text: str, cause: EventCause) -> JobEvent:
        event = JobEvent(
            job=attempt_id.job,
            attempt=attempt_id.number,
            kind=kind,
            at=self._now,
            text=text,
            by=cause.who,
            cause=cause.what,
        )
        return shortened(event)


def shortened(event: AnyEvent) -> AnyEvent:
    """An event with no more text than is kept."""
    return event if len(event.text) <= TEXT_KEPT else replace(event, text=event.text[:TEXT_KEPT] + "…")


def _of_ranks(event: JobEvent, members: Sequence[Execution]) -> JobEvent:
    """An event of some executions."""
    nodes, ranks = nodes_of(members), [member.rank for member in members]
    return replace(event, rank=min(ranks), ranks=listed_ranks(ranks), nodes=nodes[:NODES_KEPT])


def _job_of(told: Changed | Offered | WentUnused | OutputsSettled) -> JobId:
    if isinstance(told, OutputsSettled):
        return told.left[0].job
    if isinstance(told, Offered | WentUnused):
        return told.job.id
    return told.after.id if isinstance(told.after, Job) else told.after.job


def _waits(job: Job) -> str:
    """What keeps a job out of the queue, as the end of a sentence; empty where nothing does."""
    if not job.holds:
        return ""
    told = (f"{each.words} before {moment_text(each.until)}" if each.until else each.words for each in job.holds)
    return f"; {', '.join(told)}"


def _placed(event: JobEvent, attempt: Attempt) -> JobEvent:
    """An event with the rank and the node that are to blame."""
    failure = attempt.failure
    if failure is None or failure.rank is None:
        return event
    return replace(event, ranks=str(failure.rank), nodes=() if failure.node is None else (failure.node,))


def _nodes(nodes: tuple[NodeId, ...]) -> str:
    return (
        listed_nodes(nodes)
        if len(nodes) == 1
        else f"{len(nodes)} nodes: {', '.join(nodes[:NODES_TOLD])}" + (", …" if len(nodes) > NODES_TOLD else "")
    )


def _since(begin: datetime | None, end: datetime) -> str:
    return "0 s" if begin is None else f"{(end - begin).total_seconds():.1f} s"
