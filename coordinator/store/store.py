"""The contract of a store; `tests/contract/test_store.py` holds every store to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from coordinator.core.records import Attempt, Change, Execution, Job, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that a store holds."""

    jobs: tuple[Job, ...] = ()
    """By sequence."""
    attempts: tuple[Attempt, ...] = ()
    """By job sequence, then number."""
    executions: tuple[Execution, ...] = ()
    """By job sequence, then attempt, then rank."""
    nodes: tuple[Node, ...] = ()
    """By name."""


class Store(Protocol):
    """Keeps records durably. Synchronous: the engine calls it from its one writer thread."""

    def load(self) -> Snapshot:
        """Everything, as last committed."""
        ...

    def commit(self, changes: Sequence[Change]) -> None:
        """Apply all changes, in order, in one transaction.

        When it returns they are durable; when it raises, none of them is there.
        """
        ...

    def close(self) -> None:
        """Let go of files and connections; what was committed stays."""
        ...
