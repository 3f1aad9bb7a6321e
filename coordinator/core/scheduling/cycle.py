"""The scheduling cycle: which waiting jobs are placed next, step by step.

1. Order: the least key of the first jobs of all leaves, as `order` has it.
2. Quota comes here: what a job may still take, asked before a search is made for it.
3. Place: seats in what is free; for all but the head beside what is kept for it, so that they cannot delay it.
4. Preemption comes here: whom to stop for a job that found no seats.
5. Reserve: keep seats for the head, so that nobody who passes can starve it.
6. Seat: one decision for the whole gang.

Each step answers with a value that says why, and `muster why` prints the same values. A request class that failed is
not tried again until there may be more room: a cycle costs what has changed, however many jobs wait.
"""

import heapq
from dataclasses import replace
from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.deadlines import CycleDue
from coordinator.core.cluster.lines import LineEntry, SortKey
from coordinator.core.placement import placement
from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.placement import NoFit, Placement
from coordinator.core.placement.request_classes import RequestClass
from coordinator.core.placement.reservation import Reservation, holds, reserve
from coordinator.core.records import Job
from coordinator.core.scheduling.order import across_leaves
from coordinator.core.scheduling.windows import closed_nodes
from coordinator.core.turn.turn import Turn
from muster.domain.gangs.plan import Goal
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import Trigger

LOOKS = 100
"""How many jobs one cycle tries; when they are used up, the turn is followed by another one at once."""


def schedule(turn: Turn) -> None:
    """Place every queued job that fits now, as far as the looks of one cycle go."""
    cluster = turn.cluster
    cluster.queue.wake(turn.now)
    looks = _place_heads(turn)
    if looks < LOOKS:
        looks += _place_behind(turn, LOOKS - looks)
    if looks >= LOOKS:
        cluster.deadlines.add(turn.now, CycleDue())
    kept = cluster.load.reservation
    if kept is not None and (kept.job not in cluster.jobs or cluster.queue.position(kept.job) == 0):
        cluster.load.reserve(None)


def possible(cluster: Cluster, spec: JobSpec) -> NoFit | None:
    """Why a job could not run even if every node were there and empty; None: it could."""
    pools = tuple(choice.pool for choice in spec.pools) or None
    available = Available(capacities=cluster.load.total.fresh(), pools=pools)
    if placement.fits(spec, available):
        return None
    fit = placement.place(spec, available)
    return fit if isinstance(fit, NoFit) else None


def refusal(cluster: Cluster, job: JobId, now: datetime) -> NoFit | None:
    """Why a queued job does not fit into what is free, at this time; None: it would fit."""
    fit = placement.place(cluster.jobs[job].spec, free_for(cluster, job, now))
    return fit if isinstance(fit, NoFit) else None


def free_for(cluster: Cluster, job: JobId, now: datetime) -> Available:
    """All that is free in the pools in which a job is placed by now, outside of windows."""
    return _offered(cluster, job, cluster.load.free.fresh(), now)


def _offered(cluster: Cluster, job: JobId, capacities: Capacities, now: datetime) -> Available:
    return Available(
        capacities=capacities,
        pools=cluster.queue.request_class(job).pools,
        closed=closed_nodes(cluster, cluster.jobs[job].spec, now),
    )


def _unreserved(cluster: Cluster) -> Capacities:
    """What others may use: what is free, but not kept for the head."""
    left = cluster.load.free if cluster.load.reservation is None else cluster.load.unreserved
    return left.fresh()


def _place_heads(turn: Turn) -> int:
    """Place those that are first in order until one does not fit, for which seats are kept; how many were tried."""
    cluster, looks = turn.cluster, 0
    while looks < LOOKS and (head := _first(cluster)) is not None:
        request_class, free = cluster.queue.request_class(head.id), cluster.load.free.fresh()
        if not request_class.fails(free):
            looks += 1
            if _try(turn, head, _place_head(turn, head), is_head=True):
                continue
            request_class.fail(free)
        cluster.load.reserve(_reservation(turn, head))  # 5 reserve
        break
    return looks


def _first(cluster: Cluster) -> Job | None:
    """The first of all jobs that may be placed now."""
    firsts = (cluster.jobs[cluster.queue.lines.first_of(leaf)[1]] for leaf in cluster.queue.lines.leaves)
    return min(firsts, key=lambda job: across_leaves(cluster, job), default=None)


def _place_behind(turn: Turn, most: int) -> int:
    """Place jobs behind the head that fit beside what is kept for it; how many were tried."""
    cluster = turn.cluster
    queue, rooms = cluster.queue, _unreserved(cluster)
    open_lines = _OpenLines(cluster, rooms)
    looks = 0
    while looks < most and (job := open_lines.pop()) is not None:
        looks += 1
        if not _try(turn, job, _place(turn, job, _offered(cluster, job.id, rooms, turn.now)), is_head=False):
            queue.request_class(job.id).fail(rooms)
        rooms = _unreserved(cluster)
    return looks


