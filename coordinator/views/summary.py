"""One line on what a job is doing or how it ended."""

from collections.abc import Iterable

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Attempt, Job
from coordinator.views import silence
from muster.domain.ids import AttemptId, JobId
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.lifecycle import PROGRESS, JobPhase, State
from muster.domain.jobs.queueing.waiting import WaitKind, WaitReason
from muster.domain.quantity import counted, moment_text


def summarise(cluster: Cluster, job: JobId) -> str:
    """One line on what a job is doing or how it ended."""
    phase, storing = cluster.phase(job), cluster.gangs.storing(job)
    if phase is JobPhase.STORING:
        return both(
            _in_phase(cluster, job, cluster.phase(job, outputs=False)),
            f"storing the outputs of {counted(storing, 'execution')}",
        )
    return _in_phase(cluster, job, phase)


def _in_phase(cluster: Cluster, job: JobId, phase: JobPhase) -> str:  # noqa: PLR0911 - one for each phase
    record, attempt = cluster.jobs[job], cluster.newest_attempt(job)
    tally, size = cluster.gangs.tally(record.attempt_id), record.spec.size
    match phase:
        case JobPhase.WAITING:
            return held_back(record.holds)
        case JobPhase.QUEUED:
            return _waits(cluster, record, attempt)
        case JobPhase.PREPARING:
            return f"{_reached(tally, State.CHECKED_IN)} of {size} checked in, {_reached(tally, State.ARMED)} armed"
        case JobPhase.RUNNING:
            return f"{tally[State.RUNNING]} of {size} running, {tally[State.SUCCEEDED]} succeeded"
        case JobPhase.STOPPING:
            return f"stopping{_cause_of_stop(record, attempt)}"
        case JobPhase.FAILED:
            return "; ".join(part for part in (str(attempt.failure or "failed"), record.gave_up) if part)
        case JobPhase.SUCCEEDED:
            return "all succeeded" if tally[State.SUCCEEDED] == size else "rank 0 succeeded"
        case JobPhase.STOPPED | JobPhase.STORING:
            return _why_stopped(record, attempt)


def _why_stopped(job: Job, attempt: Attempt) -> str:
    if job.stop_requested_at is None and attempt.failure is not None:
        return f"stopped: {attempt.failure}, and does not start again (on_preempt.restart: false)"
    return f"stopped: {job.stop_reason}" if job.stop_reason else "stopped on request"


def held_back(reasons: Iterable[WaitReason]) -> str:
    """What keeps a job out of the queue, each reason with its time."""
    return "; ".join(map(_told, reasons))


def _told(reason: WaitReason) -> str:
    if reason.kind is WaitKind.TIME:
        return reason.words if reason.until is None else f"{reason.words} before {moment_text(reason.until)}"
    return reason.words if reason.since is None else f"{reason.words} since {moment_text(reason.since)}"


def both(text: str, addition: str) -> str:
    """Two parts of a sentence, of which the second may be empty."""
    return f"{text}; {addition}" if addition else text


def _waits(cluster: Cluster, job: Job, attempt: Attempt) -> str:
    """What a queued job waits for."""
    why = cluster.queue.refused.get(job.id, "waits for its turn")
    if job.attempt == 1:
        return why
    before, begins_at = AttemptId(job.id, job.attempt - 1), attempt.not_before
    if begins_at is not None and job.id not in cluster.queue.refused:
        why = f"not before {silence.clock(begins_at)}"
        if attempt.fenced_until is not None:
            why += f", as {silence.astray(cluster, before)} may run until then"
    return f"attempt {job.attempt}: {why}; the one before {_how_it_ended(cluster.attempts[before])}"


def _how_it_ended(attempt: Attempt) -> str:
    kind = None if attempt.failure is None else attempt.failure.kind
    if kind is FailureKind.PREEMPTED:
        return str(attempt.failure)
    return f"was {attempt.failure}" if kind is FailureKind.SUSPENDED else f"failed: {attempt.failure}"


def _cause_of_stop(job: Job, attempt: Attempt) -> str:
    if attempt.failure is not None and attempt.failure.kind in {FailureKind.SUSPENDED, FailureKind.PREEMPTED}:
        return f": {attempt.failure}"
    if attempt.failure is not None:
        return f" because {attempt.failure}"
    if job.stop_reason:
        return f": {job.stop_reason}"
    return " as requested" if job.stop_requested_at is not None else " because rank 0 has succeeded"


def _reached(tally: dict[State, int], state: State) -> int:
    return sum(tally.get(each, 0) for each in PROGRESS[PROGRESS.index(state) :])
