"""Holds that clients ask for: hold and unhold what waits, suspend and resume what has nodes as well."""

from dataclasses import replace
from typing import assert_never

from coordinator.core.answers import Accepted, Answer, RefusalCause, Refused
from coordinator.core.attempts import attempts, waiting
from coordinator.core.events import HoldRequested, ResumeRequested, SuspendRequested, UnholdRequested
from coordinator.core.records import Job
from coordinator.core.requests.jobs import unknown
from coordinator.core.turn.turn import Turn
from muster.domain.gangs.plan import Goal
from muster.domain.jobs.lifecycle import NOT_PLACED
from muster.domain.jobs.queueing.waiting import WaitKind, WaitReason, among

HoldEvent = HoldRequested | UnholdRequested | SuspendRequested | ResumeRequested

MOST_ATTEMPTS = 10_000
"""Attempts up to which a job can be suspended: each resumption begins another, and each is remembered."""


def take(turn: Turn, event: HoldEvent) -> Answer:
    """Hold a job back or let it go on; what is so already stays as it is."""
    job = turn.cluster.jobs.get(event.job)
    if job is None:
        return unknown(event.job)
    saving = turn.cluster.gangs.saving(job.attempt_id)  # another attempt may follow
    if turn.cluster.newest_attempt(job.id).ended_at is not None and not saving:
        return _conflict(f"job {job.id} has ended ({turn.cluster.phase(job.id)})")
    if job.stop_requested_at is not None:
        return _conflict(f"job {job.id} is being stopped")
    return _take(turn, job, event)


def _take(turn: Turn, job: Job, event: HoldEvent) -> Answer:
    match event:
        case HoldRequested():
            return _hold(turn, job, event)
        case UnholdRequested():
            return _unhold(turn, job, event)
        case SuspendRequested():
            return _suspend(turn, job, event)
        case ResumeRequested():
            return _with_holds(turn, job, job.holds_but(WaitKind.SUSPENDED))
        case _:
            assert_never(event)


def _hold(turn: Turn, job: Job, event: HoldRequested) -> Answer:
    if _is_placed(turn, job):
        phase = turn.cluster.phase(job.id)
        return _conflict(f"job {job.id} has its nodes already ({phase}); `muster suspend` stops it until it is resumed")
    kind = WaitKind.OPERATOR if event.by_operator else WaitKind.USER
    return _add(turn, job, WaitReason(kind=kind, by=event.cause.who, since=turn.now))


def _unhold(turn: Turn, job: Job, event: UnholdRequested) -> Answer:
    operators = among(job.holds, WaitKind.OPERATOR)
    if operators is not None and not event.by_operator:
        return Refused(
            cause=RefusalCause.FORBIDDEN, message=f"job {job.id} is {operators.words}; only an operator releases it"
        )
    return _with_holds(turn, job, job.holds_but(WaitKind.USER, WaitKind.OPERATOR))


def _suspend(turn: Turn, job: Job, event: SuspendRequested) -> Answer:
    if job.attempt >= MOST_ATTEMPTS:
        return _conflict(f"job {job.id} has had {job.attempt} attempts, as many as a job that is suspended may have")
    attempt = turn.cluster.attempts[job.attempt_id]
    if attempt.goal is Goal.STOP and attempt.failure is None:
        return _conflict(f"job {job.id} has succeeded, and what is left of it is being stopped")
    answer = _add(turn, job, WaitReason(kind=WaitKind.SUSPENDED, by=event.cause.who, since=turn.now))
    if _is_placed(turn, job):
        attempts.suspend(turn, job.attempt_id, event.cause.who)
        return Accepted(job=turn.cluster.jobs[job.id])
    return answer


def _add(turn: Turn, job: Job, reason: WaitReason) -> Answer:
    if among(job.holds, reason.kind) is not None:
        return Accepted(job=job)
    return _with_holds(turn, job, (*job.holds, reason))


def _with_holds(turn: Turn, job: Job, holds: tuple[WaitReason, ...]) -> Answer:
    waiting.hold(turn, replace(job, holds=holds))
    return Accepted(job=turn.cluster.jobs[job.id])


def _is_placed(turn: Turn, job: Job) -> bool:
    return turn.cluster.gangs.rank(job.attempt_id, 0).state not in NOT_PLACED


def _conflict(message: str) -> Refused:
    return Refused(cause=RefusalCause.CONFLICT, message=message)