class _OpenLines:
    """The lines whose jobs may fit, and the order in which their jobs are tried."""

    def __init__(self, cluster: Cluster, capacities: Capacities) -> None:
        self._cluster = cluster
        self._capacities = capacities
        self._leaves: dict[str, list[tuple[LineEntry, int]]] = {}
        """The first jobs of the open lines of each leaf, as a heap, with the number of their class."""
        self._classes = [each for each in cluster.queue.lines.request_classes if not self._is_closed(each)]
        for number, request_class in enumerate(self._classes):
            for leaf, entry in cluster.queue.lines.of_class(request_class):
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
            first = self._cluster.queue.lines.first(leaf, self._classes[number])
            if first == entry and not self._is_closed(self._classes[number]):
                return
            if first is None or self._is_closed(self._classes[number]):
                heapq.heappop(firsts)
            else:
                heapq.heapreplace(firsts, (first, number))

    def _is_closed(self, request_class: RequestClass) -> bool:
        """Whether jobs of a class fit neither beside what is kept nor into all that is free."""
        load = self._cluster.load
        return request_class.fails(self._capacities) or request_class.fails(load.free.fresh())

    def _key(self, leaf: str) -> SortKey:
        return across_leaves(self._cluster, self._cluster.jobs[self._leaves[leaf][0][0][1]])


def _try(turn: Turn, job: Job, fit: Placement | NoFit, *, is_head: bool) -> bool:
    """Seat a job that fits, or note why it does not; whether it does."""
    queue = turn.cluster.queue
    refusal = "" if isinstance(fit, Placement) else str(fit)
    turn.notes.offer(job, head=is_head, refusal=refusal, first=bool(refusal) and job.id not in queue.refused)
    if isinstance(fit, Placement):
        _seat(turn, job, fit)  # 6 seat
        return True
    queue.note_refusal(job.id, refusal)
    return False


def _place(turn: Turn, job: Job, available: Available) -> Placement | NoFit:
    """Seats for a gang, if it can be without the node where it failed last."""
    avoid = turn.cluster.newest_attempt(job.id).avoid
    if avoid is not None:
        elsewhere = placement.place(job.spec, replace(available, without=avoid))
        if isinstance(elsewhere, Placement):
            return elsewhere
    return placement.place(job.spec, available)


def _place_head(turn: Turn, head: Job) -> Placement | NoFit:
    """Seats for the head; what was kept for it counts even where a search over all capacity comes out otherwise."""
    cluster = turn.cluster
    free, kept = free_for(cluster, head.id, turn.now), cluster.load.reservation
    fit = _place(turn, head, free)
    if isinstance(fit, NoFit) and kept is not None and kept.job == head.id:
        is_open = kept.nodes.keys().isdisjoint(free.closed)
        return kept.fit if is_open and holds(kept, head.spec, map(cluster.load.free.of, kept.nodes)) else fit
    return fit


def _reservation(turn: Turn, head: Job) -> Reservation | None:
    """The one that stands, or a new one.

    It stands as long as its nodes could hold the head, and no window closes one to it. If it moved whenever a better
    place appeared, what it had already drained would be filled again, and the head could wait for ever.
    """
    cluster = turn.cluster
    kept, closed = cluster.load.reservation, closed_nodes(cluster, head.spec, turn.now)
    stands = kept is not None and kept.job == head.id and kept.nodes.keys().isdisjoint(closed)
    if stands and cluster.load.still_holds(head.spec):
        return kept
    request_class, empty = cluster.queue.request_class(head.id), cluster.load.empty.fresh()
    if request_class.fails(empty):
        return None
    found = reserve(head.id, head.spec, _offered(cluster, head.id, empty, turn.now))
    if found is None:
        request_class.fail(empty)
    return found


def _seat(turn: Turn, job: Job, fit: Placement) -> None:
    """Give every execution of the gang its seat, in one step."""
    cluster, attempt_id = turn.cluster, job.attempt_id
    deadline = turn.now + job.spec.timeouts.check_in
    attempt = replace(cluster.attempts[attempt_id], goal=Goal.PREPARE, placed_at=turn.now, deadline=deadline)
    turn.put(attempt)
    cluster.deadlines.watch_attempt(attempt, job)
    for seat, execution in zip(fit.seats, list(cluster.gangs.members(attempt_id)), strict=True):
        turn.move(replace(execution, node=seat.node, gpus=seat.gpus), Trigger.PLACED)
