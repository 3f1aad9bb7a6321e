"""Checkpoints of jobs: which parts count, when one is whole, with which one an attempt begins, and what goes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from coordinator.core.checkpoint_part import CheckpointPart
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.saved.checkpoints import SavedCheckpoint, savers
from coordinator.core.records import Attempt, Execution
from coordinator.core.turn.restoring import in_use
from coordinator.core.turn.turn import Turn
from muster.domain.data.checkpoint import (
    BAD_WITHIN,
    INCOMPLETE_KEPT,
    CheckpointId,
    StoredPart,
    ToldCheckpoints,
)
from muster.domain.ids import AttemptId, JobId
from muster.domain.jobs.failure import FailureKind

_SAYS_NOTHING = frozenset(
    {
        FailureKind.COMMAND_NOT_FOUND,
        FailureKind.QUEUE_TIMEOUT,
        FailureKind.TIME_LIMIT,
        FailureKind.INVALID_OPTION,
        FailureKind.TOO_LARGE,
        FailureKind.DATA_REFUSED,
    }
)
"""Failures of the user's that have nothing to do with what an attempt began with."""


def take(turn: Turn, execution: Execution, told: ToldCheckpoints) -> Execution:
    """Note what an agent tells of the checkpoints of an execution; a part that it tells again changes nothing."""
    known = execution.checkpoints
    number = max((part.number for part in told.parts), default=0)
    after = replace(known, told=max(known.told, number), trouble=told.trouble)
    if after != known:
        execution = replace(execution, checkpoints=after)
        turn.put(execution)
    if execution.rank in savers(turn.cluster.jobs[execution.job].spec):
        for part in told.parts:
            if part.number > known.told:
                _add(turn, execution, part)
    return execution


def judge(turn: Turn, attempt: Attempt) -> None:
    """Begin no attempt any more with a checkpoint after which two in a row failed at once, where there is an older one.

    Without an older one it stays: to begin from nothing could cost more than an attempt.
    """
    job, restored = turn.cluster.jobs[attempt.job], attempt.checkpoints.restores
    good = turn.cluster.gangs.checkpoints.good(job.id)
    if restored is None or len(good) < 2 or good[0].id != restored:  # noqa: PLR2004 - it and an older one
        return
    before = turn.cluster.attempts.get(AttemptId(job.id, attempt.number - 1))
    if before is not None and before.checkpoints.restores == restored and _failed_at_once(before, attempt):
        marks = replace(job.checkpoints, bad=(*job.checkpoints.bad, restored))
        turn.put(replace(job, checkpoints=marks))


def pin(turn: Turn, job: JobId, checkpoint: CheckpointId, *, pinned: bool) -> None:
    """Keep a checkpoint until it is unpinned, or no longer for that reason alone."""
    record = turn.cluster.jobs[job]
    others = tuple(each for each in record.checkpoints.pinned if each != checkpoint)
    marks = replace(record.checkpoints, pinned=(*others, checkpoint) if pinned else others)
    if marks != record.checkpoints:
        turn.put(replace(record, checkpoints=marks))
    if not pinned:
        _clear(turn, job)


def drop(turn: Turn, job: JobId, checkpoint: CheckpointId) -> None:
    """Forget a checkpoint, which the depot then removes."""
    saved, record = turn.cluster.gangs.checkpoints.get(job, checkpoint), turn.cluster.jobs[job]
    if saved is not None:
        turn.forget(saved)
    if (marks := record.checkpoints.without(checkpoint)) != record.checkpoints:
        turn.put(replace(record, checkpoints=marks))


def _add(turn: Turn, execution: Execution, told: StoredPart) -> None:
    index = turn.cluster.gangs.checkpoints
    part = CheckpointPart(
        job=execution.job,
        attempt=execution.attempt,
        name=told.name,
        rank=execution.rank,
        number=told.number,
        tree=told.tree,
        size=told.size,
        files=told.files,
        bytes=told.bytes,
        at=turn.now,
    )
    saved = index.get(execution.job, part.id)
    known = None if saved is None else saved.parts.get(part.rank)
    if part.id == in_use(turn.cluster, execution.job):
        return  # told late: an attempt after it began with what was there
    if known is not None and known.tree == part.tree:
        return  # stored again as it was, which makes it no newer
    if saved is not None and known is not None and saved.needed > 1:
        # Others may have stored theirs of the old one or of the new one: nobody can tell.
        part = replace(part, tree="", size=known.size)
    turn.put(part)
    saved = index.get(execution.job, part.id)
    if saved is not None and saved.whole:
        _become_whole(turn, saved, execution)
    elif saved is not None and len(saved.parts) == 1 and known is None:
        _clear(turn, execution.job)  # one more has begun, and nobody knows whether it will ever be whole


def _become_whole(turn: Turn, saved: SavedCheckpoint, execution: Execution) -> None:
    attempt = turn.cluster.attempts[execution.attempt_id]
    checkpoints = replace(attempt.checkpoints, whole=attempt.checkpoints.whole + 1, newest=saved.id.name)
    turn.put(replace(attempt, checkpoints=checkpoints, saved_at=turn.now))
    _clear(turn, execution.job)


def _clear(turn: Turn, job: JobId) -> None:
    """Drop what nobody needs any more once a checkpoint is whole."""
    for checkpoint in list(_needless(turn.cluster, job)):
        drop(turn, job, checkpoint)


def _needless(cluster: Cluster, job: JobId) -> Iterator[CheckpointId]:
    index, record = cluster.gangs.checkpoints, cluster.jobs[job]
    stay = {*record.checkpoints.pinned, in_use(cluster, job)}
    keep = max((role.checkpoint.keep for role in record.spec.roles if role.checkpoint is not None), default=1)
    good = index.good(job)
    yield from (each.id for each in good[keep:] if each.id not in stay)
    newest = good[0] if good else None
    others = [each for each in index.of(job) if each.id not in stay and each not in good]
    overtaken = [each for each in others if newest is not None and each.came_before(newest)]
    yield from (each.id for each in overtaken)
    yield from (each.id for each in _oldest(others, overtaken))


def _oldest(others: Sequence[SavedCheckpoint], overtaken: Sequence[SavedCheckpoint]) -> Iterator[SavedCheckpoint]:
    """Checkpoints that are too many where ranks store their parts of ever other checkpoints."""
    left = sorted((each for each in others if each not in overtaken), key=lambda each: each.place, reverse=True)
    return islice(left, INCOMPLETE_KEPT, None)


def _failed_at_once(*attempts: Attempt) -> bool:
    return all(map(_failed_soon, attempts))


def _failed_soon(attempt: Attempt) -> bool:
    """Whether user code failed so soon that what it began with may be the cause, or that is damaged itself.

    A depot that is away, or slow, says nothing of what it holds.
    """
    failure = attempt.failure
    if failure is None or failure.kind in _SAYS_NOTHING:
        return False
    if not (failure.kind.user or failure.kind is FailureKind.CHECKPOINT):
        return False
    if attempt.ended_at is None or attempt.checkpoints.whole:
        return False
    return attempt.released_at is None or attempt.ended_at - attempt.released_at < BAD_WITHIN
