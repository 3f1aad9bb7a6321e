"""How an attempt comes into the queue: the first one at submit, later ones after a failure, by the job's rules."""

from dataclasses import replace
from datetime import datetime, timedelta

from coordinator.core.attempts.history import first_whole, too_many
from coordinator.core.attempts.restarts import GiveUp, Restart, verdict
from coordinator.core.cluster.deadlines import FENCE_NOTED_EVERY
from coordinator.core.records import Attempt, Execution, Job
from coordinator.core.turn.fencing import Unproven, over_from
from coordinator.core.turn.turn import Turn
from muster.domain.ids import AttemptId, NodeId, execution_id
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.restart import NO_EXIT_RULES


def enqueue(turn: Turn, job: Job) -> None:
    """Make the first attempt of a job, with all its executions in the queue, or waiting if there is a reason."""
    turn.cluster.deadlines.watch_job(job)
    _enqueue(turn, job, Attempt(job=job.id, number=job.attempt))


def _enqueue(turn: Turn, job: Job, attempt: Attempt) -> None:
    state = State.WAITING if job.holds else State.QUEUED
    if state is State.QUEUED:
        attempt = replace(attempt, queued_since=turn.now)
    turn.put(attempt)
    for rank in range(job.spec.size):
        turn.put(
            Execution(
                id=execution_id(job.id, job.attempt, rank),
                job=job.id,
                attempt=job.attempt,
                rank=rank,
                state=state,
                times={state: turn.now},
            ),
        )
    turn.cluster.deadlines.watch_attempt(attempt, job)
    turn.cluster.deadlines.watch_queue(attempt, job)
    turn.reconsider_queue()


def start_again(turn: Turn, attempt_id: AttemptId) -> bool:
    """Begin another attempt if the one that just ended failed and the job's rules say so; whether there is one.

    One that was suspended is followed by another, however its executions ended after the order.
    """
    job, ended = turn.cluster.jobs[attempt_id.job], turn.cluster.attempts[attempt_id]
    suspended = ended.failure is not None and ended.failure.kind is FailureKind.SUSPENDED
    failed = suspended or turn.cluster.phase(job.id, outputs=False) is JobPhase.FAILED
    if not failed or job.stop_requested_at is not None:
        return False
    attempts = (turn.cluster.attempts[AttemptId(job.id, number)] for number in range(1, job.attempt + 1))
    failures = [attempt.failure for attempt in attempts if attempt.failure is not None]
    if not failures:
        return False
    rank = failures[-1].rank
    rules = NO_EXIT_RULES if rank is None else job.spec.role_of(rank).exit_codes
    decided = verdict(job.spec.restarts, failures, rules)
    if isinstance(decided, Restart):
        over = over_from(turn.cluster, attempt_id)
        if not isinstance(over, Unproven):
            _begin_anew(turn, job, decided.pause, over, avoid=failures[-1].node)
            return True
        decided = GiveUp(reason=str(over))
    turn.put(replace(job, gave_up=decided.reason))
    return False


def _begin_anew(turn: Turn, job: Job, pause: timedelta, over: datetime, avoid: NodeId | None) -> None:
    """Another attempt: after the pause, and when nothing of the one before can run any more."""
    again = replace(job, attempt=job.attempt + 1)
    not_before = max(turn.now + pause, over)
    attempt = Attempt(
        job=job.id,
        number=again.attempt,
        not_before=not_before if not_before > turn.now else None,
        fenced_until=over if over > turn.now else None,
        fence_noted_at=turn.now if over > turn.now else None,
        avoid=avoid,
    )
    turn.put(again)
    _enqueue(turn, again, attempt)
    if (oldest := first_whole(again) - 1) > 1:
        turn.forget_members(AttemptId(job.id, oldest))
    attempts = turn.cluster.attempts
    dropped = {number for number in range(2, again.attempt) if attempts[AttemptId(job.id, number)].executions_dropped}
    for number in too_many(again, dropped, turn.cluster.limits.stored):
        turn.drop_members(AttemptId(job.id, number))


def come_due(turn: Turn, attempt_id: AttemptId) -> None:
    """The pause before an attempt may be over; if it is not, store how much of a fence is."""
    attempt = turn.cluster.attempts.get(attempt_id)
    if attempt is None or attempt.goal is not None:
        return
    if not paused(attempt, turn):
        turn.reconsider_queue()
        return
    if attempt.fence_noted_at is not None and turn.now >= attempt.fence_noted_at + FENCE_NOTED_EVERY:
        attempt = replace(attempt, fence_noted_at=turn.now)
        turn.put(attempt)
    turn.cluster.deadlines.watch_attempt(attempt, turn.cluster.jobs[attempt_id.job])


def paused(attempt: Attempt, turn: Turn) -> bool:
    """Whether an attempt must not be placed yet."""
    return attempt.not_before is not None and attempt.not_before > turn.now
