"""What a coordinator has done since it began, and what it holds at the moment, in figures."""

from dataclasses import dataclass
from datetime import datetime

COMMIT_BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
"""Seconds up to which commits are counted together; longer ones come after the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorFigures:
    """One coordinator, as it says of itself; what is counted begins anew with it."""

    began: datetime
    """When it began to count, by its clock."""
    turns: int = 0
    """How often it took in all that stood in line."""
    commits: tuple[int, ...] = (0,) * (len(COMMIT_BOUNDS) + 1)
    """How many commits took at most so many seconds, but more than the bound before; the last: more than all bounds."""
    commit_seconds: float = 0.0
    """How long all commits took together."""
    waiting: int = 0
    """Events and questions that stand in line."""
    streams: int = 0
    """Streams of agents that are open."""
    memory: int = 0
    """Bytes of it that are in memory."""
    cpu_seconds: float = 0.0
    """Time that its threads have worked."""
