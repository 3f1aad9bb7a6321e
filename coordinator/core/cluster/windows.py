"""Windows by name, with the nodes of each: those that are named, and those that carry its labels."""

from collections.abc import Callable, Collection, Iterator, Mapping

from coordinator.core.records import Node
from muster.domain.fleet.window import Window
from muster.domain.ids import NodeId


class Windows:
    """An index over windows and nodes; most of the time it is empty, and costs nothing."""

    def __init__(self, nodes: Mapping[NodeId, Node], grown: Callable[[], None]) -> None:
        """`grown` is told whenever a window takes less than before, so that there may be more room."""
        self._nodes = nodes
        self._grown = grown
        self._version = 0
        self._windows: dict[str, Window] = {}
        self._members: dict[str, dict[NodeId, None]] = {}

    def __len__(self) -> int:
        return len(self._windows)

    def __iter__(self) -> Iterator[Window]:
        """All windows, in the order in which they were made."""
        return iter(self._windows.values())

    @property
    def version(self) -> int:
        """A number that grows whenever a window takes less than before."""
        return self._version

    def nodes_of(self, window: Window) -> Collection[NodeId]:
        """The nodes of a window that have joined."""
        return self._members[window.name].keys()

    def changed(self, before: Window | None, after: Window | None) -> None:
        """Hear of a window that is new, other than before, or gone."""
        if before is not None:
            del self._windows[before.name], self._members[before.name]
            self._grow()
        if after is not None:
            self._windows[after.name] = after
            self._members[after.name] = {
                node.name: None for node in self._nodes.values() if after.is_of(node.name, node.inventory.labels)
            }

    def node_changed(self, before: Node | None, after: Node | None) -> None:
        """Hear of a node that is new, other than before, or forgotten."""
        for window in self._windows.values():
            members = self._members[window.name]
            if after is not None and window.is_of(after.name, after.inventory.labels):
                members[after.name] = None
            elif before is not None and before.name in members:
                del members[before.name]
                self._grow()

    def _grow(self) -> None:
        self._version += 1
        self._grown()
