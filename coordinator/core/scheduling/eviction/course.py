"""The course of an eviction: a claim for who gets the seats, an order to stop for the victims, and at last the seats.

A claim is on the record of the attempt that makes it, in the same commit as the orders to its victims. So it outlives
the coordinator, and who gets the seats is never a matter of who comes first.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from coordinator.core.attempts.attempts import preempt
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.deadlines import CycleDue, ProtectionDue
from coordinator.core.placement.placement import Placement
from coordinator.core.placement.reservation import noted
from coordinator.core.records import Job, SeatClaim
from coordinator.core.scheduling.bars import Bars
from coordinator.core.scheduling.eviction.entitlement import OpenedGangs, rules_for
from coordinator.core.scheduling.eviction.eviction import evict, waits_for_safety
from coordinator.core.scheduling.eviction.gangs import Lift, RoomSeeker, RunningGang
from coordinator.core.scheduling.eviction.lifting import lift_for
from coordinator.core.scheduling.eviction.rooms import EvictionRooms
from coordinator.core.scheduling.eviction.running import RunningGangs, SeenGangs
from coordinator.core.scheduling.eviction.victims import LEAST_CANDIDATES, MOST_CANDIDATES
from coordinator.core.scheduling.first_jobs import Firsts
from coordinator.core.scheduling.run_limits import longest_runs
from coordinator.core.sharing.precedence import Bar, BarKind
from coordinator.core.turn.turn import Turn
from muster.domain.fleet.quota import amounts_of_job
from muster.domain.gangs.fence import LEASE
from muster.domain.jobs.job_class import JobClass

EVICTION_LOOKS = 2
"""How many jobs one cycle looks for victims for; when they are used up, the turn is followed by another at once."""
MOST_CLAIMS = 16
"""Claims that are open at a time."""


class Decision(NamedTuple):
    """Gangs are stopped for a job."""

    victims: tuple[RunningGang, ...]
    """None at all where what is leaving already makes the room."""
    fit: Placement
    """The seats of the job once they have gone."""


class Vain(NamedTuple):
    """Nobody is evicted for a job."""

    until: datetime | None = None
    """From when on there may be somebody, as the first are not safe any more; None: no time helps."""


def evict_for_waiting(turn: Turn, bars: Bars, firsts: Firsts) -> None:
    """Look for victims for the first jobs of all projects, which find no room, or which a term of theirs bars."""
    cluster = turn.cluster
    if not cluster.gangs.evictable.projects:
        return
    if turn.now < cluster.started_at + LEASE:
        cluster.deadlines.add(cluster.started_at + LEASE, ProtectionDue())
        return
    if len(cluster.load.claims) >= MOST_CLAIMS:
        return
    state, seen = _state(cluster), SeenGangs()
    untried = list(islice(_untried(turn, firsts, state), EVICTION_LOOKS + 1))
    for looks, job in enumerate(untried):
        if looks == EVICTION_LOOKS:
            cluster.deadlines.add(turn.now, CycleDue())
            return
        vain = _evict_for(turn, job, bars, seen)
        if vain is not None:
            cluster.gangs.evictable.note_vain(job.id, (state, _state_of(cluster, job)), vain.until)
            if vain.until is not None:
                cluster.deadlines.add(vain.until, ProtectionDue())
        elif len(cluster.load.claims) >= MOST_CLAIMS:
            return
        else:
            state, seen = _state(cluster), SeenGangs()


def _untried(turn: Turn, firsts: Firsts, state: object) -> Iterator[Job]:
    """The first jobs of all projects, and the first that are not barred, of which nobody knows that it is in vain.

    They come in order; nothing may change meanwhile.
    """
    cluster, evictable = turn.cluster, turn.cluster.gangs.evictable
    evictable.idle.begin(state, turn.now)
    for ranked in firsts.without(evictable.idle.names):
        known = firsts.of(ranked.leaf)
        assert known is not None, "it is in order"
        jobs = tuple(dict.fromkeys(each.job for each in known if each is not None))
        found = [job for job in jobs if _is_untried(turn, cluster.jobs[job], state)]
        if not found:
            evictable.note_idle(ranked.leaf, jobs)
        if ranked.job in found:
            yield cluster.jobs[ranked.job]


def _is_untried(turn: Turn, job: Job, state: object) -> bool:
    if job.job_class is JobClass.SPARE:
        return False
    tried_in_vain = turn.cluster.gangs.evictable.tried_in_vain
    return not tried_in_vain(job.id, (state, _state_of(turn.cluster, job)), turn.now)


def _state(cluster: Cluster) -> object:
    """What decides whether victims are found, but for the time and the job."""
    load, kept = cluster.load, cluster.load.reservation
    rooms = (load.free.fresh().version, load.unreserved.fresh().version, load.empty.fresh().version)
    head = None if kept is None else kept.job
    runs = tuple(longest_runs(cluster).items())
    return (rooms, load.windows.version, cluster.unit_load.units.eased, cluster.gangs.evictable.version, head, runs)


def _state_of(cluster: Cluster, job: Job) -> object:
    """The same, of a job itself."""
    return (job.spec.priority, job.job_class, cluster.queue.request_class(job.id).pools)


def _is_head(cluster: Cluster, job: Job) -> bool:
    """Whether nothing is kept from a job for another one, the head of the queue."""
    kept = cluster.load.reservation
    return kept is None or kept.job == job.id


def _evict_for(turn: Turn, job: Job, bars: Bars, seen: SeenGangs) -> Vain | None:
    """Claim seats for a job in one of its pools, and stop who is on them; None: that is done."""
    times = []
    for pool, bar in bars.by_pool(job):
        decided = decide(turn.cluster, job, pool, bar, turn.now, seen)
        if isinstance(decided, Decision):
            _carry_out(turn, job, decided)
            return None
        times.append(decided.until)
    return Vain(min(filter(None, times), default=None))


def decide(
    cluster: Cluster, job: Job, pool: str, bar: Bar | None, now: datetime, seen: SeenGangs | None = None
) -> Decision | Vain:
    """Say whom to stop in a pool for a queued job that finds no room there, or that a term bars.

    `seen`: what others looked at, if nothing has changed since.
    """
    seeker = _seeker(cluster, job, pool, bar)
    if seeker is None:
        return Vain()
    rooms = EvictionRooms(cluster, job, pool, now, is_head=_is_head(cluster, job))
    if seeker.lift is None and _may_do_alone(cluster, job) and not rooms.missing and (fit := rooms.fit(())) is not None:
        return Decision((), fit)
    some = min(MOST_CANDIDATES, max(2 * LEAST_CANDIDATES, job.spec.size))
    running = RunningGangs(cluster, seeker, pool, now, some, seen)
    decided = evict(seeker, rooms, running.gangs)
    if decided is None and running.has_more:
        running = RunningGangs(cluster, seeker, pool, now, MOST_CANDIDATES, seen)
        decided = evict(seeker, rooms, running.gangs)
    if decided is None:
        until = _first_unsafe(now, seeker, running)
        return Vain(until if until is not None and waits_for_safety(seeker, rooms, running.gangs) else None)
    fit = rooms.fit(decided.victims)
    assert fit is not None, "the victims were proved"
    return Vain() if rooms.may_come_back() else Decision(decided.victims, fit)


def _may_do_alone(cluster: Cluster, job: Job) -> bool:
    """Whether a job may have room without victims: something leaves, or it was not found to have none."""
    return bool(cluster.gangs.evictable.leaving) or not cluster.queue.request_class(job.id).fails(
        (cluster.load.free if _is_head(cluster, job) else cluster.load.unreserved).fresh()
    )


def _carry_out(turn: Turn, job: Job, decision: Decision) -> None:
    """Keep the seats for a job that it gets once the victims have gone, and have them go."""
    attempt = turn.cluster.newest_attempt(job.id)
    turn.put(replace(attempt, claim=SeatClaim(made_at=turn.now, seats=noted(decision.fit))))
    for victim in decision.victims:
        preempt(turn, victim.attempt, job)


def _seeker(cluster: Cluster, job: Job, pool: str, bar: Bar | None) -> RoomSeeker | None:
    """A job that looks for room; None: no victims can make any for it."""
    units = cluster.unit_load.units
    path, counted, size = units.path(job.spec.project, pool), units.counted(pool), amounts_of_job(job.spec)
    lift: Lift | None = None
    if bar is not None:
        if bar.kind in {BarKind.TURN, BarKind.LONGEST_RUN}:
            return None  # it waits for another one, which has waited long, or may run too long
        lift = lift_for(path, units.get(job.spec.project), size, counted, job.job_class, job.owner)
        if lift is None:
            return None
    return RoomSeeker(
        path=path, size=size, job_class=job.job_class, priority=job.spec.priority, counted=counted, lift=lift
    )


def _first_unsafe(now: datetime, seeker: RoomSeeker, running: RunningGangs) -> datetime | None:
    """When the first of those that would be victims is not safe any more; None: that cannot be told yet."""
    rules, opened = tuple(rules_for(seeker)), OpenedGangs(seeker)
    times = (
        until
        for gang in running.gangs
        if (until := running.safe_until(gang)) is not None
        and until > now
        and any(opened.has(gang, rule, whatever_age=True) for rule in rules)
    )
    return min(times, default=None)
