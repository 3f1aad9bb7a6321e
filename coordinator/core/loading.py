"""The cluster of a coordinator that starts: what was stored, with times that mean something by the clock of this start.

Times of before were told by another clock, which may have been set by days since. So of whatever keeps two attempts
apart only lengths count: how much was left when it was stored. That is counted anew from the start.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from coordinator.core.attempts.history import remembered
from coordinator.core.attempts.restarts import LONGEST_RESTART_PAUSE
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.deadlines import StoreDue
from coordinator.core.placement.reservation import as_noted, reservation_of
from coordinator.core.records import Attempt, Execution, Job, Node, Record
from coordinator.core.scheduling.order import within_project
from coordinator.core.turn import idling
from muster.domain.gangs.fence import PERMIT_ENDS_WITHIN
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.placing.taint import ends_at


def load(records: Iterable[Record], now: datetime, fleet_key: bytes = b"") -> Cluster:
    """The cluster as stored: jobs come before their attempts and executions."""
    cluster = Cluster(order=within_project, started_at=now, fleet_key=fleet_key)
    for record in remembered(records):
        cluster.put(record)
        if isinstance(record, Node):
            _watch_node(cluster, record, now)
    cluster.draining.loaded()
    for window in cluster.load.windows:
        cluster.deadlines.watch_window(window)
    for job in cluster.jobs.values():
        cluster.deadlines.watch_job(job)
    _watch_outputs(cluster, now)
    for key, stored in list(cluster.attempts.items()):
        if stored.ended_at is not None:
            continue
        attempt = _queued_anew(_waiting_anew(stored, cluster.jobs[key.job], now), now)
        if attempt is not stored:
            cluster.put(attempt)
        for member in list(cluster.gangs.members(key)):
            if member.silent_until is not None or member.last_permit_at is not None:
                cluster.put(_silent_anew(member, now))
        cluster.deadlines.watch_attempt(attempt, cluster.jobs[key.job])
        cluster.deadlines.watch_queue(attempt, cluster.jobs[key.job])
        idling.watch(cluster, key)
    _keep_seats_of_head(cluster)
    return cluster


def _watch_outputs(cluster: Cluster, now: datetime) -> None:
    """Have outputs looked at that are on their way, when their time is over."""
    for each in cluster.executions.values():
        if (each.stores or each.stores_again) and each.outputs is not None:
            noted = min(each.outputs.at or now, now)
            cluster.deadlines.add(noted + cluster.jobs[each.job].spec.timeouts.store, StoreDue(execution=each.id))


def _keep_seats_of_head(cluster: Cluster) -> None:
    """Keep what was kept for the head of the queue, if that still waits, and its nodes still have it."""
    head = cluster.load.head.noted.attempt
    if head is None or cluster.jobs[head.job].attempt_id != head or not cluster.queue.position(head.job):
        return
    seats, total = cluster.attempts[head].reserved, cluster.load.total
    for seat in seats:
        if seat.node not in cluster.nodes or not {gpu.uuid for gpu in total.of(seat.node).gpus}.issuperset(seat.gpus):
            return
    kept = reservation_of(head.job, cluster.jobs[head.job].spec, as_noted(seats), total.of)
    cluster.load.reserve(kept)
    cluster.load.head.noted.note(kept)


def _watch_node(cluster: Cluster, node: Node, now: datetime) -> None:
    """Believe in a node, and have what it runs looked at if its taints end it."""
    cluster.appear(node.name, now)
    if any(each.since > now for each in node.taints):  # told by a clock that was ahead
        node = replace(node, taints=tuple(replace(each, since=min(each.since, now)) for each in node.taints))
        cluster.put(node)
    ends = [at for each in node.taints if (at := ends_at(each, ())) is not None]
    if ends:
        cluster.deadlines.watch_taints(node.name, max(now, min(ends)))


def _waiting_anew(attempt: Attempt, job: Job, now: datetime) -> Attempt:
    """An attempt that waits, with what was left of its fence, and with no more than the longest pause."""
    if attempt.not_before is None or attempt.goal is not None:
        return attempt
    not_before = min(attempt.not_before, now + LONGEST_RESTART_PAUSE)
    if attempt.fenced_until is None:
        return replace(attempt, not_before=not_before)
    left = job.spec.timeouts.lost_after + PERMIT_ENDS_WITHIN
    if attempt.fence_noted_at is not None:
        left = max(timedelta(), attempt.fenced_until - attempt.fence_noted_at)
    return replace(attempt, not_before=max(not_before, now + left), fenced_until=now + left, fence_noted_at=now)


def _queued_anew(attempt: Attempt, now: datetime) -> Attempt:
    """An attempt that is in the queue, with as much time there as was stored; what has passed since does not count."""
    if attempt.queued_since is None or attempt.goal is not None:
        return attempt
    return replace(attempt, queued_since=now)


def _silent_anew(member: Execution, now: datetime) -> Execution:
    """A member of an attempt that ends: what was left when it was lost is left now, and its last permit may be new."""
    silent_until, lost_at = member.silent_until, member.times.get(State.LOST)
    if silent_until is not None and lost_at is not None:
        silent_until = now + max(timedelta(), silent_until - lost_at)
    return replace(member, silent_until=silent_until, last_permit_at=None if member.last_permit_at is None else now)
