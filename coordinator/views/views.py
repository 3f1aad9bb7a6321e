"""What clients see, made from the records of the cluster."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.job_index import EVERY_JOB, Among, Projects
from coordinator.core.placement.capacity import key_of
from coordinator.core.placement.placement import Available, NoFit, refusals
from coordinator.core.records import Attempt, Execution, Job
from coordinator.core.scheduling import cycle as scheduling
from coordinator.views import silence
from muster.domain.errors import ConflictError, UnknownNameError
from muster.domain.fleet.node import NodeView
from muster.domain.gangs.plan import Goal
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.explanation import Awaited, Explanation
from muster.domain.jobs.lifecycle import PROGRESS, JobPhase, State
from muster.domain.jobs.view import AttemptView, ExecutionView, JobView, Transition

JOBS_NAMED = 5
"""How many of several jobs a message names."""
LOOKED_AT = 10_000
"""Most jobs that are looked at for one page; who asks for a rare one gets pages that are not full, and others go on."""


def resolve(cluster: Cluster, name: str, seen: Projects = None) -> JobId:
    """The job that a user means: an id, the unique beginning of one, or a name (the newest of that name).

    Jobs of projects that are not `seen` are as if they were not there, and cost nothing. Raises UnknownNameError for
    none and ConflictError for several.
    """
    exact = cluster.jobs.get(JobId(name))
    if exact is not None and (seen is None or exact.spec.project in seen):
        return exact.id
    named = cluster.job_index.newest_named(name, seen)
    if named is not None:
        return named
    begins = list(islice(cluster.job_index.beginning_with(name, seen), JOBS_NAMED + 1)) if name else []
    if len(begins) == 1:
        return begins[0]
    if begins:
        shown = ", ".join(begins[:JOBS_NAMED])
        count, shown = (
            (f"more than {JOBS_NAMED}", f"{shown}, …") if len(begins) > JOBS_NAMED else (str(len(begins)), shown)
        )
        raise ConflictError(f"{count} jobs have an id that begins with {name!r} ({shown}); give more of it")
    raise UnknownNameError(f"there is no job {name!r}; `muster jobs --all` lists them")


def job_view(cluster: Cluster, job: JobId, *, whole: bool = True, only: int = 0) -> JobView:
    """A job; `whole` with all attempts and the executions that are at hand, otherwise with the newest attempt alone.

    `only`: of this attempt alone the executions are told; 0: of all. Raises UnknownNameError if there is no such one.
    """
    record = cluster.jobs[job]
    newest = cluster.newest_attempt(job)
    if only > record.attempt:
        raise UnknownNameError(f"job {job} has no attempt {only}; its newest is {record.attempt}")
    numbers = range(1, record.attempt + 1) if whole else [record.attempt]
    tally = cluster.gangs.tally(record.attempt_id)
    return JobView(
        id=job,
        spec=record.spec,
        phase=cluster.phase(job),
        summary=_with(silence.told(cluster, job), summary(cluster, job)) if whole else summary(cluster, job),
        submitted_at=record.submitted_at,
        owner=record.owner,
        sequence=record.sequence,
        started_at=newest.started_at,
        ended_at=record.ended_at,
        attempts=tuple(
            _attempt_view(cluster, record, cluster.attempts[AttemptId(job, n)], whole=whole and only in {0, n})
            for n in numbers
        ),
        states={state: count for state, count in tally.items() if count},
        failure=newest.failure,
    )


def with_executions(view: JobView, job: Job, number: int, executions: Sequence[Execution]) -> JobView:
    """A job with these executions in one of its attempts."""
    told = tuple(_execution_view(job, execution) for execution in executions)
    attempts = (replace(each, executions=told) if each.number == number else each for each in view.attempts)
    return replace(view, attempts=tuple(attempts))


def unaccepted_view(job: Job) -> JobView:
    """A job that was only tried out."""
    return JobView(
        id=JobId(""),
        spec=job.spec,
        phase=JobPhase.QUEUED,
        summary="could be accepted",
        submitted_at=job.submitted_at,
        owner=job.owner,
    )


def jobs_page(
    cluster: Cluster,
    before: int | None,
    size: int,
    wanted: Callable[[Job], bool],
    among: Among = EVERY_JOB,
) -> tuple[list[JobView], int | None]:
    """Jobs that are wanted, newest first, below sequence number `before`; and where the next page begins.

    A page costs in proportion to the jobs that it is made of, however many others there are. It has fewer than `size`
    jobs, and still a next page, where many had to be looked at to find them.
    """
    page: list[JobView] = []
    last = before
    for number, (sequence, job) in enumerate(cluster.job_index.newest_first(before, among)):
        if number == LOOKED_AT:
            return page, last
        if job is not None and wanted(cluster.jobs[job]):
            if len(page) == size:
                return page, last
            page.append(job_view(cluster, job, whole=False))
        last = sequence
    return page, None


def node_views(cluster: Cluster) -> Iterator[NodeView]:
    """All nodes, node-2 before node-10."""
    return (node_view(cluster, node) for node in sorted(cluster.nodes, key=key_of))


def node_view(cluster: Cluster, node: NodeId) -> NodeView:
    """A node and what of it is given away; raises UnknownNameError."""
    record = cluster.nodes.get(node)
    if record is None:
        raise UnknownNameError(f"there is no node {node!r}; `muster nodes` lists them")
    used, presence = cluster.load.used(node), cluster.presence[node]
    return NodeView(
        name=node,
        state=presence.state,
        address=record.address,
        inventory=record.inventory,
        executions=tuple(sorted(used.executions)),
        gpus_taken=tuple(gpu.uuid for gpu in record.inventory.gpus if gpu.uuid in used.gpus),
        cpu_millis_taken=used.cpu_millis,
        memory_taken=used.memory,
        agent_version=record.agent_version,
        last_seen_at=presence.last_seen_at if presence.seen else None,
        joined_at=record.joined_at,
        cordon=record.cordon,
    )


def summary(cluster: Cluster, job: JobId) -> str:  # noqa: PLR0911 - one for each phase
    """One line on what a job is doing or how it ended."""
    record, attempt = cluster.jobs[job], cluster.newest_attempt(job)
    tally, size = cluster.gangs.tally(record.attempt_id), record.spec.size
    match cluster.phase(job):
        case JobPhase.QUEUED:
            return _waits(cluster, record, attempt)
        case JobPhase.PREPARING:
            return f"{_reached(tally, State.CHECKED_IN)} of {size} checked in, {_reached(tally, State.ARMED)} armed"
        case JobPhase.RUNNING:
            return f"{tally[State.RUNNING]} of {size} running, {tally[State.SUCCEEDED]} succeeded"
        case JobPhase.STOPPING:
            return f"stopping {_cause_of_stop(record, attempt)}"
        case JobPhase.FAILED:
            return "; ".join(part for part in (str(attempt.failure or "failed"), record.gave_up) if part)
        case JobPhase.SUCCEEDED:
            return "all succeeded" if tally[State.SUCCEEDED] == size else "rank 0 succeeded"
        case JobPhase.STOPPED:
            return "stopped on request"


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
    return f"attempt {job.attempt}: {why}; the one before failed: {cluster.attempts[before].failure}"


def _with(addition: str, text: str) -> str:
    return f"{text}; {addition}" if addition else text


def explain(
    cluster: Cluster, job: JobId, now: datetime, visible: Callable[[Job], bool] = lambda _: True
) -> Explanation:
    """Why a job is where it is; of other jobs only those are named that are `visible`."""
    phase = cluster.phase(job)
    if phase is JobPhase.QUEUED:
        return _explain_queued(cluster, job, now, visible)
    attempt = cluster.newest_attempt(job)
    awaited = _awaited(cluster, attempt) if phase is JobPhase.PREPARING else ()
    text = _with(silence.told(cluster, job), summary(cluster, job))
    if awaited and attempt.deadline is not None:
        left = max(0.0, (attempt.deadline - now).total_seconds())
        text = f"{text}; waits for {len(awaited)} more, for at most {left:.0f} s from now"
    return Explanation(summary=text, phase=phase, awaited=awaited, failure=attempt.failure)


def _explain_queued(cluster: Cluster, job: JobId, now: datetime, visible: Callable[[Job], bool]) -> Explanation:
    position = cluster.queue.position(job)
    attempt = cluster.newest_attempt(job)
    begins_at = attempt.not_before
    if begins_at is not None and begins_at > now:
        text = summary(cluster, job)
        return Explanation(summary=text, phase=JobPhase.QUEUED, queue_position=position)
    no_fit, kept = scheduling.refusal(cluster, job), cluster.load.reservation
    is_next = position == 1 if kept is None else kept.job == job
    return Explanation(
        summary=(
            _next_in_queue(cluster, no_fit) if is_next else _behind_others(cluster, no_fit, position - 1, visible)
        ),
        phase=JobPhase.QUEUED,
        queue_position=position,
        refusals=refusals(cluster.jobs[job].spec, Available(capacities=cluster.load.free.fresh())) if no_fit else (),
    )


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
        return f"would fit, but what is free is kept for {first}, the next in the queue; {ahead} ahead of it"
    return f"{no_fit}; {ahead} ahead of it in the queue, the next one is {first}"


def _awaited(cluster: Cluster, attempt: Attempt) -> tuple[Awaited, ...]:
    wanted = State.CHECKED_IN if attempt.goal is Goal.PREPARE else State.ARMED
    return tuple(
        Awaited(rank=member.rank, node=member.node, state=member.state, detail=member.detail)
        for member in cluster.gangs.members(attempt.attempt_id)
        if member.state in PROGRESS and PROGRESS.index(member.state) < PROGRESS.index(wanted)
    )


def _attempt_view(cluster: Cluster, job: Job, attempt: Attempt, *, whole: bool) -> AttemptView:
    members = cluster.gangs.members(attempt.attempt_id) if whole else ()
    return AttemptView(
        number=attempt.number,
        placed_at=attempt.placed_at,
        checked_in_at=attempt.checked_in_at,
        released_at=attempt.released_at,
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        failure=attempt.failure,
        executions=tuple(_execution_view(job, member) for member in members),
        executions_dropped=attempt.executions_dropped,
    )


def _execution_view(job: Job, execution: Execution) -> ExecutionView:
    return ExecutionView(
        id=execution.id,
        rank=execution.rank,
        role=job.spec.role_of(execution.rank).name,
        state=execution.state,
        node=execution.node,
        gpus=execution.gpus,
        detail=execution.detail,
        address=execution.address,
        ports=execution.ports,
        failure=execution.failure,
        exit=execution.exit,
        transitions=tuple(Transition(state=state, at=at) for state, at in execution.times.items()),
        log_complete=execution.log_complete,
    )


def _cause_of_stop(job: Job, attempt: Attempt) -> str:
    if attempt.failure is not None:
        return f"because {attempt.failure}"
    return "as requested" if job.stop_requested_at is not None else "because rank 0 has succeeded"


def _reached(tally: dict[State, int], state: State) -> int:
    return sum(tally.get(each, 0) for each in PROGRESS[PROGRESS.index(state) :])
