"""How much of everything a coordinator takes: what bounds its memory and the time of one step."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is refused beyond."""

    waiting: int = 200_000
    """Jobs in the queue: each new one has its place among them."""
    executions: int = 500_000
    """Executions in memory, also those of jobs that have ended and were not deleted; about 2 GiB."""
    nodes: int = 10_000
    """Nodes that are known, there or not."""
