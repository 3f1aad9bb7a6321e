"""How claims end: the job is placed on its seats once they are free, or they are lost and it is tried anew."""

from collections.abc import Callable
from dataclasses import replace

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.placement.node_capacity import UsedCapacity, free_capacity
from coordinator.core.placement.placement import Placement
from coordinator.core.placement.reservation import Reservation, holds
from coordinator.core.records import Job
from coordinator.core.scheduling.windows import closed_nodes
from coordinator.core.sharing.precedence import breaks_terms, may_be_seated
from coordinator.core.turn.turn import Turn
from muster.domain.fleet.node import NodeState
from muster.domain.fleet.quota import amounts_of_job
from muster.domain.ids import NodeId

Seat = Callable[[Turn, Job, Placement], None]
"""Gives every execution of a gang its seat."""


def settle_claims(turn: Turn, seat: Seat) -> None:
    """Place who has claimed seats that are free now; a claim ends where its seats are lost."""
    cluster = turn.cluster
    for node in cluster.load.claims.take_doubted():
        _end_claims_without_room(turn, node)
    for name in cluster.load.claims:
        job, attempt, kept = cluster.jobs[name], cluster.newest_attempt(name), cluster.load.claims.of(name)
        if _is_lost(turn, job, kept) or _is_barred(cluster, job):
            turn.put(replace(attempt, claim=None))
        elif _may_be_seated(cluster, job) and holds(kept, job.spec, map(cluster.load.bare, kept.nodes)):
            turn.put(replace(attempt, claim=None))
            seat(turn, job, kept.fit)


def _end_claims_without_room(turn: Turn, node: NodeId) -> None:
    """End the newest claims of a node that has too little for all of them beside those who stay."""
    load = turn.cluster.load
    for name in reversed(tuple(load.claims.on(node))):
        left = load.once_stopped(node)
        if left.cpu_millis >= 0 and left.memory >= 0:
            return
        turn.put(replace(turn.cluster.newest_attempt(name), claim=None))


def _is_lost(turn: Turn, job: Job, kept: Reservation) -> bool:
    """Whether a job could not be placed there even if nothing ran; a node that is silent for a moment keeps its seats.

    Nor could it where a window closes a node to it by now, or where the nodes are in other pools than before.
    """
    cluster = turn.cluster
    nodes, pool = cluster.load.claims.nodes_of(job.id), cluster.unit_load.pool_of(job)
    for node in nodes:
        record = cluster.nodes.get(node)
        if record is None or record.cordon is not None or cluster.presence[node].state is NodeState.LOST:
            return True
    if not closed_nodes(cluster, job.spec, turn.now).isdisjoint(nodes):
        return True
    empty = [free_capacity(cluster.load.total.of(node), UsedCapacity(), None) for node in nodes]
    usable = {gpu.uuid for each in empty for gpu in each.gpus}
    if not all(usable.issuperset(seat.gpus) for seat in kept.fit.seats):
        return True
    return any(each.pool != pool for each in empty) or not holds(kept, job.spec, empty)


def _is_barred(cluster: Cluster, job: Job) -> bool:
    """Whether its units may not have what they hold together with what it has claimed, as terms are others by now."""
    units, pool = cluster.unit_load.units, cluster.unit_load.pool_of(job)
    path = units.path(job.spec.project, pool)
    return breaks_terms(path, amounts_of_job(job.spec), units.counted(pool), job.job_class)


def _may_be_seated(cluster: Cluster, job: Job) -> bool:
    """Whether the limits of its units are kept though what is leaving still holds something."""
    units, pool = cluster.unit_load.units, cluster.unit_load.pool_of(job)
    path, unit = units.path(job.spec.project, pool), units.get(job.spec.project)
    return may_be_seated(path, unit, amounts_of_job(job.spec), job.owner)
