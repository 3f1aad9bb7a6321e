"""User code that saves checkpoints: each rank tells of its own, at times of its own."""

from collections.abc import Callable
from random import Random

from agent.core.events import CheckpointsSeen, Event, Saved
from muster.domain.data.checkpoint import PARTS_TOLD, StoredPart, ToldCheckpoints
from muster.domain.jobs.stopping.preemption import PreemptSignal
from tests.simulation.truth import Sandbox
from tests.simulation.world import Life

SAVES_EVERY = 12.0
"""Seconds between the checkpoints of one rank, as a rule."""
STORES_EVERY = 2.0
"""Seconds between the parts that one rank stores, as a rule; user code of the family that stores is short."""
STORING = 8.0
"""Most seconds for which the last part is on its way after the end."""


def save_now_and_then(life: Life, sandbox: Sandbox, put: Callable[[Event], None], chance: Random) -> None:
    """Have an execution save from here on, if its job stores that, or wants a signal of its own before it gives way."""
    if sandbox.assignment.role.checkpoint is not None:
        _store_now_and_then(life, sandbox, put, chance)
    if sandbox.assignment.preempt_signal is PreemptSignal.TERM:
        return

    def save() -> None:
        if sandbox.running:
            put(Saved(execution=sandbox.execution, at=life.clock.now))
            life.after(SAVES_EVERY * (0.5 + chance.random()), save)

    life.after(SAVES_EVERY * chance.random(), save)


def save_last(life: Life, sandbox: Sandbox, put: Callable[[Event], None], chance: Random) -> None:
    """Have the last part stored of an execution that has ended, which its end announces."""
    if sandbox.assignment.role.checkpoint is None:
        return
    put(_seen(sandbox, storing=True))

    def stored() -> None:
        if chance.random() < 0.5:
            store_part(sandbox)
        put(_seen(sandbox))

    life.after(STORING * chance.random(), stored)


def store_part(sandbox: Sandbox) -> None:
    """Have the depot take the next part of an execution: all ranks name their parts alike, one after the other."""
    number = len(sandbox.saved) + 1
    tree = f"part {number} of {sandbox.execution}"
    sandbox.saved.append(StoredPart(name=f"step-{number}", number=number, tree=tree, size=80, files=1, bytes=9))


def _store_now_and_then(life: Life, sandbox: Sandbox, put: Callable[[Event], None], chance: Random) -> None:
    def store() -> None:
        if sandbox.running:
            store_part(sandbox)
            put(_seen(sandbox))
            life.after(STORES_EVERY * (0.5 + chance.random()), store)

    life.after(STORES_EVERY * chance.random(), store)


def _seen(sandbox: Sandbox, *, storing: bool = False) -> CheckpointsSeen:
    told = ToldCheckpoints(parts=tuple(sandbox.saved[-PARTS_TOLD:]), storing=storing)
    return CheckpointsSeen(execution=sandbox.execution, checkpoints=told)
