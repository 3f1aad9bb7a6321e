"""When a queued job may start: by run limits at the latest, and about then if what runs takes as long as expected.

`latest` is a promise, so it is made for the head alone: seats are kept for it, and what is on them ends by its limit.
`about` is none: who comes later may go first. Both look at a few hundred nodes at the most.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from itertools import islice

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.placement import placement, search
from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.parts import part_of
from coordinator.core.placement.reservation import holds
from coordinator.core.records import Attempt, Execution, Job
from coordinator.core.scheduling.bars import Bars
from coordinator.core.scheduling.windows import closed_nodes
from muster.domain.fleet.quota import MILLIS_PER_GPU, NO_AMOUNTS, Amounts, amounts_of_job
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
    attempt: AttemptId
    freed: Sequence[Execution]


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
    members: defaultdict[AttemptId, list[Execution]] = defaultdict(list)
    for node in kept.nodes:
        for execution in cluster.load.used(node).executions:
            found = cluster.executions[execution]
            members[found.attempt_id].append(found)
    ends = (End(at, attempt, freed) for attempt, freed in members.items() if (at := _by_limit(cluster, attempt, now)))
    gone: defaultdict[NodeId, list[Execution]] = defaultdict(list)
    for end in sorted(ends, key=lambda each: (each.at, each.attempt)):
        _add(gone, end.freed)
        if holds(kept, job.spec, [cluster.load.once_gone(node, gone[node]) for node in kept.nodes]):
            return end.at
    return None


def _about(cluster: Cluster, job: Job, now: datetime) -> datetime | None:
    """When it has room beside those before it, if all that runs ends as expected."""
    ahead = _ahead(cluster, job)
    if ahead is None:
        return None
    pools = cluster.queue.request_class(job.id).pools
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
            _add(gone, end.freed)
        nodes = dict.fromkeys((*near, *gone))
        capacities = [cluster.load.once_gone(node, gone.get(node, ())) for node in nodes if node not in closed]
        there = Available(capacities=Capacities(capacities), pools=pools)
        return _hold(capacities, needed) and placement.fits(job.spec, there)

    first = bisect_left(range(len(ends) + 1), True, key=has_room)
    return ends[first - 1].at if 0 < first <= len(ends) else None


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
            ends.append(End(at, attempt, freed))
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
    record, timeouts = cluster.attempts[attempt], cluster.jobs[attempt.job].spec.timeouts
    if record.goal is Goal.STOP:
        return now + timeouts.grace
    if timeouts.run is None:
        return None
    return _starts_by(record, now) + timeouts.run + timeouts.grace


def _starts_by(attempt: Attempt, now: datetime) -> datetime:
    """When it has started, or has failed to."""
    return attempt.started_at or attempt.deadline or now


def _add(gone: "defaultdict[NodeId, list[Execution]]", freed: Iterable[Execution]) -> None:
    for execution in freed:
        assert execution.node is not None
        gone[execution.node].append(execution)


def _hold(capacities: Sequence[Capacity], needed: Amounts) -> bool:
    """Whether these nodes have so much in all, in what a job of several and those before it want."""
    return (
        sum(MILLIS_PER_GPU * len(each.gpus) for each in capacities) >= needed.gpus
        and sum(each.cpu_millis for each in capacities) >= needed.cpus
        and sum(each.memory >> 20 for each in capacities) >= needed.memory
    )
