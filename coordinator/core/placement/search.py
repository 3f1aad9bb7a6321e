"""How many executions of a part each node gets: packed or spread.

Nodes of a bin are looked at one by one only while the bounds of the bin are too wide for the answer.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence

from coordinator.core.placement.candidates import Available, Candidate, candidates
from coordinator.core.placement.capacity import Key, key_of
from coordinator.core.placement.draft import Draft
from coordinator.core.placement.parts import Part
from muster.domain.ids import NodeId
from muster.domain.jobs.job import JobSpec, Packing


def counts(spec: JobSpec, part: Part, available: Available, drafts: Mapping[NodeId, Draft]) -> dict[NodeId, int]:
    """Executions of a part by node; fewer in all than the part has where no more fit."""
    found = candidates(spec, part, available, drafts)
    return _spread(part.count, found) if spec.packing is Packing.SPREAD else _pack(part.count, found)


def has_room(spec: JobSpec, part: Part, available: Available) -> bool:
    """Whether all executions of a part fit."""
    count = part.count
    uncertain: list[Candidate] = []
    beyond = 0  # executions that may fit, and of which the bounds do not tell
    for each in candidates(spec, part, available, {}):
        count -= each.least * each.size
        if count <= 0:
            return True
        if each.least < each.most:
            uncertain.append(each)
            beyond += (each.most - each.least) * each.size
    for each in uncertain:
        for _, node in each.in_order():
            if beyond < count:
                return False
            beyond -= each.most - each.least
            count -= each.look_at(node).slots - each.least
            if count <= 0:
                return True
    return False


class _Source:
    """Nodes of one candidate that are not taken yet, while a part is being packed."""

    __slots__ = ("_keys", "first", "of")

    def __init__(self, of: Candidate) -> None:
        self.of = of
        self._keys = of.in_order()
        self.first = next(self._keys, None)
        """The next node; None: there is none left."""

    def take(self) -> NodeId:
        """Take the next node."""
        assert self.first is not None
        node = self.first[1]
        self.first = next(self._keys, None)
        return node


def _pack(count: int, found: Iterable[Candidate]) -> dict[NodeId, int]:
    """Counts by node, fullest first; the remainder goes to the node with the least capacity that holds all of it."""
    sources = [_Source(each) for each in found]
    heap = [(-each.of.most, each.first, order) for order, each in enumerate(sources)]
    heapq.heapify(heap)
    counts: dict[NodeId, int] = {}
    left = count
    while heap:
        _, _, order = heap[0]
        widest = sources[order]
        if widest.of.most >= left and widest.of.least == widest.of.most:
            return {**counts, _tightest(sources, left): left}
        node = widest.take()
        if widest.first is None:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (-widest.of.most, widest.first, order))
        if widest.of.least == widest.of.most:
            counts[node] = widest.of.most
            left -= widest.of.most
            continue
        alone = widest.of.look_at(node)
        if alone.slots:
            heapq.heappush(heap, (-alone.slots, key_of(node), len(sources)))
            sources.append(_Source(alone))
    return counts


_Rank = tuple[bool, int, int, Key]


def _tightest(sources: Sequence[_Source], left: int) -> NodeId:
    """Prefer a node that this job already uses, then the fewest slots, then the fewest idle GPUs left over."""
    holding = (
        ((each.of.taken == 0, max(each.of.least, left), each.of.gpus, each.first), each)
        for each in sources
        if each.of.most >= left and each.first is not None
    )
    best: _Rank | None = None
    for bound, source in sorted(holding, key=lambda pair: pair[0]):
        if best is not None and bound >= best:
            break
        found = bound if source.of.least == source.of.most else _tightest_of(source, left)
        if found is not None and (best is None or found < best):
            best = found
    assert best is not None
    return best[3][1]


def _tightest_of(source: _Source, left: int) -> _Rank | None:
    """The best of nodes on which differently many fit; None: on none of them all that is left does."""
    best: _Rank | None = None
    while source.first is not None:
        key = source.first
        slots = source.of.look_at(source.take()).slots
        rank = (source.of.taken == 0, slots, source.of.gpus, key)
        if slots >= left and (best is None or rank < best):
            best = rank
            if slots == max(source.of.least, left):
                return best
    return best


def _spread(count: int, found: Iterable[Candidate]) -> dict[NodeId, int]:
    """Counts by node, one at a time to the node where this job has the fewest, then where most was free."""
    sources = list(found)
    lines = [each.by_cpus() for each in sources]
    heap: list[tuple[int, int, int, Key, int, int | None]] = []

    def open_next(order: int) -> None:
        following = next(lines[order], None)
        if following is not None:
            heapq.heappush(heap, (sources[order].taken, -sources[order].gpus, *following, order, None))

    for order in range(len(sources)):
        open_next(order)
    counts: dict[NodeId, int] = {}
    left = count
    while heap and left:
        taken, gpus, cpu_millis, key, order, slots = heapq.heappop(heap)
        if slots is None:
            open_next(order)
            slots = sources[order].look_at(key[1]).slots
        if slots:
            counts[key[1]] = counts.get(key[1], 0) + 1
            left -= 1
        if slots > 1:
            heapq.heappush(heap, (taken + 1, gpus, cpu_millis, key, order, slots - 1))
    return counts
