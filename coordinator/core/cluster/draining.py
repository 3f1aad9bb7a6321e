"""Cordoned nodes on which something still runs or stores: whoever drains one waits for the moment when nothing does."""

from collections.abc import Callable

from coordinator.core.records import Node
from muster.domain.ids import NodeId


class Draining:
    """An index over nodes; most of the time it is empty, and costs nothing."""

    def __init__(self, holds_something: Callable[[NodeId], bool]) -> None:
        """`holds_something` says whether executions hold resources on a node, or store what they have left."""
        self._holds_something = holds_something
        self._nodes: dict[NodeId, None] = {}

    def changed(self, before: Node | None, after: Node | None) -> None:
        """Hear of a node that is new, other than before, or forgotten."""
        if after is None or after.cordon is None:
            known = before if after is None else after
            assert known is not None
            self._nodes.pop(known.name, None)
        elif before is None or before.cordon is None:
            self._nodes[after.name] = None

    def loaded(self) -> None:
        """All that was stored is there; of nodes that run nothing it was told before that they are drained."""
        self.take_drained()

    def take_drained(self) -> tuple[NodeId, ...]:
        """Nodes on which nothing runs any more; each is given once for each cordon."""
        drained = tuple(node for node in self._nodes if not self._holds_something(node)) if self._nodes else ()
        for node in drained:
            del self._nodes[node]
        return drained
