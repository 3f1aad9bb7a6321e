"""Checkpoints of a job as people see them."""

from itertools import islice

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.saved.checkpoints import SavedCheckpoint, first_of_role
from coordinator.core.records import Execution, Job
from coordinator.core.turn.restoring import in_use
from muster.domain.data.checkpoint import (
    MOST_EARLIER,
    CheckpointId,
    CheckpointPlace,
    CheckpointTrouble,
    CheckpointView,
    JobCheckpoints,
)
from muster.domain.errors import UnknownNameError
from muster.domain.ids import AttemptId, JobId

SPOILED_TOLD = 64
"""Ranks that wrote their part of a checkpoint anew which one answer names."""
TROUBLES_TOLD = 20
"""Ranks of which one answer says why they cannot store their newest checkpoint."""


def job_checkpoints(cluster: Cluster, name: JobId) -> JobCheckpoints:
    """What a job has saved: the newest first, whole or not."""
    job = cluster.jobs[name]
    saved = sorted(cluster.gangs.checkpoints.of(name), key=lambda each: each.place, reverse=True)
    troubled = (
        CheckpointTrouble(rank=each.rank, why=each.checkpoints.trouble)
        for each in cluster.gangs.members(AttemptId(name, job.attempt))
        if each.checkpoints.trouble
    )
    return JobCheckpoints(
        job=name,
        job_name=job.spec.name,
        checkpoints=tuple(_view(cluster, job, each) for each in saved),
        troubles=tuple(islice(troubled, TROUBLES_TOLD)),
    )


def checkpoint_store(job: Job, attempt: int, rank: int) -> str:
    """The place in a store of what a rank has saved in an attempt, as `s3://…`; empty: in the depot."""
    checkpoint = job.spec.role_of(rank).checkpoint
    to = "" if checkpoint is None else checkpoint.to.removesuffix("/")
    return to and f"{to}/{job.spec.name}-{job.id}/{attempt}/{rank}"


def checkpoint_place(cluster: Cluster, execution: Execution) -> CheckpointPlace | None:
    """Where an execution saves, and what stays there of its rank; None: in the depot. Nothing opens it yet."""
    job, rank = cluster.jobs[execution.job], execution.rank
    checkpoint = job.spec.role_of(rank).checkpoint
    if checkpoint is None or not checkpoint.to:
        return None
    kept = (saved.parts[rank].tree for saved in cluster.gangs.checkpoints.of(job.id) if rank in saved.parts)
    earlier = range(max(1, execution.attempt - MOST_EARLIER), execution.attempt)
    return CheckpointPlace(
        to=checkpoint_store(job, execution.attempt, rank),
        secret=checkpoint.secret,
        earlier=tuple(checkpoint_store(job, attempt, rank) for attempt in earlier),
        kept=tuple(sorted(set(filter(None, kept)))),
        told=execution.checkpoints.told,
    )


def restored_place(cluster: Cluster, execution: Execution, tree: str) -> CheckpointPlace | None:
    """Where a part lies that an execution restores; None: in the depot. Nothing opens it yet."""
    job = cluster.jobs[execution.job]
    restores = cluster.attempts[execution.attempt_id].checkpoints.restores
    saved = None if restores is None else cluster.gangs.checkpoints.get(job.id, restores)
    checkpoint = job.spec.role_of(execution.rank).checkpoint
    if saved is None or checkpoint is None or not checkpoint.to:
        return None
    own = (execution.rank, first_of_role(job.spec, execution.rank))
    [rank, *_] = [rank for rank in own if rank in saved.parts and saved.parts[rank].tree == tree]
    return CheckpointPlace(to=checkpoint_store(job, saved.id.attempt, rank), secret=checkpoint.secret)


def checkpoint_view(cluster: Cluster, name: JobId, checkpoint: CheckpointId) -> CheckpointView:
    """One checkpoint of a job; raises UnknownNameError where nothing of it is there."""
    saved = cluster.gangs.checkpoints.get(name, checkpoint)
    if saved is None:
        raise UnknownNameError(f"job {name} has no checkpoint {checkpoint}")
    return _view(cluster, cluster.jobs[name], saved)


def resolved_checkpoint(cluster: Cluster, job: JobId, wanted: CheckpointId) -> SavedCheckpoint:
    """The checkpoint that somebody means; raises UnknownNameError.

    Attempt 0: the newest that has one of this name. An empty name: the newest whole one, of that attempt or of all.
    """
    index, (attempt, name) = cluster.gangs.checkpoints, wanted
    fitting = [
        each
        for each in (index.of(job) if name else index.whole(job))
        if name in ("", each.id.name) and attempt in (0, each.id.attempt)
    ]
    if not fitting:
        what = f"checkpoint {name}" if name else "whole checkpoint"
        raise UnknownNameError(f"job {job} has no {what}{f' of attempt {attempt}' if attempt else ''}")
    return max(fitting, key=lambda each: each.place)


def _view(cluster: Cluster, job: Job, saved: SavedCheckpoint) -> CheckpointView:
    return CheckpointView(
        attempt=saved.id.attempt,
        name=saved.id.name,
        at=max(part.at for part in saved.parts.values()),
        files=sum(part.files for part in saved.parts.values()),
        bytes=sum(part.bytes for part in saved.parts.values()),
        parts=len(saved.parts),
        needed=saved.needed,
        lacking=cluster.gangs.checkpoints.lacking(job.id, saved),
        spoiled=tuple(sorted(saved.spoiled)[:SPOILED_TOLD]),
        pinned=saved.id in job.checkpoints.pinned,
        bad=saved.id in job.checkpoints.bad,
        restored=in_use(cluster, job.id) == saved.id,
    )
