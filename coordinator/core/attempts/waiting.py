"""When an attempt waits outside the queue and when it comes in.

A job waits while there is a reason: people hold it, or its time has not come. Only what may be placed is queued.
"""

from dataclasses import replace
from datetime import datetime

from coordinator.core.records import Job
from coordinator.core.turn.turn import Turn
from muster.domain.ids import JobId
from muster.domain.jobs.lifecycle import NOT_PLACED, State, Trigger
from muster.domain.jobs.queueing.waiting import WaitKind, WaitReason


def reconsider(turn: Turn, job: JobId) -> None:
    """Have the newest attempt of a job wait if there is a reason for it, else queue; one that is placed goes on."""
    record = turn.cluster.jobs[job]
    attempt_id = record.attempt_id
    state = turn.cluster.gangs.rank(attempt_id, 0).state
    wanted = State.WAITING if record.holds else State.QUEUED
    if state not in NOT_PLACED or state is wanted:
        return
    attempt = turn.cluster.attempts[attempt_id]
    if wanted is State.QUEUED:
        attempt = replace(attempt, queued_since=turn.now)
    else:
        queued_for = attempt.queue_time(turn.now)
        times_held = attempt.times_held + 1
        attempt = replace(
            attempt, claim=None, reserved=(), queued_since=None, queued_for=queued_for, times_held=times_held
        )
    turn.put(attempt)
    for member in list(turn.cluster.gangs.members(attempt_id)):
        turn.move(member, Trigger.READY if wanted is State.QUEUED else Trigger.HELD)
    turn.cluster.deadlines.watch_queue(attempt, record)
    turn.reconsider_queue()


def come_due(turn: Turn, job: JobId) -> None:
    """The time before which a job does not begin may have come."""
    record = turn.cluster.jobs.get(job)
    if record is not None and record.ended_at is None:
        hold(turn, replace(record, holds=with_time(record.holds_but(WaitKind.TIME), record.spec.not_before, turn.now)))


def hold(turn: Turn, job: Job) -> None:
    """Have a job with other holds than before wait, or queue if it has none."""
    if job != turn.cluster.jobs[job.id]:
        turn.put(job)
        reconsider(turn, job.id)


def with_time(holds: tuple[WaitReason, ...], begins: datetime | None, now: datetime) -> tuple[WaitReason, ...]:
    """These holds, and one until the time before which a job does not begin, if that is still to come."""
    return holds if begins is None or begins <= now else (*holds, WaitReason(kind=WaitKind.TIME, until=begins))
