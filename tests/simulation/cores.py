"""The cores that a simulated fleet runs: the real ones, or one with a fault that the simulation must find."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.core.fence import Fencing
from agent.core.ledger import Ledger
from coordinator.core.answers import Answer
from coordinator.core.events import Event
from coordinator.core.step import step
from coordinator.core.turn.turn import Turn

Core = Callable[[Turn, Event], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """What decides in the coordinator and in each agent."""

    step: Core = step
    ledger: type[Ledger] = Ledger
    fencing: type[Fencing] = Fencing


REAL = Cores()
