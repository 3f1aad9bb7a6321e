"""The scheduling cycle: which waiting jobs are placed next, step by step.

1. Order: the least key of the first jobs of all leaves, as `order` has it.
2. Terms: jobs that their own department or project keeps waiting are passed, as `bars` has it.
3. Place: seats in what is free; for all but the head beside what is kept for it, so that they cannot delay it. Who ends
   before the head could start in any case may be there, too (`passing`).
4. Evict: stop others for a job that found no seats, where `eviction` says so; what it gets is claimed for it.
5. Reserve: keep seats for the head, so that nobody who passes can starve it.
6. Seat: one decision for the whole gang.

Each step answers with a value that says why, and `muster why` prints the same values. A request class that failed is
not tried again until there may be more room: a cycle costs what has changed, however many jobs wait.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.deadlines import CycleDue
from coordinator.core.placement import placement
from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.placement import NoFit, Placement
from coordinator.core.placement.reservation import Reservation, holds, noted, reserve
from coordinator.core.records import Job
from coordinator.core.scheduling.bars import Bars
from coordinator.core.scheduling.eviction.course import evict_for_waiting
from coordinator.core.scheduling.eviction.settling import settle_claims
from coordinator.core.scheduling.first_jobs import Firsts, OpenLines
from coordinator.core.scheduling.order import worst_tier
from coordinator.core.scheduling.passing import Passing
from coordinator.core.scheduling.run_limits import longest_runs, pools_for
from coordinator.core.scheduling.windows import closed_nodes
from coordinator.core.turn import idling, restoring
from coordinator.core.turn.metering import reading
from coordinator.core.turn.turn import Turn
from muster.domain.fleet.pool import PortionRule
from muster.domain.gangs.plan import Goal
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import Trigger

LOOKS = 100
"""How many jobs one cycle tries; when they are used up, the turn is followed by another one at once."""


def schedule(turn: Turn) -> None:
    """Place every queued job that fits now, as far as the looks of one cycle go."""
    cluster = turn.cluster
    cluster.queue.wake(turn.now)
    cluster.unit_load.settle()
    bars = Bars(cluster, turn.now)
    settle_claims(turn, _seat)
    firsts = Firsts(cluster, bars, turn.now)
    looks = _place_heads(turn, bars, firsts)
    if looks < LOOKS:
        looks += _place_behind(turn, bars, firsts, LOOKS - looks)
    if looks >= LOOKS:
        cluster.deadlines.add(turn.now, CycleDue())
    evict_for_waiting(turn, bars, firsts)  # 4 evict
    kept = cluster.load.reservation
    if kept is not None and not _still_waits(cluster, kept.job):
        cluster.load.reserve(None)
    _note_head(turn)
    _note_barred(turn)


def _note_barred(turn: Turn) -> None:
    """Have the records of first jobs tell since when a term keeps them waiting, for the next coordinator."""
    cluster = turn.cluster
    for job, note in cluster.unit_load.patience.take_changed().items():
        if job in cluster.jobs and cluster.queue.position(job):
            attempt = cluster.newest_attempt(job)
            if attempt.barred != note:
                turn.put(replace(attempt, barred=note))


def _note_head(turn: Turn) -> None:
    """Have the record of the head tell of the seats that are kept for it, so that the next coordinator keeps them."""
    cluster, kept = turn.cluster, turn.cluster.load.reservation
    head, told = None if kept is None else cluster.jobs[kept.job].attempt_id, cluster.load.head.noted
    if told.tells(head, kept):
        return
    if told.attempt is not None and told.attempt != head:
        turn.put(replace(cluster.attempts[told.attempt], reserved=()))
    if kept is not None:
        turn.put(replace(cluster.newest_attempt(kept.job), reserved=noted(kept.fit)))
    told.note(kept)


def _still_waits(cluster: Cluster, job: JobId) -> bool:
    """Whether seats are to be kept for a job: it waits, and has claimed none."""
    return job in cluster.jobs and cluster.queue.position(job) > 0 and cluster.newest_attempt(job).claim is None


def possible(cluster: Cluster, spec: JobSpec) -> NoFit | None:
    """Why a job could not run even if every node were there and empty; None: it could."""
    available = Available(capacities=cluster.load.total.fresh(), pools=pools_for(cluster, spec))
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
    pools = cluster.queue.request_class(job).pools
    return _outside_windows(cluster, cluster.jobs[job], cluster.load.free.fresh(), pools, now)


def _offered(turn: Turn, job: Job, capacities: Capacities, bars: Bars) -> Available:
    """What there is for a job in those of its pools in which nothing of its own keeps it waiting."""
    return _outside_windows(turn.cluster, job, capacities, bars.pools(job), turn.now)


def _outside_windows(
    cluster: Cluster, job: Job, capacities: Capacities, pools: tuple[str, ...] | None, now: datetime
) -> Available:
    return Available(capacities=capacities, pools=pools, closed=closed_nodes(cluster, job.spec, now))


def _fail(cluster: Cluster, job: Job, capacities: Capacities, bars: Bars) -> None:
    """Note that a job has no room; others that are alike have none either, unless they may be in more pools."""
    request_class = cluster.queue.request_class(job.id)
    if bars.only_for_ever(job):
        request_class.fail(capacities)
    else:
        bars.exclude(job)


def _unreserved(cluster: Cluster) -> Capacities:
    """What others may use: what is free, but not kept for the head."""
    left = cluster.load.free if cluster.load.reservation is None else cluster.load.unreserved
    return left.fresh()


def _place_heads(turn: Turn, bars: Bars, firsts: Firsts) -> int:
    """Place those that are first in order until one does not fit, for which seats are kept; how many were tried."""
    cluster, looks = turn.cluster, 0
    while looks < LOOKS and (head := _head(cluster, firsts.least(), bars)) is not None:
        request_class, free = cluster.queue.request_class(head.id), cluster.load.free.fresh()
        if not request_class.fails(free):
            looks += 1
            if _try(turn, head, _place_head(turn, head, bars), is_head=True):
                continue
            _fail(cluster, head, free, bars)
        # What nobody else wants needs no seats that are kept from others.
        spare = head.job_class is JobClass.SPARE
        cluster.load.reserve(None if spare else _reservation(turn, head, bars))  # 5 reserve
        return looks
    if looks < LOOKS:
        cluster.load.reserve(None)
    return looks


def _head(cluster: Cluster, first: Job | None, bars: Bars) -> Job | None:
    """The job that seats are kept for: the first one, unless there is one already that it must not displace.

    Between projects the order changes with everything that starts and ends. If the seats moved with it, what they have
    drained would be filled again, and large jobs could wait for ever.
    """
    kept = cluster.load.reservation
    if first is None or kept is None or kept.job not in cluster.jobs or not cluster.queue.position(kept.job):
        return first
    holder = cluster.jobs[kept.job]
    pool, of_one_project = bars.pool(holder), holder.spec.project == first.spec.project
    if not cluster.unit_load.units.counted(pool) or of_one_project or bars.of(holder) is not None:
        return first
    return first if worst_tier(cluster, first, bars.pool(first)) < worst_tier(cluster, holder, pool) else holder


def _place_behind(turn: Turn, bars: Bars, firsts: Firsts, most: int) -> int:
    """Place jobs behind the head that fit beside what is kept for it; how many were tried."""
    cluster = turn.cluster
    rooms, passing = _unreserved(cluster), Passing(cluster, turn.now)
    open_lines = OpenLines(cluster, rooms, bars, passing, firsts)
    looks = 0
    while looks < most and (job := open_lines.pop()) is not None:
        looks += 1
        for capacities in _open_to(cluster, job, rooms, passing):
            if _try(turn, job, _place(turn, job, _offered(turn, job, capacities, bars)), is_head=False):
                break
            _fail(cluster, job, capacities, bars)
        rooms = _unreserved(cluster)
    return looks


def _open_to(cluster: Cluster, job: Job, rooms: Capacities, passing: Passing) -> Iterator[Capacities]:
    """What a job behind the head may have: first what is not kept for that, then the rest if it ends in time."""
    request_class = cluster.queue.request_class(job.id)
    if not request_class.fails(rooms):
        yield rooms
    if cluster.load.reservation is not None and passing.has(request_class) and passing.lets(job.spec):
        yield cluster.load.free.fresh()


def _try(turn: Turn, job: Job, fit: Placement | NoFit, *, is_head: bool) -> bool:
    """Seat a job that fits, or note why it does not; whether it does."""
    queue = turn.cluster.queue
    refusal = "" if isinstance(fit, Placement) else str(fit)
    turn.notes.offer(job, head=is_head, refusal=refusal, before=queue.refused.get(job.id))
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


def _place_head(turn: Turn, head: Job, bars: Bars) -> Placement | NoFit:
    """Seats for the head; what was kept for it counts even where a search over all capacity comes out otherwise."""
    cluster = turn.cluster
    free, kept = _offered(turn, head, cluster.load.free.fresh(), bars), cluster.load.reservation
    fit = _place(turn, head, free)
    if isinstance(fit, NoFit) and kept is not None and _stands(cluster, kept, head, free):
        return kept.fit if holds(kept, head.spec, map(cluster.load.free.of, kept.nodes)) else fit
    return fit


def _stands(cluster: Cluster, kept: Reservation, head: Job, offered: Available) -> bool:
    """Whether seats are kept for this job, no window closes one to it, and it may be in their pool."""
    if kept.job != head.id or not kept.nodes.keys().isdisjoint(offered.closed):
        return False
    return offered.pools is None or all(cluster.load.total.of(node).pool in offered.pools for node in kept.nodes)


def _reservation(turn: Turn, head: Job, bars: Bars) -> Reservation | None:
    """The one that stands, or a new one.

    It stands as long as its nodes could hold the head, and no window closes one to it. If it moved whenever a better
    place appeared, what it had already drained would be filled again, and the head could wait for ever.
    """
    cluster = turn.cluster
    kept, empty = cluster.load.reservation, cluster.load.empty.fresh()
    offered = _offered(turn, head, empty, bars)
    if kept is not None and _stands(cluster, kept, head, offered) and cluster.load.still_holds(head.spec):
        return kept
    request_class = cluster.queue.request_class(head.id)
    if request_class.fails(empty):
        return None
    found = reserve(head.id, head.spec, offered)
    if found is None and bars.only_for_ever(head):
        request_class.fail(empty)
    return found


def _seat(turn: Turn, job: Job, fit: Placement) -> None:
    """Give every execution of the gang its seat, in one step."""
    cluster, attempt_id = turn.cluster, job.attempt_id
    deadline = turn.now + job.spec.armed_within
    pool = cluster.load.total.of(fit.seats[0].node).pool
    attempt = replace(
        cluster.attempts[attempt_id],
        goal=Goal.PREPARE,
        placed_at=turn.now,
        pool=pool,
        metered_from=reading(cluster, job.spec.project, pool, turn.now),
        longest_run=longest_runs(cluster).get(pool),
        longest_idle=idling.limit_by_terms(cluster, job.spec.project, pool, (seat.node for seat in fit.seats)),
        enforce=PortionRule.TELL if (said := cluster.records.pools.get(pool)) is None else said.enforce,
        deadline=deadline,
        barred=None,
        reserved=(),
        checkpoints=restoring.choose(cluster, job.id),
    )
    turn.put(attempt)
    cluster.deadlines.watch_attempt(attempt, job)
    for seat, execution in zip(fit.seats, list(cluster.gangs.members(attempt_id)), strict=True):
        turn.move(replace(execution, node=seat.node, gpus=seat.gpus), Trigger.PLACED)
