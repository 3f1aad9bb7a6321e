"""Faults in the handling of checkpoints and code that were made on purpose; the simulation must find them."""

from dataclasses import replace

from coordinator.core.answers import Answer
from coordinator.core.data_events import CodeFetched
from coordinator.core.events import Event
from coordinator.core.step import finish, step
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


def _believing_whoever_comes_last(turn: Turn, event: Event) -> Answer:
    """Forgets what the first rank said of the code of a job as soon as another says something."""
    job = turn.cluster.jobs.get(event.job) if isinstance(event, CodeFetched) else None
    if job is not None and isinstance(event, CodeFetched):
        roles = tuple(
            replace(role, code=role.code and replace(role.code, git=event.asked, tree="")) for role in job.spec.roles
        )
        turn.put(replace(job, spec=replace(job.spec, roles=roles)))
    return step(turn, event)


HALF_CHECKPOINT = Cores(finish=_beginning_with_halves)
CODE_OF_THE_LAST = Cores(step=_believing_whoever_comes_last)
