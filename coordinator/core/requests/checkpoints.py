"""What people ask of checkpoints: to keep one, to keep it no longer, to remove it."""

from coordinator.core.answers import Accepted, Answer, RefusalCause, Refused
from coordinator.core.attempts import checkpoints
from coordinator.core.data_events import CheckpointOrdered
from coordinator.core.requests.jobs import unknown
from coordinator.core.turn.restoring import in_use
from coordinator.core.turn.turn import Turn
from muster.domain.data.checkpoint import MOST_PINNED, CheckpointOrder


def take(turn: Turn, event: CheckpointOrdered) -> Answer:
    """Do with a checkpoint what somebody wants; what is so already stays as it is."""
    job, wanted = turn.cluster.jobs.get(event.job), event.checkpoint
    if job is None:
        return unknown(event.job)
    if turn.cluster.gangs.checkpoints.get(job.id, wanted) is None:
        return Refused(cause=RefusalCause.UNKNOWN, message=f"job {job.id} has no checkpoint {wanted}")
    if event.order is CheckpointOrder.REMOVE:
        if in_use(turn.cluster, job.id) == wanted:
            return _conflict(
                f"attempt {job.attempt} of job {job.id} began with {wanted}, so it stays while that goes on"
            )
        checkpoints.drop(turn, job.id, wanted)
    else:
        pinned = event.order is CheckpointOrder.PIN
        others = [each for each in job.checkpoints.pinned if each != wanted]
        if pinned and len(others) >= MOST_PINNED:
            return _conflict(
                f"job {job.id} has {MOST_PINNED} pinned checkpoints, which are the most; unpin another one"
            )
        checkpoints.pin(turn, job.id, wanted, pinned=pinned)
    return Accepted(job=turn.cluster.jobs[job.id])


def _conflict(message: str) -> Refused:
    return Refused(cause=RefusalCause.CONFLICT, message=message)
