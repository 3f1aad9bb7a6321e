"""Jobs as clients see them, and how they are found by name."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.job_index import EVERY_JOB, Among, Projects
from coordinator.core.records import Attempt, Execution, Job
from coordinator.views import silence
from coordinator.views.idle import idle_outlook, longest_run_outlook
from coordinator.views.summary import both, summarise
from muster.domain.errors import ConflictError, UnknownNameError
from muster.domain.ids import AttemptId, JobId
from muster.domain.jobs.lifecycle import JobPhase
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
        summary=_summary(cluster, job, whole=whole),
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
        reasons=record.holds if record.ended_at is None else (),
        images=record.images,
        presets=record.presets,
    )


def _summary(cluster: Cluster, job: JobId, *, whole: bool) -> str:
    """A line on a job; `whole` with all that is known of its nodes, and of how long it may go unused."""
    if not whole:
        return both(summarise(cluster, job), idle_outlook(cluster, job, soon=True))
    told = both(both(summarise(cluster, job), silence.told(cluster, job)), idle_outlook(cluster, job))
    return both(told, longest_run_outlook(cluster, job))


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
        phase=JobPhase.WAITING if job.holds else JobPhase.QUEUED,
        reasons=job.holds,
        summary="could be accepted",
        submitted_at=job.submitted_at,
        owner=job.owner,
        presets=job.presets,
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


def _attempt_view(cluster: Cluster, job: Job, attempt: Attempt, *, whole: bool) -> AttemptView:
    members = cluster.gangs.members(attempt.attempt_id) if whole else ()
    return AttemptView(
        number=attempt.number,
        placed_at=attempt.placed_at,
        checked_in_at=attempt.checked_in_at,
        released_at=attempt.released_at,
        started_at=attempt.started_at,
        saved_at=attempt.saved_at,
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
        outputs=execution.outputs,
    )
