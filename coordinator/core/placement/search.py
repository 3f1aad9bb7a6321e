"""How many executions of a part each node gets: packed or spread.

All looks go from levels to groups and from groups to nodes, always where the best answer may be: the first that turns
out to be as good as its bound is the best of all, whatever the others hold.
"""

import heapq
from collections.abc import Iterator, Mapping
from itertools import islice

from coordinator.core.placement.candidates import AlikeNodes, Available, Candidates, SingleNode, SuitableLevel
from coordinator.core.placement.capacity import Key, key_of
from coordinator.core.placement.draft import Draft
from coordinator.core.placement.parts import Part
from coordinator.core.placement.shared_draft import SharedDraft
from muster.domain.ids import NodeId
from muster.domain.jobs.job import JobSpec, Packing

_BEFORE_ALL: Key = ("", NodeId(""))
"""A key before those of all nodes."""
_LOOKED_AT = -1
"""Stands for the group of a node that was looked at."""


def counts(spec: JobSpec, part: Part, available: Available, drafts: Mapping[NodeId, Draft]) -> dict[NodeId, int]:
    """Executions of a part by node; fewer in all than the part has where no more fit.

    Nodes that cost the job less are filled first, however well others would take it.
    """
    if not drafts and (node := _fullest(spec, part, available)) is not None:
        return {node: 1}
    found = Candidates(spec, part, available, drafts)
    counts: dict[NodeId, int] = {}
    left = part.count
    for cost in found.costs():
        at_cost = _spread(left, found, cost) if spec.packing is Packing.SPREAD else _Packing(found, cost).counts(left)
        counts.update(at_cost)
        left -= sum(at_cost.values())
        if not left:
            break
    return counts


def alone(found: Candidates) -> NodeId | None:
    """The node that all executions of a packed part go to; None: none of those that cost least takes them all."""
    if (node := _fullest(found.spec, found.part, found.available)) is not None:
        return node
    cheapest = next((cost for cost in found.costs() if cost is None or found.has_any(cost)), None)
    return _Packing(found, cheapest).tightest(found.part.count)


def has_room(found: Candidates) -> bool:
    """Whether all executions of a part fit."""
    if _fullest(found.spec, found.part, found.available) is not None:
        return True
    count = found.part.count - sum(single.slots for single in found.singles())
    uncertain: list[AlikeNodes] = []
    beyond = 0  # executions that may fit, and of which the bounds do not tell
    for nodes in (each for level in found.levels() for each in found.groups(level)):
        count -= nodes.least * nodes.size
        if count <= 0:
            return True
        if not nodes.is_exact:
            uncertain.append(nodes)
            beyond += (nodes.most - nodes.least) * nodes.size
    for nodes in uncertain:
        for _, node in found.nodes(nodes):
            if beyond < count:
                return False
            beyond -= nodes.most - nodes.least
            count -= found.slots(nodes, node) - nodes.least
            if count <= 0:
                return True
    return count <= 0


def _fullest(spec: JobSpec, part: Part, available: Available) -> NodeId | None:
    """The node with the fullest shared GPU that holds the one portion that is wanted; None: the groups are looked at.

    So of very many nodes with shared GPUs only few are looked at.
    """
    need = part.role.resources
    portion, capacities = need.portion, available.capacities
    packed = part.count == 1 and spec.packing is Packing.PACK
    costs = capacities.has_avoided or spec.affinity.preferred
    if portion is None or not capacities.sharing or not packed or costs:
        return None
    for left, nodes in capacities.sharing.by_left(portion):
        there = (each for each in map(capacities.of, nodes) if each.shares(portion) and available.offers(each))
        for capacity in sorted(there, key=lambda each: (len(each.gpus), key_of(each.node))):
            shared = SharedDraft((), capacity.shared)
            fits = shared.fullest(need, portion) == left and shared.slots(need, portion, 1)
            if fits and Draft(capacity).slots(spec, part):
                return capacity.node
    return None


