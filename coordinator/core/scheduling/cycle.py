"""The scheduling cycle: which waiting job is placed next, step by step.

1. Order: the queue, as `order` has it, without those that are paused.
2. Quota comes here: what a job may still take, asked before a search is made for it.
3. Place: seats in what is free; for all but the head beside what is kept for it, so that they cannot delay it.
4. Preemption comes here: whom to stop for a job that found no seats.
5. Reserve: keep seats for the head, so that nobody who passes can starve it.
6. Seat: one decision for the whole gang.

Each step answers with a value that says why, and `muster why` prints the same values.
"""

from dataclasses import replace
from itertools import islice

from coordinator.core.attempts.starts import paused
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.placement import placement
from coordinator.core.placement.placement import Available, NoFit, Placement
from coordinator.core.placement.request_classes import RequestClass
from coordinator.core.placement.reservation import Reservation, holds, reserve
from coordinator.core.records import Job
from coordinator.core.turn.turn import Turn
from muster.domain.gangs.plan import Goal
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import Trigger

BACKFILL_DEPTH = 200
"""How many waiting jobs are looked at in one cycle; bounds the cost of a cycle under a long queue."""


def schedule(turn: Turn) -> None:
    """Place every queued job that fits now."""
    cluster = turn.cluster
    while cluster.queue and _cycle(turn):
        pass
    kept = cluster.load.reservation
    if kept is not None and (kept.job not in cluster.jobs or cluster.queue.position(kept.job) == 0):
        cluster.load.reserve(None)


def possible(cluster: Cluster, spec: JobSpec) -> NoFit | None:
    """Why a job could not run even if every node were there and empty; None: it could."""
    available = Available(capacities=cluster.load.total.fresh())
    if placement.fits(spec, available):
        return None
    fit = placement.place(spec, available)
    return fit if isinstance(fit, NoFit) else None


def refusal(cluster: Cluster, job: JobId) -> NoFit | None:
    """Why a queued job does not fit into what is free; None: it would fit."""
    fit = placement.place(cluster.jobs[job].spec, _free(cluster))
    return fit if isinstance(fit, NoFit) else None


def _free(cluster: Cluster) -> Available:
    """All that is free: for the head of the queue."""
    return Available(capacities=cluster.load.free.fresh())


def _unreserved(cluster: Cluster) -> Available:
    """What others may use: what is free, but not kept for the head."""
    left = cluster.load.free if cluster.load.reservation is None else cluster.load.unreserved
    return Available(capacities=left.fresh())


def _cycle(turn: Turn) -> bool:
    """One walk along the queue; True if it is worth another because all that it looked at was placed."""
    cluster = turn.cluster
    waiting = _in_order(turn)  # 1 order
    failed: set[RequestClass] = set()
    for job in waiting:
        request_class = cluster.queue.request_class(job.id)
        if request_class in failed:
            continue
        head = not failed
        fit = _place_head(cluster, job) if head else _place(cluster, job, _unreserved(cluster))  # 3 place
        refusal = "" if isinstance(fit, Placement) else str(fit)
        turn.notes.offer(job, head=head, refusal=refusal, first=bool(refusal) and job.id not in cluster.queue.refused)
        if isinstance(fit, Placement):
            _seat(turn, job, fit)  # 6 seat
            continue
        failed.add(request_class)
        cluster.queue.note_refusal(job.id, refusal)
        if head:
            cluster.load.reserve(_reservation(cluster, job))  # 5 reserve
    return bool(waiting) and not failed and len(waiting) == BACKFILL_DEPTH


def _in_order(turn: Turn) -> list[Job]:
    """The waiting jobs that this cycle looks at, the head first."""
    ready = (job for job in turn.cluster.queue if not paused(turn.cluster.newest_attempt(job.id), turn))
    return list(islice(ready, BACKFILL_DEPTH))


def _place(cluster: Cluster, job: Job, available: Available) -> Placement | NoFit:
    """Seats for a gang, if it can be without the node where it failed last."""
    avoid = cluster.newest_attempt(job.id).avoid
    if avoid is not None:
        elsewhere = placement.place(job.spec, replace(available, without=avoid))
        if isinstance(elsewhere, Placement):
            return elsewhere
    return placement.place(job.spec, available)


def _place_head(cluster: Cluster, head: Job) -> Placement | NoFit:
    """Seats for the head; what was kept for it counts even where a search over all capacity comes out otherwise."""
    fit, kept = _place(cluster, head, _free(cluster)), cluster.load.reservation
    if isinstance(fit, NoFit) and kept is not None and kept.job == head.id:
        return kept.fit if holds(kept, head.spec, map(cluster.load.free.of, kept.nodes)) else fit
    return fit


def _reservation(cluster: Cluster, head: Job) -> Reservation | None:
    """The one that stands, or a new one.

    It stands as long as its nodes could hold the head: if it moved whenever a better place appeared, what it had
    already drained would be filled again, and the head could wait for ever.
    """
    kept = cluster.load.reservation
    if kept is not None and kept.job == head.id and cluster.load.still_holds(head.spec):
        return kept
    return reserve(head.id, head.spec, cluster.load.empty.fresh())


def _seat(turn: Turn, job: Job, fit: Placement) -> None:
    """Give every execution of the gang its seat, in one step."""
    cluster, attempt_id = turn.cluster, job.attempt_id
    deadline = turn.now + job.spec.timeouts.check_in
    attempt = replace(cluster.attempts[attempt_id], goal=Goal.PREPARE, placed_at=turn.now, deadline=deadline)
    turn.put(attempt)
    cluster.deadlines.watch_attempt(attempt, job)
    for seat, execution in zip(fit.seats, list(cluster.gangs.members(attempt_id)), strict=True):
        turn.move(replace(execution, node=seat.node, gpus=seat.gpus), Trigger.PLACED)
