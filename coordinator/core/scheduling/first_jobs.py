"""The jobs that are tried next: the first of each project, or the first of each line that may have room.

Keys of projects only get worse within a cycle, so a heap is brought up to date where it is looked at.
"""

import heapq

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.lines import LineEntry
from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.request_classes import RequestClass
from coordinator.core.records import Job
from coordinator.core.scheduling.bars import Bars
from coordinator.core.scheduling.order import across_leaves
from coordinator.core.scheduling.passing import Passing
from coordinator.core.sharing.precedence import Precedence


class Firsts:
    """The first job of each project that is not barred, in the order of projects."""

    def __init__(self, cluster: Cluster, bars: Bars) -> None:
        self._cluster = cluster
        self._bars = bars
        self._heap: list[tuple[Precedence, str]] = []
        for leaf in cluster.queue.lines.leaves:
            if (job := bars.first_of(leaf)) is not None:
                self._heap.append((across_leaves(cluster, job, bars.pool(job)), leaf))
        heapq.heapify(self._heap)

    def least(self) -> Job | None:
        """The first job of all; None: there is none that is not barred."""
        while self._heap:
            key, leaf = self._heap[0]
            job = self._bars.first_of(leaf) if self._cluster.queue.lines.has(leaf) else None
            if job is None:
                heapq.heappop(self._heap)
            elif (now := across_leaves(self._cluster, job, self._bars.pool(job))) != key:
                heapq.heapreplace(self._heap, (now, leaf))
            else:
                return job
        return None


class OpenLines:
    """The lines whose jobs may fit, and the order in which their jobs are tried."""

    def __init__(self, cluster: Cluster, capacities: Capacities, bars: Bars, passing: Passing) -> None:
        """`capacities`: what there is beside what is kept for the head, which `passing` lets some have all the same."""
        self._cluster = cluster
        self._capacities = capacities
        self._bars = bars
        self._passing = passing
        self._may_pass = passing.is_possible
        self._leaves: dict[str, list[tuple[LineEntry, int]]] = {}
        """The first jobs of the open lines of each leaf, as a heap, with the number of their class."""
        self._classes = [each for each in cluster.queue.lines.request_classes if not self._is_closed(each)]
        for number, request_class in enumerate(self._classes):
            for leaf, _ in cluster.queue.lines.of_class(request_class):
                if (entry := self._first(leaf, request_class)) is not None:
                    self._leaves.setdefault(leaf, []).append((entry, number))
        for firsts in self._leaves.values():
            heapq.heapify(firsts)
        self._heap = [(self._key(leaf), leaf) for leaf in self._leaves]
        heapq.heapify(self._heap)

    def pop(self) -> Job | None:
        """The next job that may fit; None: there is none."""
        while self._heap:
            key, leaf = self._heap[0]
            firsts = self._leaves[leaf]
            self._bring_up_to_date(leaf, firsts)
            if not firsts:
                heapq.heappop(self._heap)
            elif (now := self._key(leaf)) != key:
                heapq.heapreplace(self._heap, (now, leaf))
            else:
                return self._cluster.jobs[firsts[0][0][1]]
        return None

    def _bring_up_to_date(self, leaf: str, firsts: list[tuple[LineEntry, int]]) -> None:
        """Have an open line of the leaf with its first job at the top of its heap."""
        while firsts:
            entry, number = firsts[0]
            first = self._first(leaf, self._classes[number])
            if first == entry:
                return
            if first is None:
                heapq.heappop(firsts)
            else:
                heapq.heapreplace(firsts, (first, number))

    def _first(self, leaf: str, request_class: RequestClass) -> LineEntry | None:
        """The first job of a line that may have room."""
        if self._is_closed(request_class):
            return None
        passes_alone = request_class.fails(self._capacities)
        return self._bars.first(leaf, request_class, self._passing.within if passes_alone else None)

    def _is_closed(self, request_class: RequestClass) -> bool:
        """Whether jobs of a class fit neither beside what is kept nor, if any may have that, into all that is free."""
        if request_class.fails(self._capacities) and not self._may_pass:
            return True
        if request_class.fails(self._cluster.load.free.fresh()):
            return True
        return request_class.fails(self._capacities) and not self._passing.has(request_class)

    def _key(self, leaf: str) -> Precedence:
        job = self._cluster.jobs[self._leaves[leaf][0][0][1]]
        return across_leaves(self._cluster, job, self._bars.pool(job))
