"""The course of an eviction: a claim for who gets the seats, an order to stop for the victims, and at last the seats.

A claim is on the record of the attempt that makes it, in the same commit as the orders to its victims. So it outlives
the coordinator, and who gets the seats is never a matter of who comes first.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from coordinator.core.attempts.attempts import preempt
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.deadlines import ProtectionDue
from coordinator.core.placement.placement import Placement
from coordinator.core.placement.reservation import holds
from coordinator.core.records import Attempt, Claim, ClaimedSeat, Job
from coordinator.core.scheduling.eviction.eviction import Eviction, evict
from coordinator.core.scheduling.eviction.gangs import Lift, RoomSeeker, RunningGang
from coordinator.core.scheduling.eviction.lifting import lift_for
from coordinator.core.scheduling.eviction.rooms import EvictionRooms
from coordinator.core.scheduling.order import across_leaves
from coordinator.core.sharing.precedence import Bar, barred
from coordinator.core.turn.turn import Turn
from muster.domain.fleet.node import NodeState
from muster.domain.fleet.quota import NO_AMOUNTS, Amounts, amounts_of, amounts_of_job
from muster.domain.gangs.fence import LEASE
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.job_class import JobClass

EVICTION_LOOKS = 4
"""For how many jobs one cycle looks for victims."""
MOST_CLAIMS = 16
"""Claims that are open at a time."""
DEFAULT_MIN_RUNTIME = timedelta(minutes=10)
"""How long an attempt is safe from other projects, unless the terms of its own say otherwise."""
ORDERS_A_SECOND = 1 << 32
"""Room for sequence numbers between the orders of two seconds."""
MOST_DOUBLINGS = 2
"""How often that is doubled for jobs that were evicted again and again."""

Seat = Callable[[Turn, Job, Placement], None]
"""Gives every execution of a gang its seat."""


def settle_claims(turn: Turn, seat: Seat) -> None:
    """Place who has claimed seats that are free now; a claim ends where its seats are lost."""
    cluster = turn.cluster
    for job in cluster.load.claims:
        record, attempt = cluster.jobs[job], cluster.newest_attempt(job)
        if _is_lost(cluster, job):
            turn.put(replace(attempt, claim=None))
        elif holds(kept := cluster.load.claims.of(job), record.spec, map(cluster.load.bare, kept.nodes)):
            turn.put(replace(attempt, claim=None))
            seat(turn, record, kept.fit)


def evict_for_waiting(turn: Turn, firsts: Iterable[tuple[Job, Bar | None]]) -> None:
    """Look for victims for the first jobs of all projects, which find no room, or which a term of theirs bars."""
    cluster = turn.cluster
    if not cluster.evictable.running or turn.now < cluster.started_at + LEASE:
        if cluster.evictable.running:
            cluster.deadlines.add(cluster.started_at + LEASE, ProtectionDue())
        return
    looks = 0
    in_turn = sorted(firsts, key=lambda each: across_leaves(cluster, each[0]))
    for job, bar in in_turn:
        if looks == EVICTION_LOOKS or len(cluster.load.claims) >= MOST_CLAIMS:
            return
        state = _state(cluster, job)
        if job.job_class is JobClass.SPARE or cluster.evictable.tried_in_vain(job.id, state, turn.now):
            continue
        looks += 1
        if not _evict_for(turn, job, bar):
            until = _next_unsafe(turn)
            cluster.evictable.note_vain(job.id, state, until)
            if until is not None:
                cluster.deadlines.add(until, ProtectionDue())


def _state(cluster: Cluster, job: Job) -> object:
    """What decides whether victims are found, but for the time."""
    kept = cluster.load.reservation
    head = kept is None or kept.job == job.id
    return (cluster.load.free.fresh().version, cluster.unit_load.units.eased, cluster.evictable.version, head)


def _evict_for(turn: Turn, job: Job, bar: Bar | None) -> bool:
    """Claim seats for a job and stop who is on them; whether that could be done."""
    cluster = turn.cluster
    seeker = _seeker(cluster, job, bar)
    if seeker is None:
        return False
    kept = cluster.load.reservation
    rooms = EvictionRooms(cluster, job, is_head=kept is None or kept.job == job.id)
    fit = rooms.fit(()) if seeker.lift is None else None
    victims: tuple[RunningGang, ...] = ()
    if fit is None:
        if rooms.may_come_back():
            return False
        decided = evict(seeker, rooms, [_gang(turn, attempt) for attempt in cluster.evictable.running])
        if not isinstance(decided, Eviction):
            return False
        victims, fit = decided.victims, rooms.fit(decided.victims)
    assert fit is not None, "the victims were proved"
    seats = tuple(ClaimedSeat(rank=seat.rank, node=seat.node, gpus=seat.gpus) for seat in fit.seats)
    turn.put(replace(cluster.newest_attempt(job.id), claim=Claim(made_at=turn.now, seats=seats)))
    for victim in victims:
        preempt(turn, victim.attempt, job)
    return True


def _seeker(cluster: Cluster, job: Job, bar: Bar | None) -> RoomSeeker | None:
    units, pool = cluster.unit_load.units, cluster.unit_load.pool_of(job)
    path, counted, size = units.path(job.spec.project, pool), units.counted(pool), amounts_of_job(job.spec)
    lift: Lift | None = None
    if bar is not None:
        unit = units.get(job.spec.project)
        if barred(path, unit, size, counted, job.job_class, job.owner) is None:
            return None  # it waits for another one, which has waited long
        lift = lift_for(path, unit, size, counted, job.job_class, job.owner)
        if lift is None:
            return None
    return RoomSeeker(
        path=path, size=size, job_class=job.job_class, priority=job.spec.priority, counted=counted, lift=lift
    )


def _gang(turn: Turn, attempt_id: AttemptId) -> RunningGang:
    cluster = turn.cluster
    job, attempt = cluster.jobs[attempt_id.job], cluster.attempts[attempt_id]
    freed: dict[NodeId, Amounts] = {}
    for member in cluster.gangs.members(attempt_id):
        if member.node is not None and member.id in cluster.load.used(member.node).executions:
            freed[member.node] = freed.get(member.node, NO_AMOUNTS).plus(amounts_of(job.spec, member.rank))
    pool = cluster.unit_load.pool_of(job)
    since = attempt.saved_at or attempt.started_at or attempt.placed_at or turn.now
    return RunningGang(
        attempt=attempt_id,
        path=cluster.unit_load.units.path(job.spec.project, pool),
        size=amounts_of_job(job.spec),
        job_class=job.job_class,
        priority=job.spec.priority,
        level=_level(cluster, job),
        lost_seconds=max(0, int((turn.now - since).total_seconds())),
        order=int((attempt.placed_at or turn.now).timestamp()) * ORDERS_A_SECOND + job.sequence,
        freed=freed,
        is_safe=_safe_until(cluster, job, attempt, within=False) > turn.now,
        is_safe_within=_safe_until(cluster, job, attempt, within=True) > turn.now,
    )


def _level(cluster: Cluster, job: Job) -> int:
    """How many lower priorities run preemptible in the project of a job."""
    own = (cluster.jobs[each.job] for each in cluster.evictable.running)
    return len(
        {
            each.spec.priority
            for each in own
            if each.spec.project == job.spec.project and each.spec.priority < job.spec.priority
        }
    )


def _safe_until(cluster: Cluster, job: Job, attempt: Attempt, *, within: bool) -> datetime:
    """Until when an attempt is safe; for ever while it has not started, as a deadline ends that."""
    if attempt.started_at is None:
        return datetime.max.replace(tzinfo=UTC)
    pool, least = cluster.unit_load.pool_of(job), timedelta() if within else DEFAULT_MIN_RUNTIME
    for unit in cluster.unit_load.units.get(job.spec.project).line():
        terms = unit.terms.in_pool(pool)
        said = terms.min_runtime_within if within else terms.min_runtime
        if said is not None:
            least = said
            break
    return attempt.started_at + least * (1 << min(job.evictions, MOST_DOUBLINGS))


def _next_unsafe(turn: Turn) -> datetime | None:
    """When the next attempt that is safe now is not any more; None: none is, or only those that have not started."""
    cluster, times = turn.cluster, []
    for attempt_id in cluster.evictable.running:
        job, attempt = cluster.jobs[attempt_id.job], cluster.attempts[attempt_id]
        if attempt.started_at is not None:
            times += [_safe_until(cluster, job, attempt, within=within) for within in (False, True)]
    return min((each for each in times if each > turn.now), default=None)


def _is_lost(cluster: Cluster, job: JobId) -> bool:
    """Whether seats that a job has claimed are not there any more; a node that is silent for a moment keeps them."""
    for node in cluster.load.claims.nodes_of(job):
        record = cluster.nodes.get(node)
        if record is None or record.cordon is not None or cluster.presence[node].state is NodeState.LOST:
            return True
        named = {gpu.uuid for gpu in cluster.load.claims.of(job).nodes[node].gpus}
        if not named <= {gpu.uuid for gpu in record.inventory.gpus if gpu.usable}:
            return True
    return False
