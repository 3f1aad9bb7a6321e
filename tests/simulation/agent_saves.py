"""User code that saves checkpoints: each rank tells of its own, at times of its own."""

from collections.abc import Callable
from random import Random

from agent.core.events import Event, Saved
from muster.domain.jobs.stopping.preemption import PreemptSignal
from tests.simulation.truth import Sandbox
from tests.simulation.world import Life

SAVES_EVERY = 12.0
"""Seconds between the checkpoints of one rank, as a rule."""


def save_now_and_then(life: Life, sandbox: Sandbox, put: Callable[[Event], None], chance: Random) -> None:
    """Have an execution save from here on, if its job wants a signal of its own before it gives way."""
    if sandbox.assignment.preempt_signal is PreemptSignal.TERM:
        return

    def save() -> None:
        if sandbox.running:
            put(Saved(execution=sandbox.execution, at=life.clock.now))
            life.after(SAVES_EVERY * (0.5 + chance.random()), save)

    life.after(SAVES_EVERY * chance.random(), save)
