"""The rooms of a fleet in groups of equal ones, so that a search looks at kinds of rooms, not at every node."""

import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from muster.domain.fleet.node import Gpu, RuntimeOffer
from muster.domain.ids import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a node has to give, free or in all."""

    node: NodeId
    gpus: tuple[Gpu, ...] = ()
    """Usable ones, by index."""
    cpu_millis: int = 0
    memory: int = 0
    runtimes: tuple[RuntimeOffer, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: frozenset[int] = frozenset()
    """Fixed port numbers that are taken. Nodes are alike whatever these are: they are looked at node by node."""
    features: frozenset[str] = frozenset()
    """Words for what its agent can."""
    problem: str | None = None
    """Why nothing can be placed on it at all."""


Key = tuple[tuple[tuple[int, str], ...], NodeId]
"""Sorts nodes in natural order of their names."""


def key_of(node: NodeId) -> Key:
    """Where a node stands in natural order."""
    return (natural(node), node)


@lru_cache(maxsize=100_000)
def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A sort key that puts node-2 before node-10."""
    return tuple((int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name))


@dataclass(slots=True)
class NodeClass:
    """Nodes whose rooms differ in nothing that decides whether an execution fits."""

    sample: Capacity
    keys: list[Key]
    """In natural order."""


class Capacities:
    """Rooms by node, and the usable ones in groups of equal ones."""

    def __init__(self, rooms: Iterable[Capacity] = ()) -> None:
        self._rooms: dict[NodeId, Capacity] = {}
        self._kinds: dict[NodeId, Hashable] = {}
        self._groups: dict[Hashable, NodeClass] = {}
        self._holders: dict[int, set[NodeId]] = {}
        for room in rooms:
            self.put(room)

    def __len__(self) -> int:
        return len(self._rooms)

    def __contains__(self, node: object) -> bool:
        return node in self._rooms

    def __iter__(self) -> Iterator[Capacity]:
        return iter(self._rooms.values())

    def room(self, node: NodeId) -> Capacity:
        """That of one node."""
        return self._rooms[node]

    def groups(self) -> Iterable[NodeClass]:
        """Of the rooms on which something can be placed; not to be changed."""
        return self._groups.values()

    def group_of(self, node: NodeId) -> NodeClass | None:
        """The one that a node is in; None: nothing can be placed on it."""
        return self._groups.get(self._kinds.get(node))

    def holders(self, ports: Iterable[int]) -> set[NodeId]:
        """The nodes on which one of these port numbers is taken."""
        return {node for port in ports for node in self._holders.get(port, ())}

    def put(self, room: Capacity) -> None:
        """Add the room of a node, or replace it."""
        self.drop(room.node)
        self._rooms[room.node] = room
        for port in room.ports:
            self._holders.setdefault(port, set()).add(room.node)
        if room.problem is not None:
            return
        kind = self._kinds[room.node] = _kind(room)
        group = self._groups.get(kind)
        if group is None:
            self._groups[kind] = NodeClass(room, [key_of(room.node)])
        else:
            insort(group.keys, key_of(room.node))

    def drop(self, node: NodeId) -> None:
        """Forget a node."""
        room = self._rooms.pop(node, None)
        for port in room.ports if room is not None else ():
            self._holders[port].discard(node)
            if not self._holders[port]:
                del self._holders[port]
        kind = self._kinds.pop(node, None)
        if kind is None:
            return
        keys = self._groups[kind].keys
        del keys[bisect_left(keys, key_of(node))]
        if not keys:
            del self._groups[kind]


class LiveCapacities:
    """A stock that works a room out anew when it is needed after something about its node changed."""

    def __init__(self, work_out: Callable[[NodeId], Capacity], nodes: Iterable[NodeId] = ()) -> None:
        self._work_out = work_out
        self._stock = Capacities()
        self._stale: set[NodeId] = set(nodes)

    def touch(self, node: NodeId) -> None:
        """Something about a node changed."""
        self._stale.add(node)

    def forget(self, node: NodeId) -> None:
        """A node is gone."""
        self._stale.discard(node)
        self._stock.drop(node)

    def room(self, node: NodeId) -> Capacity:
        """That of one node, as it is now."""
        if node in self._stale:
            self._stale.discard(node)
            self._stock.put(self._work_out(node))
        return self._stock.room(node)

    def fresh(self) -> Capacities:
        """All rooms as they are now; not to be changed, and of use until the next change."""
        if self._stale:
            stale, self._stale = self._stale, set()  # one that was large is slow to walk even when it is empty
            for node in stale:
                self._stock.put(self._work_out(node))
        return self._stock


def _kind(room: Capacity) -> Hashable:
    return (
        tuple(sorted(Counter(gpu.model for gpu in room.gpus).items())),
        room.cpu_millis,
        room.memory,
        room.runtimes,
        tuple(sorted(room.labels.items())),
        room.features,
    )