def nodes_for_one(spec: JobSpec, part: Part, available: Available) -> int:
    """How many nodes can take an execution of a part; a look at every node of which its group does not tell."""
    found = Candidates(spec, part, available, {})
    groups = (nodes for level in found.levels() for nodes in found.groups(level))
    return sum(1 for _ in found.singles()) + sum(
        nodes.size if nodes.least else sum(1 for _, node in found.nodes(nodes) if found.slots(nodes, node))
        for nodes in groups
    )


class _Source:
    """The nodes of a group that are left, or a node, while a part is being packed."""

    __slots__ = ("_keys", "first", "is_exact", "least", "most", "of", "taken")

    def __init__(self, of: AlikeNodes | SingleNode, keys: Iterator[Key] | None = None) -> None:
        self.of = of
        self._keys = keys
        self.is_exact = isinstance(of, SingleNode) or of.is_exact
        self.first = of.key if isinstance(of, SingleNode) else next(keys or iter(()), None)
        """The next node; None: there is none left."""
        self.taken = isinstance(of, SingleNode) and of.taken > 0
        if isinstance(of, SingleNode):
            self.least = self.most = of.slots
        else:
            self.least, self.most = of.least, of.most

    def advance(self) -> None:
        """Go on to the next node."""
        self.first = None if self._keys is None else next(self._keys, None)

    def rank(self, left: int) -> "_Rank":
        """How well its next node takes what is left, at the best."""
        assert self.first is not None
        if isinstance(self.of, SingleNode) and self.of.shared_slots >= left and not self.taken:
            return (_SHARED, self.of.fullest, self.of.gpus, self.first)
        return (_USED if self.taken else _ANY, max(self.least, left), self.of.gpus, self.first)


_Rank = tuple[int, int, int, Key]
"""Prefers a node that this job already uses, then the fewest slots, the fewest idle GPUs left over, the first name.

Before others come nodes whose shared GPUs hold all of it, the fullest GPU first.
"""
_USED, _SHARED, _ANY = range(3)


