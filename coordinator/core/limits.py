"""How much of everything a coordinator takes: what bounds its memory and the time of one step."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is refused beyond."""

    queued: int = 200_000
    """Jobs in the queue: each new one has its place among them. Those that wait outside count by their executions."""
    executions: int = 500_000
    """Executions in memory, also those of jobs that have ended and were not deleted; about 2 GiB."""
    stored: int = 100_000
    """Executions of ended attempts of one job that the store keeps; beyond, some between first and newest are dropped.

    A gang of up to 100 keeps all of 1,000 attempts, and one of 10,000 still ten of them. So many executions take 90 MB
    of the database, and 2.5 s of every start, which reads them all.
    """
    nodes: int = 10_000
    """Nodes that are known, there or not."""
