"""Why a job is where it is."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.outlook.changes import helpful_changes, pool_refusals
from coordinator.core.outlook.forecast import estimate_start
from coordinator.core.placement.capacity import key_of
from coordinator.core.placement.placement import NoFit, refusals
from coordinator.core.placement.unknown_labels import unknown_in
from coordinator.core.records import Attempt, Job
from coordinator.core.scheduling import cycle as scheduling
from coordinator.core.scheduling.bars import Bars
from coordinator.core.scheduling.windows import why_closed
from coordinator.core.sharing.sentences import bar_text
from coordinator.views import silence
from coordinator.views.idle import idle_outlook, longest_run_outlook
from coordinator.views.summary import both, summarise
from muster.domain.fleet.quota import amounts_of_job
from muster.domain.gangs.plan import Goal
from muster.domain.ids import JobId
from muster.domain.jobs.explanation import Awaited, Explanation, NodeRefusal
from muster.domain.jobs.lifecycle import PROGRESS, JobPhase, State
from muster.domain.jobs.queueing.waiting import WaitKind
from muster.domain.quantity import counted, moment_text

_RELEASES = {
    WaitKind.USER: ("unhold", "releases it"),
    WaitKind.OPERATOR: ("unhold", "releases it, if an operator says so"),
    WaitKind.SUSPENDED: ("resume", "lets it go on"),
}
"""Commands that end what keeps a job out of the queue, and what they do."""


def explain(
    cluster: Cluster, job: JobId, now: datetime, visible: Callable[[Job], bool] = lambda _: True
) -> Explanation:
    """Why a job is where it is; of other jobs only those are named that are `visible`."""
    phase = cluster.phase(job)
    if phase is JobPhase.QUEUED:
        return _explain_queued(cluster, job, now, visible)
    if phase is JobPhase.WAITING:
        return _explain_waiting(cluster, job)
    attempt = cluster.newest_attempt(job)
    awaited = _awaited(cluster, attempt) if phase is JobPhase.PREPARING else ()
    text = both(both(summarise(cluster, job), silence.told(cluster, job)), idle_outlook(cluster, job))
    text = both(text, longest_run_outlook(cluster, job))
    if awaited and attempt.deadline is not None:
        left = max(0.0, (attempt.deadline - now).total_seconds())
        text = f"{text}; waits for {len(awaited)} more, for at most {left:.0f} s from now"
    return Explanation(summary=text, phase=phase, awaited=awaited, failure=attempt.failure)


def _explain_waiting(cluster: Cluster, job: JobId) -> Explanation:
    record = cluster.jobs[job]
    released = filter(None, (_RELEASES.get(reason.kind) for reason in record.holds))
    how = ", ".join(f"`muster {verb} {job}` {does}" for verb, does in dict.fromkeys(released))
    return Explanation(summary=both(summarise(cluster, job), how), phase=JobPhase.WAITING, reasons=record.holds)


def _explain_queued(cluster: Cluster, job: JobId, now: datetime, visible: Callable[[Job], bool]) -> Explanation:
    position = cluster.queue.position(job)
    attempt = cluster.newest_attempt(job)
    begins_at = attempt.not_before
    if begins_at is not None and begins_at > now:
        text = summarise(cluster, job)
        return Explanation(summary=text, phase=JobPhase.QUEUED, queue_position=position)
    if (evicting := _evicting(cluster, job, now)) is not None:
        return Explanation(summary=evicting, phase=JobPhase.QUEUED, queue_position=position)
    bar = Bars(cluster, now).of(cluster.jobs[job])
    found = Explanation(
        summary="",
        phase=JobPhase.QUEUED,
        queue_position=position,
        pools=pool_refusals(cluster, job, now),
        changes=helpful_changes(cluster, job, now),
        estimate=estimate_start(cluster, job, now),
    )
    if bar is not None:
        return replace(found, summary=bar_text(bar, amounts_of_job(cluster.jobs[job].spec)))
    no_fit, kept = scheduling.refusal(cluster, job, now), cluster.load.reservation
    is_next = position == 1 if kept is None else kept.job == job
    text = _next_in_queue(cluster, no_fit) if is_next else _behind_others(cluster, no_fit, position - 1, visible)
    unknown = no_fit and unknown_in(cluster.jobs[job].spec, cluster.load.total.fresh())
    return replace(
        found,
        summary=f"{text}; {unknown}" if unknown else text,
        refusals=_refusals(cluster, job, now) if no_fit else (),
    )


def _refusals(cluster: Cluster, job: JobId, now: datetime) -> tuple[NodeRefusal, ...]:
    """What each node lacks, or which window keeps the job from it."""
    spec = cluster.jobs[job].spec
    closed = why_closed(cluster, spec, now)
    available = scheduling.free_for(cluster, job, now)
    found = (*refusals(spec, available), *(NodeRefusal(node=node, reason=why) for node, why in closed.items()))
    return tuple(sorted(found, key=lambda refusal: key_of(refusal.node)))


def _evicting(cluster: Cluster, job: JobId, now: datetime) -> str | None:
    """How far others make room for a job; None: nobody does, or will."""
    if cluster.newest_attempt(job).claim is not None:
        victims = {each.job for each in cluster.gangs.evictable.leaving if cluster.attempts[each].preempted_for == job}
        if not victims:
            return "waits for the end of what is being stopped; its seats are kept for it"
        are = "is" if len(victims) == 1 else "are"
        return f"{counted(len(victims), 'job')} {are} stopped for it; their seats are kept for it"
    safe_until = cluster.gangs.evictable.protected_for(job, now)
    if safe_until is None:
        return None
    return f"others have what it has a right to, and are safe until {safe_until:%H:%M:%S} UTC at the earliest"


def _next_in_queue(cluster: Cluster, no_fit: NoFit | None) -> str:
    if no_fit is None:
        return "fits now and is about to be placed"
    if cluster.load.reservation is None:
        return f"{no_fit}; it is the next in the queue, but too large for the nodes that are there"
    return f"{no_fit}; it is the next in the queue, and what comes free is kept for it"


def _behind_others(cluster: Cluster, no_fit: NoFit | None, ahead: int, visible: Callable[[Job], bool]) -> str:
    kept = cluster.load.reservation
    head = next(iter(cluster.queue)) if kept is None else cluster.jobs[kept.job]
    first = f"{head.spec.name} ({head.id})" if visible(head) else "a job of another project"
    if no_fit is None:
        by = cluster.load.head.free_by
        only = "" if by is None else f"; only what has ended by {moment_text(by)} for sure may be there before it"
        return f"would fit, but what is free is kept for {first}, the next in the queue{only}; {ahead} ahead of it"
    return f"{no_fit}; {ahead} ahead of it in the queue, the next one is {first}"


def _awaited(cluster: Cluster, attempt: Attempt) -> tuple[Awaited, ...]:
    wanted = State.CHECKED_IN if attempt.goal is Goal.PREPARE else State.ARMED
    return tuple(
        Awaited(rank=member.rank, node=member.node, state=member.state, detail=member.detail)
        for member in cluster.gangs.members(attempt.attempt_id)
        if member.state in PROGRESS and PROGRESS.index(member.state) < PROGRESS.index(wanted)
    )
