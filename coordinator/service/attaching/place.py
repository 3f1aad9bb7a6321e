"""Where an attachment leads: the execution that a caller means, or why nobody can attach to it."""

from dataclasses import dataclass
from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Execution, Job
from muster.domain.attachments.allowed import refusal_of_node
from muster.domain.errors import ConflictError, UnavailableError, UnknownNameError
from muster.domain.fleet.node import NodeState
from muster.domain.ids import ExecutionId, JobId, NodeId
from muster.domain.jobs.lifecycle import TERMINAL, State


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachPlace:
    """A running execution."""

    job: JobId
    job_name: str
    project: str
    owner: str
    rank: int
    execution: ExecutionId
    node: NodeId


def attach_place(cluster: Cluster, id_: JobId, rank: int | None, now: datetime) -> AttachPlace:
    """The execution of the newest attempt with this rank, or the lowest that runs.

    Raises UnknownNameError where there is no such rank, ConflictError where it does not run or its node takes no
    attachments, and UnavailableError where that is silent.
    """
    job = cluster.jobs[id_]
    member = _member(cluster, job, rank)
    if member.state is not State.RUNNING or member.node is None:
        raise ConflictError(_why_not(job, member, now))
    _require_there(cluster, member.node, now)
    return _place(job, member, member.node)


def served_place(cluster: Cluster, id_: ExecutionId, node: NodeId) -> AttachPlace | None:
    """The execution on a node to which its agent serves an attachment; None: there is no such one."""
    execution = cluster.executions.get(id_)
    if execution is None or execution.node != node:
        return None
    return _place(cluster.jobs[execution.job], execution, node)


def _place(job: Job, execution: Execution, node: NodeId) -> AttachPlace:
    return AttachPlace(
        job=job.id,
        job_name=job.spec.name,
        project=job.spec.project,
        owner=job.owner,
        rank=execution.rank,
        execution=execution.id,
        node=node,
    )


def _member(cluster: Cluster, job: Job, rank: int | None) -> Execution:
    members = cluster.gangs.members(job.attempt_id)
    if rank is None:
        running = (member for member in members if member.state is State.RUNNING)
        first = next(running, None) or next(iter(members), None)
        if first is None:
            raise ConflictError(f"{job.spec.name} has ended, and its executions are not kept any more")
        return first
    if rank >= job.spec.size:
        ranks = "rank 0" if job.spec.size == 1 else f"ranks 0 … {job.spec.size - 1}"
        raise UnknownNameError(f"{job.spec.name} has {ranks}")
    for member in members:
        if member.rank == rank:
            return member
    raise ConflictError(f"{job.spec.name} has ended, and its executions are not kept any more")


def _why_not(job: Job, member: Execution, now: datetime) -> str:
    """Why nobody can attach to an execution that does not run."""
    name, rank = job.spec.name, member.rank
    if member.state is State.WAITING:
        return f"{name} waits outside the queue; --wait waits for it, and `muster why {name}` tells why"
    if member.state is State.QUEUED:
        return f"{name} is queued; --wait waits for it, and `muster why {name}` tells why"
    if member.state in TERMINAL:
        ended = member.times.get(member.state)
        when = f" {_ago(now, ended)}" if ended is not None else ""
        if member.failure is not None:
            how = f"failed{when}: {member.failure.message}"
        elif member.exit is not None:
            how = f"ended{when} with exit code {member.exit.code}"
        else:
            how = f"was {member.state}{when}" if member.state is State.STOPPED else f"is {member.state}"
        return f"rank {rank} of {name} {how}; its log: muster logs {name} --rank {rank}"
    if member.state is State.STOPPING:
        return f"rank {rank} of {name} is being stopped"
    detail = f" ({member.detail})" if member.detail else ""
    return f"rank {rank} of {name} is being prepared on {member.node}{detail}; --wait waits for it"


def _require_there(cluster: Cluster, node: NodeId, now: datetime) -> None:
    presence = cluster.presence.get(node)
    if presence is None or presence.state is not NodeState.READY:
        silent = "" if presence is None else f" for {(now - presence.last_seen_at).total_seconds():.0f} s"
        raise UnavailableError(f"{node} has not been heard{silent}; nothing was started")
    refusal = refusal_of_node(node, cluster.nodes[node].features)
    if refusal is not None:
        raise ConflictError(refusal)


def _ago(now: datetime, then: datetime) -> str:
    seconds = max(0.0, (now - then).total_seconds())
    if seconds < 90:  # noqa: PLR2004 - people read minutes better beyond it
        return f"{seconds:.0f} s ago"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min ago"
    return f"{seconds / 3600:.0f} h ago"
