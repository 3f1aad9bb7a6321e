"""Outputs of jobs that are inputs of others: found at the submit, so that they are the same for all attempts."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.job_index import Projects
from coordinator.core.events import JobSubmitted
from coordinator.core.records import Execution, Job
from coordinator.engine.engine import Engine
from coordinator.trust.caller import Caller
from coordinator.views.outputs import outputs_now, outputs_store
from muster.domain.data.job_input import JobInput
from muster.domain.data.job_source import MOST_INPUT_TREES, InputTree, JobSource, read_job_source
from muster.domain.data.outputs import OutputsStage
from muster.domain.errors import ConflictError, InvalidJobError, MusterError, UnknownNameError
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.quantity import counted

NAMESAKES_LOOKED_AT = 1000
"""Jobs of one name, from the newest on, of which the newest that has succeeded is looked for."""


def takes_outputs(spec: JobSpec) -> bool:
    """Whether a job has outputs of others as inputs."""
    return any(each.source for role in spec.roles for each in role.inputs)


async def with_sources(
    engine: Engine, caller: Caller, submitted: JobSubmitted, before: Collection[str] = ()
) -> JobSubmitted:
    """The submission with the outputs that it has as inputs; `before`: names of jobs that are submitted together.

    Raises an error where a job has none, has not ended, still stores them, or is none that the caller may look at.
    """
    if not takes_outputs(submitted.spec):
        return submitted

    def read(cluster: Cluster, now: datetime) -> JobSpec:
        return settled(SourceSight(cluster, now, caller.seen_projects, before), submitted.spec)

    return replace(submitted, spec=await engine.query(read))


@dataclass(frozen=True, slots=True)
class SourceSight:
    """Among what a submit looks for outputs."""

    cluster: Cluster
    now: datetime
    seen: Projects
    """The projects whose jobs its caller may look at."""
    before: Collection[str] = ()
    """Names of jobs that are submitted together with it."""


def settled(sight: SourceSight, spec: JobSpec) -> JobSpec:
    """The job with what its inputs are that come from jobs; raises an error as above."""
    roles = [
        replace(role, inputs=tuple(_settled(sight, spec.project, each) for each in role.inputs)) for role in spec.roles
    ]
    return replace(spec, roles=tuple(roles))


def _settled(sight: SourceSight, project: str, each: JobInput) -> JobInput:
    source = read_job_source(each.source)
    if source is None:
        return each
    try:
        job = _job_meant(sight, project, source)
        if source.every:
            return replace(each, source=f"job:{job.id}/*", trees=_every_tree(sight, job))
        member = _member(sight.cluster, job, source)
        role, index = _place(job, member)
        tree = _stored(job, member, sight.now)
        if tree is None:
            raise InvalidJobError(f"{role}-{index} of job {job.id} has left no outputs")
    except MusterError as error:
        raise type(error)(f"inputs.{each.name}: {error}") from None
    return replace(each, source=f"job:{job.id}/{role}-{index}", trees=(tree,))


def _job_meant(sight: SourceSight, project: str, source: JobSource) -> Job:
    cluster = sight.cluster
    if source.is_id:
        job = cluster.jobs.get(JobId(source.job))
        if job is None or (sight.seen is not None and job.spec.project not in sight.seen):
            raise UnknownNameError(f"there is no job with the id {source.job}; `muster jobs --all` lists them")
    else:
        if source.job in sight.before:
            raise InvalidJobError(
                f"{source.job} is submitted together with this job, so it has no outputs yet; submit this one once it "
                "has succeeded, or name an earlier job by job:ID"
            )
        job = _newest_succeeded(cluster, project, source.job)
    phase = cluster.phase(job.id)
    if phase is JobPhase.STORING:
        raise ConflictError(f"job {job.id} is still storing its outputs; submit again after `muster wait {job.id}`")
    if job.ended_at is None:
        raise ConflictError(f"job {job.id} has not ended ({phase}); submit again after `muster wait {job.id}`")
    return job


def _newest_succeeded(cluster: Cluster, project: str, name: str) -> Job:
    ids = list(islice(cluster.job_index.named(name, project), NAMESAKES_LOOKED_AT))
    for each in ids:
        if cluster.phase(each) is JobPhase.SUCCEEDED:
            return cluster.jobs[each]
    if not ids:
        raise UnknownNameError(f"there is no job {name} in project {project}; `muster jobs --all` lists them")
    newest = ids[0]
    raise ConflictError(
        f"no job {name} of project {project} has succeeded; the newest, {newest}, is {cluster.phase(newest)}. Take "
        f"what another one has left by job:ID"
    )


def _member(cluster: Cluster, job: Job, source: JobSource) -> Execution:
    """The execution of the newest attempt that is meant."""
    members = cluster.gangs.members(job.attempt_id)
    if source.role:
        for member in members:
            if _place(job, member) == (source.role, source.index):
                return member
        there = ", ".join(f"{role.name}-0 to {role.name}-{role.count - 1}" for role in job.spec.roles[:5])
        raise UnknownNameError(f"job {job.id} has no execution {source.role}-{source.index}; it has {there}")
    if job.spec.size > 1:
        first = job.spec.roles[0].name
        raise InvalidJobError(
            f"job {job.id} has {job.spec.size} executions; say which, like {source}/{first}-0, or {source}/* for all"
        )
    return next(iter(members))


def _every_tree(sight: SourceSight, job: Job) -> tuple[InputTree, ...]:
    trees = list(islice(_trees(sight, job), MOST_INPUT_TREES + 1))
    if not trees:
        raise InvalidJobError(f"job {job.id} has left no outputs")
    if len(trees) > MOST_INPUT_TREES:
        raise InvalidJobError(
            f"more than {counted(MOST_INPUT_TREES, 'execution')} of job {job.id} have left outputs, which is the most "
            "that one input can be; name single ones"
        )
    return tuple(trees)


def _trees(sight: SourceSight, job: Job) -> Iterator[InputTree]:
    for member in sight.cluster.gangs.members(job.attempt_id):
        tree = _stored(job, member, sight.now)
        if tree is not None:
            role, index = _place(job, member)
            yield replace(tree, below=f"{role}-{index}")


def _stored(job: Job, member: Execution, now: datetime) -> InputTree | None:
    """What an execution has left; None: nothing. Raises ConflictError where it is not in the depot."""
    outputs = outputs_now(job, member, now)
    if outputs is None or outputs.stage is OutputsStage.UNWANTED:
        return None
    if outputs.on_their_way:
        raise ConflictError(f"job {job.id} is still storing its outputs; submit again after `muster wait {job.id}`")
    if outputs.stage is not OutputsStage.STORED:
        where = f"on node {member.node} alone" if outputs.stage is OutputsStage.ON_NODE else _GONE[outputs.stage]
        because = f": {outputs.why}" if outputs.why else ""
        raise ConflictError(f"what rank {member.rank} of job {job.id} has left is {where}{because}")
    if outputs.tree and (store := outputs_store(job, member)):
        raise ConflictError(f"what rank {member.rank} of job {job.id} has left is in a store; name it by url: {store}/")
    return InputTree(tree=outputs.tree, size=outputs.size) if outputs.tree else None


_GONE = {
    OutputsStage.LIVE: "not all there yet",
    OutputsStage.LOST: "lost",
    OutputsStage.EXPIRED: "not there any more",
    OutputsStage.STORING_AGAIN: "being stored again",
}


def _place(job: Job, member: Execution) -> tuple[str, int]:
    """The role of an execution, and its place in that."""
    role, ranks = next(each for each in job.spec.ranks_by_role() if member.rank in each[1])
    return role.name, ranks.index(member.rank)
