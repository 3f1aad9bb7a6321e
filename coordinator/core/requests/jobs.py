"""What clients ask for: submit, stop, delete."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta

from coordinator.core.answers import Accepted, AllAccepted, Answer, NoneAccepted, RefusalCause, Refused
from coordinator.core.attempts import attempts, storing
from coordinator.core.attempts.starts import enqueue
from coordinator.core.attempts.waiting import with_time
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.deadlines import DeleteDue
from coordinator.core.events import DeleteRequested, JobsSubmitted, JobSubmitted, StopRequested
from coordinator.core.placement import placement
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.placement import NoFit
from coordinator.core.placement.unknown_labels import unknown_in
from coordinator.core.records import Job
from coordinator.core.requests import node_types, pools
from coordinator.core.requests.portions import counted
from coordinator.core.requests.projects import unknown_project
from coordinator.core.scheduling.cycle import possible
from coordinator.core.sharing.job_classes import broken, class_of
from coordinator.core.sharing.sentences import never_text
from coordinator.core.sharing.unit import Unit
from coordinator.core.turn.turn import Turn
from muster.domain.fleet.quota import amounts_of_job
from muster.domain.ids import JobId
from muster.domain.jobs.job import LOCAL_OWNER, JobSpec
from muster.domain.jobs.queueing.waiting import WaitKind, WaitReason

REFUSED = 100
"""Most refusals told of many jobs; more of them are one mistake made many times."""
FORGOTTEN_AT_ONCE, FORGOTTEN_AGAIN = 100, timedelta(seconds=1)
"""Jobs that one turn forgets because their time is over, and how long the others stay; who calls meanwhile waits less.
"""


@dataclass(slots=True)
class _Ahead:
    """What is to be accepted together with the job that is looked at, and before it."""

    jobs: set[JobId] = field(default_factory=set)
    specs: dict[str, JobSpec] = field(default_factory=dict)
    """Jobs of the same call by their keys."""
    executions: int = 0
    projects: Counter[str] = field(default_factory=Counter)
    """How many jobs there are of each project."""

    def add(self, event: JobSubmitted) -> None:
        self.jobs.add(event.job)
        if event.idempotency_key:
            self.specs.setdefault(event.idempotency_key, event.spec)
        self.executions += event.spec.size
        self.projects[event.spec.project] += 1


def submit(turn: Turn, event: JobSubmitted) -> Answer:
    """Accept a job, unless no node could ever run it; the same key gives the same job, and no other."""
    event = _counted(turn.cluster, event)
    return _refusal(turn.cluster, event, _Ahead()) or Accepted(job=_accept(turn, event))


def submit_all(turn: Turn, event: JobsSubmitted) -> Answer:
    """Accept all jobs, or none as soon as one of them would be refused by itself."""
    refused, ahead = dict[int, Refused](), _Ahead()
    jobs = [_counted(turn.cluster, each) for each in event.jobs]
    for position, each in enumerate(jobs):
        refusal = _refusal(turn.cluster, each, ahead, by_node=not refused)
        if refusal is not None:
            refused[position] = refusal
        ahead.add(each)
        if len(refused) == REFUSED:
            break
    if refused:
        return NoneAccepted(refused=refused)
    return AllAccepted(jobs=tuple(_accept(turn, each) for each in jobs))


def _counted(cluster: Cluster, event: JobSubmitted) -> JobSubmitted:
    """The submit of a job of which all is known that quotas count."""
    spec = counted(cluster, event.spec)
    return event if spec is event.spec else replace(event, spec=spec)


def stop(turn: Turn, event: StopRequested) -> Answer:
    """Order a job to stop; one that has ended stays as it is, also one whose outputs alone are on their way.

    With `now` nobody waits for its outputs any longer.
    """
    job = turn.cluster.jobs.get(event.job)
    if job is None:
        return unknown(event.job)
    if event.now and job.ended_at is None and not job.leaves_outputs:
        job = replace(job, leaves_outputs=True)
        turn.put(job)
        storing.leave(turn, job.id)
        job = turn.cluster.jobs[job.id]
    over = turn.cluster.newest_attempt(job.id).ended_at is not None and not turn.cluster.gangs.saving(job.attempt_id)
    if not over and job.stop_requested_at is None:
        who = turn.notes.cause.who
        reason = f"{who} asked for it" if who not in {"", LOCAL_OWNER} else ""
        turn.put(replace(job, stop_requested_at=turn.now, stop_reason=reason))
        attempts.stop(turn, job.attempt_id)
    return Accepted(job=turn.cluster.jobs[event.job])


def delete(turn: Turn, event: DeleteRequested) -> Answer:
    """Forget a job; one that has not ended is stopped first if the client insists, and refused otherwise."""
    job = turn.cluster.jobs.get(event.job)
    if job is None:
        return unknown(event.job)
    if job.ended_at is not None:
        turn.drop(job.id)
        return Accepted(job=job)
    if not event.force:
        message = f"job {job.id} has not ended ({turn.cluster.phase(job.id)}); stop it first, or delete it with force"
        return Refused(cause=RefusalCause.CONFLICT, message=message)
    turn.put(replace(job, delete_when_ended=True))
    attempts.end_job(turn, job.id)  # one whose outputs alone are on their way
    return stop(turn, StopRequested(job=job.id))


def forget(turn: Turn, job: JobId) -> None:
    """Forget a job whose time after its end is over; of very many the others a moment later."""
    record = turn.cluster.jobs.get(job)
    if record is None or record.ended_at is None or record.spec.delete_after is None:
        return
    if len(turn.doomed) >= FORGOTTEN_AT_ONCE:
        turn.cluster.deadlines.add(turn.now + FORGOTTEN_AGAIN, DeleteDue(job=job))
    elif record.ended_at + record.spec.delete_after <= turn.now:
        turn.doom(job)


def _refusal(cluster: Cluster, event: JobSubmitted, ahead: _Ahead, *, by_node: bool = True) -> Refused | None:
    """Why a job is not taken; `by_node` with what each node lacks, which takes long on a large fleet."""
    if event.spec.project not in cluster.projects:
        return unknown_project(event.spec.project)  # it was removed since the edge looked
    taken = _taken(cluster, event, ahead)
    if taken is not None or cluster.job_of_key(event.idempotency_key) is not None:
        return taken
    refused = node_types.refusal(cluster, event.spec)
    if refused is None and not event.queue_anyway:
        refused = never(cluster, node_types.settled(cluster, event.spec), by_node=by_node)
    if refused is not None:
        return refused
    full = _full(cluster, event.spec.size, ahead) or _too_many_queued(cluster, event.spec.project, ahead)
    if full is not None:
        return full
    if event.job in cluster.jobs or event.job in ahead.jobs:
        return Refused(cause=RefusalCause.CONFLICT, message=f"there is a job {event.job} already; submit again")
    return None


def never(cluster: Cluster, spec: JobSpec, *, by_node: bool = True) -> Refused | None:
    """Why a job could never run in its project or on the nodes that there are; None where it could.

    `by_node`: with what each node lacks, which takes long on a large fleet.
    """
    if (closed := pools.refusal(cluster, spec)) is not None:
        return closed
    over, no_fit = _over_terms(cluster, spec), possible(cluster, spec)
    if over is not None or no_fit is None:
        return over
    nodes = Available(capacities=cluster.load.total.fresh())
    unknown = unknown_in(spec, nodes.capacities)
    return Refused(
        cause=RefusalCause.IMPOSSIBLE,
        message="; ".join(filter(None, (f"{_too_large(no_fit)}: {no_fit}", unknown))),
        refusals=placement.refusals(spec, nodes) if by_node else (),
    )


def _too_large(never: NoFit) -> str:
    """Whether it is the fleet that is too small for a job, or every node of it."""
    return "the fleet is too small for it" if never.found or not never.nodes else "no node could ever run it"


def _taken(cluster: Cluster, event: JobSubmitted, ahead: _Ahead) -> Refused | None:
    """Why the key of a job cannot be its key; None where it can."""
    known = _spec_of_key(cluster, event.idempotency_key, ahead)
    if known is None or known == event.spec:
        return None
    message = (
        "its idempotency key was used for another job before; a key stands for one job of one project, "
        "so submit this one with a new key"
    )
    return Refused(cause=RefusalCause.TAKEN, message=message)


def _spec_of_key(cluster: Cluster, key: str, ahead: _Ahead) -> JobSpec | None:
    """The job for which a key stands; None: for none yet."""
    job = cluster.job_of_key(key)
    return (job.submitted or job.spec) if job is not None else ahead.specs.get(key)


def _full(cluster: Cluster, size: int, ahead: _Ahead) -> Refused | None:
    """Why there is no room for another job of so many executions; None where there is."""
    limits, queued = cluster.limits, len(cluster.queue) + len(ahead.jobs)
    kept = len(cluster.executions) + ahead.executions
    if queued >= limits.queued:
        message = f"{queued} jobs are queued already, as many as the coordinator takes; try again when some have run"
    elif kept + size > limits.executions:
        message = (
            f"the coordinator keeps {kept} executions and takes {limits.executions} at most, so {size} more are too "
            "many; delete jobs that have ended (`muster delete`)"
        )
    else:
        return None
    return Refused(cause=RefusalCause.EXHAUSTED, message=message)


def _over_terms(cluster: Cluster, spec: JobSpec) -> Refused | None:
    """Why a job could never run in its project, whatever the fleet has; None where it could in one of its pools."""
    units, pools = cluster.unit_load.units, cluster.unit_load.pools_of(spec)
    job_class = class_of(units, spec, pools)
    bars = [broken(units, spec, pool, job_class) for pool in pools]
    if bars[0] is None or None in bars:
        return None
    message = f"its project may not have so much: {never_text(bars[0], amounts_of_job(spec), pools[0])}"
    return Refused(cause=RefusalCause.IMPOSSIBLE, message=message)


def _too_many_queued(cluster: Cluster, project: str, ahead: _Ahead) -> Refused | None:
    """Why a project may have no more jobs in the queue; None where it may."""
    for unit in cluster.unit_load.units.get(project).line():
        most = unit.terms.everywhere.max_queued
        queued = unit.queued + sum(ahead.projects[each] for each in _projects_of(unit))
        if most is not None and queued >= most:
            message = f"{queued} jobs of {unit.name} are queued, as many as may be (max_queued: {most})"
            return Refused(cause=RefusalCause.EXHAUSTED, message=f"{message}; try again when some have run")
    return None


def _projects_of(unit: Unit) -> tuple[str, ...]:
    return tuple(unit.below) or (unit.name,)


def _accept(turn: Turn, event: JobSubmitted) -> Job:
    """The job, which is there from now on unless it is only tried out; or the one that came with the same key."""
    known = turn.cluster.job_of_key(event.idempotency_key)
    if known is not None:
        return known
    spec = node_types.settled(turn.cluster, event.spec)
    job = Job(
        id=event.job,
        spec=spec,
        submitted=None if spec is event.spec else event.spec,
        sequence=turn.cluster.job_index.submits.next_sequence,
        submitted_at=turn.now,
        owner=event.owner,
        job_class=class_of(turn.cluster.unit_load.units, event.spec, turn.cluster.unit_load.pools_of(event.spec)),
        idempotency_key=event.idempotency_key,
        presets=event.presets,
        holds=with_time(
            (WaitReason(kind=WaitKind.USER, by=event.owner, since=turn.now),) if event.spec.hold else (),
            event.spec.not_before,
            turn.now,
        ),
    )
    if not event.dry_run:
        turn.put(job)
        enqueue(turn, job)
    return job


def unknown(job: JobId) -> Refused:
    """The answer for a job that is not there."""
    return Refused(cause=RefusalCause.UNKNOWN, message=f"there is no job {job}; `muster jobs --all` lists them")
