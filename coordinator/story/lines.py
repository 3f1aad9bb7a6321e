"""Lines of the journal: one for each transition of an attempt and each event of a node, a sentence and its fields."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, assert_never

from coordinator.core.causes import EventCause
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.notes import Changed, Dropped, Noticed, Offered, OutputsSettled, WentUnused
from coordinator.core.records import Attempt, Job
from coordinator.story.moves import CommonMove, Told, listed_nodes
from muster.domain.data.outputs import OutputsStage
from muster.domain.event import FleetEvent, NodeEvent
from muster.domain.gangs.plan import Goal
from muster.domain.ids import AttemptId
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.queueing.change import differences

JOBS_TOLD = 20
"""Jobs of one call that its line lists; of more it tells how many there are."""

_SENTENCES: Mapping[State, str] = {
    State.WAITING: "executions wait outside the queue",
    State.QUEUED: "executions are in the queue",
    State.PLACED: "executions are placed",
    State.PREPARING: "executions are being prepared",
    State.CHECKED_IN: "executions have checked in",
    State.ARMED: "executions are armed",
    State.RUNNING: "executions run",
    State.STOPPING: "executions are told to stop",
    State.SUCCEEDED: "executions ended well",
    State.FAILED: "executions failed",
    State.STOPPED: "executions are stopped",
    State.LOST: "executions are lost",
}


class Line(NamedTuple):
    """One line of the journal."""

    sentence: str
    fields: dict[str, object]
    debug: bool = False
    """Whether only somebody who looks for a fault wants it."""


def lines(cluster: Cluster, stories: Iterable[Told]) -> list[Line]:
    """What a turn did, as lines of the journal; the cluster is as it is after the turn."""
    submitted: dict[EventCause, list[Job]] = {}
    others: list[Line] = []
    for each in stories:
        match each:
            case CommonMove():
                others.append(_move(each))
            case Changed(before=None, after=Job() as job):
                submitted.setdefault(each.cause, []).append(job)
            case Changed():
                others += _change(cluster, each)
            case Dropped(job=job):
                others.append(Line("job was deleted", {"job": job.id, "attempt": job.attempt, **_cause(each.cause)}))
            case Offered():
                others.append(_offer(each))
            case Noticed():
                others.append(_notice(each))
            case WentUnused(job=job):
                about = {"job": job.id, "attempt": job.attempt, "ends_at": each.ends_at.isoformat()}
                others.append(Line("job goes unused and is about to be stopped", {**about, **_cause(each.cause)}))
            case OutputsSettled(left=left):
                stored = sum(1 for member in left if member.outputs and member.outputs.stage is OutputsStage.STORED)
                about = {
                    "job": left[0].job,
                    "attempt": left[0].attempt,
                    "stored": stored,
                    "not_stored": len(left) - stored,
                }
                others.append(Line("outputs are on their way no more", {**about, **_cause(each.cause)}))
            case _:
                assert_never(each)
    return [*(_submitted(jobs, cause) for cause, jobs in submitted.items()), *others]


def _submitted(jobs: Sequence[Job], cause: EventCause) -> Line:
    if len(jobs) > 1:
        listed = ",".join(job.id for job in jobs[:JOBS_TOLD]) + (",…" if len(jobs) > JOBS_TOLD else "")
        return Line("jobs were submitted", {"job": listed, "jobs": len(jobs), **_cause(cause)})
    [job] = jobs
    about = {"job_name": job.spec.name, "project": job.spec.project, "executions": job.spec.size}
    place: dict[str, object] = {"job": job.id, "attempt": job.attempt}
    return Line("job was submitted", {**place, "to": _first_state(job), **about, **_cause(cause)})


def _first_state(job: Job) -> State:
    return State.WAITING if job.holds else State.QUEUED


def _move(move: CommonMove) -> Line:
    end = {"end": move.end} if move.end else {}
    place = {"job": move.job, "attempt": move.attempt, "rank": move.ranks, "node": listed_nodes(move.nodes)}
    return Line(_SENTENCES[move.after], {**place, "from": move.before, "to": move.after, **end, **_cause(move.cause)})


def _change(cluster: Cluster, change: Changed) -> Iterator[Line]:
    before, after, cause = change
    match before, after:
        case Job(), Job():
            if after.stop_requested_at is not None and before.stop_requested_at is None:
                why: dict[str, object] = {"why": after.stop_reason} if after.stop_reason else {}
                yield _line("job is to stop", after.attempt_id, "", State.STOPPING, cause, why)
            if after.changes > before.changes:
                told: dict[str, object] = {"change": ", ".join(differences(before.spec, after.spec))}
                yield _line("job is changed", after.attempt_id, "", "changed", cause, told)
            if after.ended_at is not None and before.ended_at is None:
                yield _ended(cluster, after, cause)
        case None, Attempt(number=number) if number > 1:
            begins, state = ("is queued", State.QUEUED) if after.queued_since else ("waits", State.WAITING)
            yield _line(f"another attempt {begins}", AttemptId(after.job, number), "", state, cause)
        case Attempt(), Attempt():
            yield from _attempt(cluster, before, after, cause)


def _attempt(cluster: Cluster, before: Attempt, after: Attempt, cause: EventCause) -> Iterator[Line]:
    place = after.attempt_id
    if after.checked_in_at is not None and before.checked_in_at is None:
        yield _line("attempt has checked in", place, _word(before.goal), _word(after.goal), cause)
    if after.released_at is not None and before.released_at is None:
        yield _line("attempt is released", place, _word(before.goal), _word(after.goal), cause)
    if after.started_at is not None and before.started_at is None:
        yield _line("attempt has started", place, "released", "started", cause)
    job = cluster.jobs.get(after.job)
    if after.ended_at is not None and before.ended_at is None and job is not None and job.attempt > after.number:
        failure: dict[str, object] = {} if after.failure is None else {"failure": after.failure}
        yield _line("attempt has ended, and another one follows", place, "", "ended", cause, failure)


def _ended(cluster: Cluster, job: Job, cause: EventCause) -> Line:
    if job.id not in cluster.jobs:  # it was deleted in the same turn
        return _line("job has ended", job.attempt_id, "", "ended", cause)
    failure = cluster.newest_attempt(job.id).failure
    about: dict[str, object] = {} if failure is None else {"failure": failure}
    return _line("job has ended", job.attempt_id, "", cluster.phase(job.id), cause, about)


def _notice(noticed: Noticed) -> Line:
    event = noticed.event
    node = event.node if isinstance(event, NodeEvent) else ""
    project = event.project if isinstance(event, FleetEvent) else ""
    about = {"node": node, "project": project, "to": event.kind, "why": event.text}
    return Line(event.kind.words, {**{name: told for name, told in about.items() if told}, **_cause(noticed.cause)})


def _offer(offer: Offered) -> Line:
    about = {"job": offer.job.id, "attempt": offer.job.attempt, "offered": "all" if offer.head else "beside the head"}
    if offer.refusal:
        return Line("job does not fit", {**about, "refusal": offer.refusal, **_cause(offer.cause)}, debug=True)
    return Line("job fits", {**about, **_cause(offer.cause)}, debug=True)


def _line(
    sentence: str,
    place: AttemptId,
    before: str,
    after: str,
    cause: EventCause,
    more: Mapping[str, object] | None = None,
) -> Line:
    fields: dict[str, object] = {"job": place[0], "attempt": place[1]}
    if before:
        fields["from"] = before
    return Line(sentence, {**fields, "to": after, **(more or {}), **_cause(cause)})


def _word(goal: Goal | None) -> str:
    """A goal as the journal says it."""
    return "" if goal is None else goal.name.lower()


def _cause(cause: EventCause) -> dict[str, object]:
    """The cause as a field; none where nobody named it."""
    return {"cause": cause} if cause.what else {}
