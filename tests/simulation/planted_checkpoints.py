"""A fault in the handling of checkpoints that was made on purpose; the simulation must find it."""

from dataclasses import replace

from coordinator.core.step import finish
from coordinator.core.turn.turn import Turn
from tests.simulation.cores import Cores


def _beginning_with_halves(turn: Turn) -> None:
    """Has attempts begin with the newest checkpoint, whether or not all ranks have stored their part."""
    waiting = [job.attempt_id for job in turn.cluster.queue]
    finish(turn)
    for attempt_id in waiting:
        attempt = turn.cluster.attempts.get(attempt_id)
        saved = [
            each for each in turn.cluster.gangs.checkpoints.of(attempt_id.job) if each.id.attempt < attempt_id.number
        ]
        if attempt is not None and attempt.placed_at is not None and saved:
            newest = max(saved, key=lambda each: each.place)
            turn.put(replace(attempt, checkpoints=replace(attempt.checkpoints, restores=newest.id)))


HALF_CHECKPOINT = Cores(finish=_beginning_with_halves)
