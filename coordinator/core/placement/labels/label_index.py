"""The nodes by the labels that they carry."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from coordinator.core.placement.capacity import key_of
from muster.domain.ids import NodeId


class LabelIndex:
    """Which nodes carry a label with a value."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[str, str], dict[NodeId, None]] = {}

    @property
    def carried(self) -> Collection[tuple[str, str]]:
        """All labels that nodes carry, with their values."""
        return self._nodes.keys()

    def with_all(self, labels: Mapping[str, str]) -> list[NodeId]:
        """The nodes that carry all of these labels, at least one, whatever else they have; in natural order."""
        fewest, *others = sorted((self._nodes.get(label, {}) for label in labels.items()), key=len)
        return sorted((node for node in fewest if all(node in other for other in others)), key=key_of)

    def with_any(self, label: str, values: Iterable[str] | None = None) -> Iterator[NodeId]:
        """The nodes that carry a label with one of these values; None: with any, which takes a look at all labels."""
        if values is None:
            values = [value for name, value in self._nodes if name == label]
        return (node for value in values for node in self._nodes.get((label, value), ()))

    def change(self, node: NodeId, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Hear that a node carries other labels than before."""
        for label in before.items():
            del self._nodes[label][node]
            if not self._nodes[label]:
                del self._nodes[label]
        for label in after.items():
            self._nodes.setdefault(label, {})[node] = None