class _Packing:
    """Nodes in the order in which they are filled."""

    def __init__(self, found: Candidates, cost: int | None) -> None:
        self._found = found
        self._ahead = found.levels(cost)
        """The levels that were not needed yet, those with the fewest GPUs first."""
        self._levels: list[SuitableLevel] = []
        """The levels before them whose nodes were not needed yet."""
        self._sources = [_Source(single) for single in found.singles(cost)]
        self._heap: list[tuple[int, Key, int]] | None = None
        """The sources by most slots and then by name, with their numbers; some are used up.

        None: not needed yet, as one node may hold all.
        """

    def counts(self, count: int) -> dict[NodeId, int]:
        """Counts by node, fullest first; the rest goes to the node with the least capacity that holds all of it."""
        if (alone := self.tightest(count)) is not None:
            return {alone: count}
        counts: dict[NodeId, int] = {}
        left = count
        while (source := self._widest()) is not None:
            if source.most >= left and (node := self.tightest(left)) is not None:
                counts[node] = left
                return counts
            if source.most < left and source.is_exact:
                assert source.first is not None
                counts[source.first[1]] = source.most
                left -= source.most
                source.advance()
            elif source.first is not None:
                self._look_at_next(source)
        return counts

    def _widest(self) -> _Source | None:
        """The source whose next node may have the most slots."""
        if self._heap is None:
            left = ((source.first, number, source.most) for number, source in enumerate(self._sources))
            self._heap = [(-most, first, number) for first, number, most in left if first is not None]
            heapq.heapify(self._heap)
            self._levels = sorted((*self._levels, *self._ahead), key=lambda level: level.most)
        while self._heap or self._levels:
            if self._levels and (not self._heap or self._levels[-1].most >= -self._heap[0][0]):
                self._look_into(self._levels.pop())
                continue
            most, key, number = self._heap[0]
            source = self._sources[number]
            if source.first is None:
                heapq.heappop(self._heap)
            elif (-source.most, source.first) != (most, key):
                heapq.heapreplace(self._heap, (-source.most, source.first, number))
            else:
                return source
        return None

    def tightest(self, left: int) -> NodeId | None:
        """The node that all that is left goes to; None: no node holds it."""
        ranks = [
            (source.rank(left), number)
            for number, source in enumerate(self._sources)
            if source.most >= left and source.first is not None
        ]
        heapq.heapify(ranks)
        levels = self._holding(left)
        level = next(levels, None)
        while ranks or level is not None:
            if level is not None and (not ranks or (_ANY, left, level.nodes.gpus, _BEFORE_ALL) < ranks[0][0]):
                self._levels.remove(level)
                new, level = self._look_into(level), next(levels, None)
            else:
                rank, number = ranks[0]
                source = self._sources[number]
                if source.first is None:
                    heapq.heappop(ranks)
                    continue
                if rank != source.rank(left):
                    heapq.heapreplace(ranks, (source.rank(left), number))
                    continue
                if source.is_exact:
                    return source.first[1]
                new = self._look_at_next(source)
            for number in new:
                source = self._sources[number]
                if source.most >= left and source.first is not None:
                    heapq.heappush(ranks, (source.rank(left), number))
        return None

    def _holding(self, left: int) -> Iterator[SuitableLevel]:
        """The levels with nodes that may hold all that is left, those with the fewest GPUs first."""
        yield from sorted((level for level in self._levels if level.most >= left), key=lambda level: level.nodes.gpus)
        for level in self._ahead:
            self._levels.append(level)
            if level.most >= left:
                yield level

    def _look_into(self, level: SuitableLevel) -> list[int]:
        """Have the groups of a level instead of it; the numbers of what comes."""
        return [self._add(_Source(nodes, self._found.nodes(nodes))) for nodes in self._found.groups(level)]

    def _look_at_next(self, source: _Source) -> list[int]:
        """Have the next node of a group by itself; the number of what comes."""
        assert isinstance(source.of, AlikeNodes)
        assert source.first is not None
        key = source.first
        source.advance()
        slots = self._found.slots(source.of, key[1])
        return [self._add(_Source(SingleNode(key, slots, source.of.gpus, 0)))] if slots else []

    def _add(self, source: _Source) -> int:
        number = len(self._sources)
        self._sources.append(source)
        if self._heap is not None and source.first is not None:
            heapq.heappush(self._heap, (-source.most, source.first, number))
        return number


def _spread(count: int, found: Candidates, cost: int | None) -> dict[NodeId, int]:
    """Counts by node, one at a time to the node where this job has the fewest, then where most was free."""
    groups = [nodes for level in found.levels(cost) for nodes in found.groups(level)]
    lines = [found.by_cpus(nodes) for nodes in groups]
    heap = [
        (each.taken, -each.gpus, -each.cpu_millis, each.key, _LOOKED_AT, each.slots) for each in found.singles(cost)
    ]
    for order, line in enumerate(lines):
        heap.extend((0, -groups[order].gpus, *first, order, 0) for first in islice(line, 1))
    heapq.heapify(heap)
    counts: dict[NodeId, int] = {}
    left = count
    while heap and left:
        taken, gpus, cpu_millis, key, order, slots = heapq.heappop(heap)
        if order != _LOOKED_AT:
            if (following := next(lines[order], None)) is not None:
                heapq.heappush(heap, (0, gpus, *following, order, 0))
            slots = found.slots(groups[order], key[1])
        if slots:
            counts[key[1]] = counts.get(key[1], 0) + 1
            left -= 1
        if slots > 1:
            heapq.heappush(heap, (taken + 1, gpus, cpu_millis, key, _LOOKED_AT, slots - 1))
    return counts
