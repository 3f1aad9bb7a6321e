"""When a queued job may start: by run limits at the latest, and about then if what runs takes as long as expected.

`latest` is a promise, so it is made for the head alone: seats are kept for it, and what is on them ends by its limit.
`about` is none: who comes later may go first. Both look at a few hundred nodes at the most.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from itertools import accumulate, islice
from operator import le

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.reserved.head_seats import MOST_HEAD_NODES
from coordinator.core.cluster.reserved.sure_ends import end_by_limit, sure_end
from coordinator.core.placement import placement, search
from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.parts import part_of
from coordinator.core.records import Execution, Job
from coordinator.core.scheduling.bars import Bars
from coordinator.core.scheduling.run_limits import too_short
from coordinator.core.scheduling.windows import closed_nodes
from muster.domain.fleet.quota import NO_AMOUNTS, Amounts, amounts_of_job
from muster.domain.gangs.plan import Goal
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.explanation import StartEstimate

MOST_NODES = 400
"""Nodes of running jobs that one estimate looks at, those that end first."""

MOST_AHEAD = 200
"""Jobs before it that take something of what comes free; behind more of them nothing is said."""


@dataclass(frozen=True, slots=True)
class End:
    """When a running attempt ends, and what it frees."""

    at: datetime
    freed: Sequence[Execution]
    amounts: Amounts


def estimate_start(cluster: Cluster, job: JobId, now: datetime) -> StartEstimate:
    """When a queued job may start, as far as anybody can know."""
    record = cluster.jobs[job]
    if Bars(cluster, now).of(record) is not None:
        return StartEstimate()
    return StartEstimate(about=_about(cluster, record, now), latest=_latest(cluster, record, now))


def _latest(cluster: Cluster, job: Job, now: datetime) -> datetime | None:
    """When its seats are free by limits alone, if seats are kept for it."""
    kept = cluster.load.reservation
    if kept is None or kept.job != job.id:
        return None
    if len(kept.nodes) <= MOST_HEAD_NODES:
        by = cluster.load.head.free_by
        return None if by is None else max(now, by)
    # Where it has very many nodes, each counts as taken until all on it has ended: later than it may be, and sure.
    held = (cluster.executions[each] for node in kept.nodes for each in cluster.load.used(node).executions)
    ends = [sure_end(cluster.records, each) for each in held]
    known = [at for at in ends if at is not None]
    return max(now, *known) if known and len(known) == len(ends) else None


def _about(cluster: Cluster, job: Job, now: datetime) -> datetime | None:
    """When it has room beside those before it, if all that runs ends as expected."""
    ahead = _ahead(cluster, job)
    if ahead is None:
        return None
    pools = cluster.queue.request_class(job.id).pools
    if short := too_short(cluster, job.spec):
        pools = tuple(pool for pool in pools or cluster.unit_load.pools if pool not in short)
    ends = _expected_ends(cluster, pools, now)
    closed = closed_nodes(cluster, job.spec, now)
    free = Available(capacities=cluster.load.free.fresh(), pools=pools, closed=closed)
    near = dict.fromkeys(
        node
        for place in range(len(job.spec.roles))
        for node in search.counts(job.spec, part_of(job.spec, place), free, {})
    )
    needed = ahead.plus(amounts_of_job(job.spec))

    def has_room(count: int) -> bool:
        gone: defaultdict[NodeId, list[Execution]] = defaultdict(list)
        for end in ends[:count]:
            for execution in end.freed:
                assert execution.node is not None
                gone[execution.node].append(execution)
        nodes = dict.fromkeys((*near, *gone))
        capacities = [cluster.load.once_gone(node, gone.get(node, ())) for node in nodes if node not in closed]
        return placement.fits(job.spec, Available(capacities=Capacities(capacities), pools=pools))

    there = accumulate((end.amounts for end in ends), Amounts.plus, initial=_amounts(map(cluster.load.free.of, near)))
    enough = next((count for count, amounts in enumerate(there) if all(map(le, needed, amounts))), None)
    if enough is None:
        return None
    first = _first(has_room, enough, len(ends))
    return ends[first - 1].at if first else None


def _first(has_room: Callable[[int], bool], least: int, most: int) -> int | None:
    """The least count with room; looks near the least one first, as few ends are tried sooner. None: there is none."""
    step, without = 1, least - 1
    while not has_room(count := min(most, without + step)):
        if count == most:
            return None
        without, step = count, 2 * step
    return bisect_left(range(count), True, lo=without + 1, key=has_room)


def _ahead(cluster: Cluster, job: Job) -> Amounts | None:
    """What the jobs before it want in all; None: they are too many."""
    before = cluster.queue.position(job.id) - 1
    if before > MOST_AHEAD:
        return None
    sizes = (amounts_of_job(each.spec) for each in islice(cluster.queue, before))
    return reduce(Amounts.plus, sizes, NO_AMOUNTS)


def _expected_ends(cluster: Cluster, pools: tuple[str, ...] | None, now: datetime) -> Sequence[End]:
    """The ends of what runs in these pools, the first ones first, as far as anybody knows them."""
    known = (
        (at, attempt) for attempt in cluster.unit_load.holders if (at := _expected(cluster, attempt, now)) is not None
    )
    ends: list[End] = []
    nodes: set[NodeId] = set()
    for at, attempt in sorted(known):
        freed = [each for each in cluster.gangs.members(attempt) if _is_in(cluster, each, pools)]
        nodes.update(each.node for each in freed if each.node is not None)
        if len(nodes) > MOST_NODES:
            break
        if freed:
            ends.append(End(at, freed, amounts_of_job(cluster.jobs[attempt.job].spec)))
    return ends


def _is_in(cluster: Cluster, execution: Execution, pools: tuple[str, ...] | None) -> bool:
    """Whether an execution holds something in one of these pools."""
    node = execution.node
    if node is None or execution.id not in cluster.load.used(node).executions:
        return False
    return pools is None or cluster.load.total.of(node).pool in pools


def _expected(cluster: Cluster, attempt: AttemptId, now: datetime) -> datetime | None:
    """When an attempt ends, as its owner thinks, or else by its limit; None: nobody knows."""
    record, timeouts = cluster.attempts[attempt], cluster.jobs[attempt.job].spec.timeouts
    limit = _by_limit(cluster, attempt, now)
    if timeouts.expected is None or record.goal is Goal.STOP:
        return limit
    began = record.started_at or now
    expected = began + timeouts.expected
    return limit if expected <= now else expected


def _by_limit(cluster: Cluster, attempt: AttemptId, now: datetime) -> datetime | None:
    """The end of an attempt that is sure by its limits; None: it has none."""
    record, spec = cluster.attempts[attempt], cluster.jobs[attempt.job].spec
    return now + spec.timeouts.grace if record.goal is Goal.STOP else end_by_limit(record, spec)


def _amounts(capacities: Iterable[Capacity]) -> Amounts:
    """What nodes have in all."""
    total = NO_AMOUNTS
    for each in capacities:
        gpus = sum(gpu.thousandths for gpu in each.gpus) + sum(max(0, gpu.thousandths) for gpu in each.shared)
        total = total.plus(Amounts(gpus, each.cpu_millis, each.memory >> 20))
    return total
