"""People who come and go: now and then an execution is used, and its agent sees that."""

from collections.abc import Callable
from random import Random

from agent.core.events import Event, Used
from muster.domain.jobs.interactive import use_told_every
from tests.simulation.truth import Sandbox
from tests.simulation.world import Life

USED = 0.3
"""How often somebody has used an execution since the last look."""


def watch_use(life: Life, sandbox: Sandbox, put: Callable[[Event], None], chance: Random) -> None:
    """Have an execution used now and then from here on, if its attempt may not go unused for ever."""
    limit = sandbox.assignment.idle
    if limit is None:
        return
    pause = use_told_every(limit).total_seconds()

    def look() -> None:
        if not sandbox.running:
            return
        if chance.random() < USED:
            sandbox.used.append(life.clock.world.at)
            put(Used(execution=sandbox.execution, at=life.clock.now))
        life.after(pause, look)

    life.after(pause, look)
