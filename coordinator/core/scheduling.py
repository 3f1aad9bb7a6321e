"""Which queued job is placed next: by priority, then first come; others pass only where they cannot delay the head.

A head that does not fit gets a reservation: the seats it would have if the nodes were empty. A job behind it
may be placed only on what is left beside these seats, so what runs there now drains and nothing new takes its place.
"""

from collections.abc import Hashable, Iterable
from dataclasses import replace
from itertools import islice

from coordinator.core import placement
from coordinator.core.cluster import Cluster, Usage, capacity, watch_deadlines
from coordinator.core.placement import NoFit, Placement, Room
from coordinator.core.records import Job
from coordinator.core.turn import Turn
from muster.domain.ids import JobId, NodeId
from muster.domain.job import JobSpec
from muster.domain.lifecycle import Trigger
from muster.domain.plan import Goal

BACKFILL_DEPTH = 200
"""How many waiting jobs are looked at in one cycle; bounds the cost of a cycle under a long queue."""


def schedule(turn: Turn) -> None:
    """Place every queued job that fits now."""
    while _cycle(turn):
        pass


def possible(cluster: Cluster, spec: JobSpec) -> NoFit | None:
    """Why a job could not run even if every node were there and empty; None: it could."""
    fit = placement.place(spec, (capacity(node) for node in cluster.nodes.values()))
    return fit if isinstance(fit, NoFit) else None


def refusal(cluster: Cluster, job: JobId) -> NoFit | None:
    """Why a queued job is not placed; None: it fits, but may not pass a job ahead of it."""
    spec = cluster.jobs[job].spec
    fit = placement.place(spec, _allowed(cluster, job))
    return fit if isinstance(fit, NoFit) else None


def _cycle(turn: Turn) -> bool:
    """One walk along the queue; True if it is worth another because all that it looked at was placed."""
    cluster = turn.cluster
    waiting = list(islice(cluster.queued(), BACKFILL_DEPTH))
    failed: set[Hashable] = set()
    for job in waiting:
        shape = _shape(job.spec)
        if shape in failed:
            continue
        fit = placement.place(job.spec, _allowed(cluster, job.id))
        if isinstance(fit, Placement):
            _seat(turn, job, fit)
            continue
        failed.add(shape)
        cluster.refused[job.id] = str(fit)
        if cluster.queue_position(job.id) == 1:
            _reserve(cluster, job)
    return bool(waiting) and not failed and len(waiting) == BACKFILL_DEPTH


def _allowed(cluster: Cluster, job: JobId) -> Iterable[Room]:
    """The rooms that a job may use: all free ones for the head, others less the head's reservation."""
    rooms = [cluster.room(node) for node in cluster.nodes]
    if cluster.reservation is None or cluster.reservation[0] == job:
        return rooms
    head, kept = cluster.reservation
    if head not in cluster.jobs or cluster.queue_position(head) != 1:
        cluster.reservation = None
        return rooms
    reserved = {node: (len(usage.gpus), usage.cpu_millis, usage.memory) for node, usage in kept.items()}
    return placement.rooms_without(rooms, reserved)


def _reserve(cluster: Cluster, head: Job) -> None:
    """Keep the head's seats; a reservation once made stands while its nodes do, or the head could wait for ever."""
    if cluster.reservation is not None and cluster.reservation[0] == head.id:
        if all(node in cluster.nodes and cluster.placeable(node) is None for node in cluster.reservation[1]):
            return
        cluster.reservation = None
    there = (node for name, node in cluster.nodes.items() if cluster.placeable(name) is None)
    fit = placement.place(head.spec, map(capacity, there))
    if isinstance(fit, NoFit):
        return
    kept: dict[NodeId, Usage] = {}
    for seat in fit.seats:
        usage, need = kept.setdefault(seat.node, Usage()), head.spec.role_of(seat.rank).resources
        usage.gpus.update(seat.gpus)
        usage.cpu_millis += need.cpu_millis
        usage.memory += need.memory or 0
    cluster.reservation = (head.id, kept)


def _seat(turn: Turn, job: Job, fit: Placement) -> None:
    """Give every execution of the gang its seat, in one step."""
    cluster, key = turn.cluster, (job.id, job.attempt)
    if cluster.reservation is not None and cluster.reservation[0] == job.id:
        cluster.reservation = None
    deadline = turn.now + job.spec.timeouts.check_in
    attempt = replace(cluster.attempts[key], goal=Goal.PREPARE, placed_at=turn.now, deadline=deadline)
    turn.put(attempt)
    watch_deadlines(cluster, key, attempt)
    for seat, execution in zip(fit.seats, list(cluster.members(key)), strict=True):
        turn.move(replace(execution, node=seat.node, gpus=seat.gpus), Trigger.PLACED)


def _shape(spec: JobSpec) -> Hashable:
    """Jobs of equal shape fit or do not fit alike."""
    roles = tuple((role.count, role.resources, role.runtime) for role in spec.roles)
    return (roles, spec.packing, spec.max_per_node, tuple(sorted(spec.node_labels.items())))
