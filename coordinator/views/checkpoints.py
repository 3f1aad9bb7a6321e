"""Checkpoints of a job as people see them."""

from itertools import islice

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.saved.checkpoints import SavedCheckpoint
from coordinator.core.records import Job
from coordinator.core.turn.restoring import in_use
from muster.domain.data.checkpoint import CheckpointId, CheckpointTrouble, CheckpointView, JobCheckpoints
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
