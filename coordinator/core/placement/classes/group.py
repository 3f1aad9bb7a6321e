"""Nodes that are looked at together: in natural order, by free CPUs, and by where they are."""

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping
from typing import TypeAlias

from coordinator.core.placement.capacity import Capacity, Key, key_of
from coordinator.core.placement.labels.domain import Levels, Path, path_of
from muster.domain.ids import NodeId

Changes: TypeAlias = dict[Path, None]
"""Paths of which something is other than when somebody looked at them last."""


class NodeGroup:
    """Nodes of one class with the same free GPUs."""

    __slots__ = ("_by_cpus", "_by_path", "_watched", "gpus", "keys")

    def __init__(self, gpus: int) -> None:
        self.gpus = gpus
        """Free GPUs of each node."""
        self.keys: list[Key] = []
        """The nodes in natural order."""
        self._by_cpus: list[tuple[int, Key]] | None = None
        """The nodes by free CPUs, the most first; made when it is first asked for."""
        self._by_path: dict[Levels, dict[Path, list[Key]]] = {}
        """The nodes by their path at some levels, in natural order; made for the levels that are asked for."""
        self._watched: dict[Levels, list[Changes]] = {}
        """Notes of the paths at some levels of which nodes have come or gone, for all that keep some."""

    def add(self, capacity: Capacity) -> None:
        """Have a node among them."""
        key = key_of(capacity.node)
        insort(self.keys, key)
        for levels, groups in self._by_path.items():
            path = path_of(levels, capacity.labels)
            insort(groups.setdefault(path, []), key)
            self._tell(levels, path)
        if self._by_cpus is not None:
            insort(self._by_cpus, _by_cpus(capacity))

    def remove(self, capacity: Capacity) -> None:
        """Have a node among them no longer."""
        key = key_of(capacity.node)
        del self.keys[bisect_left(self.keys, key)]
        for levels, groups in self._by_path.items():
            path = path_of(levels, capacity.labels)
            del groups[path][bisect_left(groups[path], key)]
            if not groups[path]:
                del groups[path]
            self._tell(levels, path)
        if self._by_cpus is not None:
            del self._by_cpus[bisect_left(self._by_cpus, _by_cpus(capacity))]

    def change(self, before: Capacity, after: Capacity) -> None:
        """Hear that a node has other free CPUs than before, and stays among them."""
        if self._by_cpus is not None and before.cpu_millis != after.cpu_millis:
            del self._by_cpus[bisect_left(self._by_cpus, _by_cpus(before))]
            insort(self._by_cpus, _by_cpus(after))

    def by_cpus(self, capacity_of: Callable[[NodeId], Capacity]) -> list[tuple[int, Key]]:
        """The nodes by free CPUs below zero, and then in natural order; not to be changed."""
        if self._by_cpus is None:
            self._by_cpus = sorted(_by_cpus(capacity_of(node)) for _, node in self.keys)
        return self._by_cpus

    def by_path(self, levels: Levels, capacity_of: Callable[[NodeId], Capacity]) -> Mapping[Path, list[Key]]:
        """The nodes by their path at these levels, in natural order; not to be changed."""
        if levels not in self._by_path:
            groups = self._by_path[levels] = dict[Path, list[Key]]()
            for key in self.keys:
                groups.setdefault(path_of(levels, capacity_of(key[1]).labels), []).append(key)
        return self._by_path[levels]

    def watch(self, levels: Levels, changes: Changes, capacity_of: Callable[[NodeId], Capacity]) -> None:
        """Have the paths at these levels noted there, of which nodes come or go from now on."""
        self.by_path(levels, capacity_of)
        self._watched.setdefault(levels, []).append(changes)

    def unwatch(self, levels: Levels, changes: Changes) -> None:
        """Have them noted there no longer."""
        self._watched[levels] = [each for each in self._watched[levels] if each is not changes]

    def _tell(self, levels: Levels, path: Path) -> None:
        for changes in self._watched.get(levels, ()):
            changes[path] = None


def _by_cpus(capacity: Capacity) -> tuple[int, Key]:
    return (-capacity.cpu_millis, key_of(capacity.node))
