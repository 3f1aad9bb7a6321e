"""The jobs that are tried next: the first of each project, or the first of each line that may have room.

Keys of projects only get worse within a cycle, so a heap is brought up to date where it is looked at.
"""

import heapq
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.lines import LineEntry
from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.request_classes import RequestClass
from coordinator.core.records import Job
from coordinator.core.scheduling.bars import Bars, ComparedJob
from coordinator.core.scheduling.order import across_leaves
from coordinator.core.scheduling.passing import Passing
from coordinator.core.scheduling.run_limits import longest_runs
from coordinator.core.sharing.leaf_order import FirstJobs, RankedJob


class Firsts:
    """The first jobs of all projects at one look; only those of projects of which something has changed are looked at.

    What changes while it is used makes no job come earlier. So a project is looked at anew when it is its turn.
    """

    def __init__(self, cluster: Cluster, bars: Bars, now: datetime) -> None:
        self._cluster = cluster
        self._bars = bars
        self._order = cluster.unit_load.order
        cluster.unit_load.patience.tell_ends(now)
        runs = tuple(longest_runs(cluster).items())
        self._order.begin((cluster.unit_load.pools, runs, cluster.unit_load.units.has_terms))
        self.bring_up_to_date()

    def bring_up_to_date(self) -> None:
        """Look anew at all projects of which something has changed."""
        self.hear()
        while doubted := self._order.doubted:
            for leaf in doubted:
                self._work_out(leaf)
            self.hear()

    def least(self) -> Job | None:
        """The first job of all; None: there is none that is not barred."""
        self.hear()
        while (least := self._order.least) is not None:
            if not self._order.doubts(least.leaf):
                return self._cluster.jobs[least.job]
            self._work_out(least.leaf)
            self.hear()
        return None

    def __iter__(self) -> Iterator[RankedJob]:
        """The first jobs of all projects, and the first ones that are not barred, in order; nothing may change then."""
        self.bring_up_to_date()
        return iter(self._order)

    def without(self, leaves: AbstractSet[str]) -> Iterator[RankedJob]:
        """The same, without those of some projects."""
        self.bring_up_to_date()
        return self._order.without(leaves)

    def of(self, leaf: str) -> FirstJobs | None:
        """The first jobs of a project, as far as was heard of changes; None: nothing of it waits."""
        while self._order.doubts(leaf):
            self._work_out(leaf)
            self.hear()
        return self._order.of(leaf)

    def hear(self) -> None:
        """Hear of what has changed: of jobs that wait, and of the loads, shares and terms of units."""
        load = self._cluster.unit_load
        for leaf in self._cluster.queue.lines.take_changed():
            self._order.doubt(leaf)
            load.patience.doubt(leaf)
            self._cluster.gangs.evictable.idle.look_again(leaf)
        for leaf in load.units.take_touched():
            self._order.doubt(leaf)

    def _work_out(self, leaf: str) -> None:
        if not self._cluster.queue.lines.has(leaf):
            self._order.drop(leaf)
            return
        first, free = self._bars.firsts_of(leaf)
        ranked = self._ranked(leaf, first)
        found = FirstJobs(ranked, free and (ranked if free is first else self._ranked(leaf, free)))
        self._order.put(leaf, found, lasting=not self._bars.excludes_of(leaf))

    def ranked(self, job: Job) -> RankedJob:
        """A queued job with its place among those of all projects."""
        return self._ranked(job.spec.project, (job, self._bars.pool(job)))

    def _ranked(self, leaf: str, compared: ComparedJob) -> RankedJob:
        job, pool = compared
        return RankedJob(across_leaves(self._cluster, job, pool), job.id, leaf)


class OpenLines:
    """The lines whose jobs may fit, and the order in which their jobs are tried."""

    def __init__(self, cluster: Cluster, capacities: Capacities, bars: Bars, passing: Passing, firsts: Firsts) -> None:
        """`capacities`: what there is beside what is kept for the head, which `passing` lets some have all the same."""
        self._cluster = cluster
        self._capacities = capacities
        self._bars = bars
        self._passing = passing
        self._firsts = firsts
        self._may_pass = passing.is_possible
        self._classes = [each for each in cluster.queue.lines.request_classes if not self._is_closed(each)]
        self._numbers: dict[str, list[int]] = {}
        """The open classes of which each leaf has a line, by number."""
        for number, request_class in enumerate(self._classes):
            for leaf, _ in cluster.queue.lines.of_class(request_class):
                self._numbers.setdefault(leaf, []).append(number)
        self._lines: dict[str, list[tuple[LineEntry, int]]] = {}
        """The first jobs of the open lines of a leaf, as a heap, where the first of all its jobs is in no open one."""
        firsts.hear()
        self._heap = [next_ for leaf in self._numbers if (next_ := self._next(leaf)) is not None]
        heapq.heapify(self._heap)

    def pop(self) -> Job | None:
        """The next job that may fit; None: there is none."""
        self._firsts.hear()
        while self._heap:
            known = self._heap[0]
            now = self._next(known.leaf)
            if now is None:
                heapq.heappop(self._heap)
            elif now != known:
                heapq.heapreplace(self._heap, now)
            else:
                return self._cluster.jobs[now.job]
        return None

    def _next(self, leaf: str) -> RankedJob | None:
        """The first job of a leaf that may have room, and is not barred."""
        firsts = self._firsts.of(leaf)
        if firsts is None or firsts.free is None:
            return None
        free = firsts.free
        if self._is_open(self._cluster.queue.request_class(free.job)):
            return free
        lines = self._lines.get(leaf)
        if lines is None:
            firsts_of_lines = ((self._first(leaf, self._classes[number]), number) for number in self._numbers[leaf])
            lines = self._lines[leaf] = [(first, number) for first, number in firsts_of_lines if first is not None]
            heapq.heapify(lines)
        self._bring_up_to_date(leaf, lines)
        if not lines:
            return None
        job = self._cluster.jobs[lines[0][0][1]]
        return free if job.id == free.job else self._firsts.ranked(job)

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

    def _is_open(self, request_class: RequestClass) -> bool:
        """Whether each job of a class may fit, however long it runs."""
        return not request_class.fails(self._capacities) and not request_class.fails(self._cluster.load.free.fresh())

    def _is_closed(self, request_class: RequestClass) -> bool:
        """Whether jobs of a class fit neither beside what is kept nor, if any may have that, into all that is free."""
        if request_class.fails(self._capacities) and not self._may_pass:
            return True
        if request_class.fails(self._cluster.load.free.fresh()):
            return True
        return request_class.fails(self._capacities) and not self._passing.has(request_class)
