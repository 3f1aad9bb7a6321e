"""The same small fleets as those of the plain model, with the coordinator's own decisions about order and evictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from coordinator.core.scheduling.eviction.eviction import Eviction, evict
from coordinator.core.scheduling.eviction.gangs import CountedSeats, RoomSeeker, RunningGang
from coordinator.core.scheduling.eviction.lifting import lift_for
from coordinator.core.scheduling.eviction.measure import EvictionMeasure, lost_work, measure
from coordinator.core.sharing.precedence import BarKind, Precedence, barred, precedence
from coordinator.core.sharing.standing import Tally
from coordinator.core.sharing.units import Units
from muster.domain.fleet.quota import (
    UNLIMITED_AMOUNT,
    AmountBounds,
    Amounts,
    QuotaTerms,
    QuotaUnit,
    UnitKind,
    UnitTerms,
)
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.job_class import JobClass
from tests.unit.coordinator.core.eviction.plain_model import PlainPool
from tests.unit.coordinator.core.eviction.plain_rooms import PlainJob, PlainUnit

POOL = "default"


def amounts(gpus: int) -> Amounts:
    return Amounts(gpus=gpus * 1000)


@dataclass
class CorePool:
    """A pool whose jobs are ordered and evicted by the core; seats are found as the plain model finds them."""

    plain: PlainPool
    few: int
    """The number of gangs of which the search tries all sets."""
    units: Units = field(default_factory=Units)
    evicted: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.units.in_pool(POOL).set_capacity(amounts(sum(self.plain.nodes.values())))
        for unit in sorted(self.plain.units.values(), key=lambda unit: unit.above):
            self.units.put(self._unit(unit))
        for job in self.plain.running:
            self._count(job, Tally.HELD)
        for job in self.plain.waiting:
            self._count(job, Tally.WAITING)

    def settle(self) -> "CorePool":
        """Place and evict until nothing changes."""
        jobs = len(self.plain.running) + len(self.plain.waiting)
        while self._place_one() or self._evict_one():
            assert len(self.evicted) <= 4 * jobs, "it does not come to rest"
        return self

    # order

    def in_order(self) -> list[PlainJob]:
        self.units.share_out(POOL)
        left = sorted(self.plain.waiting, key=lambda job: (job.standing, job.sequence))
        found: list[PlainJob] = []
        while left:
            firsts = {job.project: job for job in reversed(left)}
            found.append(min(firsts.values(), key=self._precedence))
            left.remove(found[-1])
        return found

    def _precedence(self, job: PlainJob) -> Precedence:
        place = (*job.standing, job.sequence)
        counted = self.units.counted(POOL)
        return precedence(
            self.units.path(job.project, POOL), Amounts(gpus=job.size), counted, JobClass(job.job_class), place
        )

    def bar(self, job: PlainJob) -> BarKind | None:
        path, unit = self.units.path(job.project, POOL), self.units.get(job.project)
        found = barred(path, unit, Amounts(gpus=job.size), self.units.counted(POOL), JobClass(job.job_class), "ann")
        return None if found is None else found.kind

    # placing

    def _head(self) -> tuple[PlainJob | None, Mapping[str, int]]:
        for job in self.in_order():
            room = self.plain.seats(job, self.plain.free())
            if job.job_class != "spare" and self.bar(job) is None and room is None:
                kept: dict[str, int] = {}
                for node in self.plain.seats(job, dict(self.plain.nodes)) or ():
                    kept[node] = kept.get(node, 0) + job.gpus
                return job, kept
        return None, {}

    def _place_one(self) -> bool:
        head, kept = self._head()
        for job in self.in_order():
            barred_now = self.bar(job) is not None or job == head
            seats = None if barred_now else self.plain.seats(job, self.plain.free(kept=kept))
            if seats is not None:
                self._start(job, seats)
                return True
        return False

    def _start(self, job: PlainJob, seats: tuple[str, ...]) -> None:
        self.plain.waiting.remove(job)
        self._count(job, Tally.WAITING, -1)
        self.plain.running[replace(job, started_at=self.plain.now, saved_at=None)] = seats
        self._count(job, Tally.HELD)

    # evicting

    def _evict_one(self) -> bool:
        head, kept = self._head()
        for job in self.in_order():
            beside = {} if job == head else kept
            decided = self.decide(job, beside)
            if decided is None:
                continue
            victims = [self._job(gang) for gang in decided.victims]
            seats = self.plain.seats(job, self.plain.free(victims, beside))
            assert seats is not None, "the set was proved"
            self.evicted.append((job.name, tuple(sorted(each.name for each in victims))))
            for each in victims:
                del self.plain.running[each]
                self._count(each, Tally.HELD, -1)
                self.plain.waiting.append(replace(each, evictions=each.evictions + 1))
                self._count(each, Tally.WAITING)
            self._start(job, seats)
            return True
        return False

    def decide(self, job: PlainJob, beside: Mapping[str, int]) -> Eviction | None:
        """The gangs that the core evicts for a job."""
        self.units.share_out(POOL)
        free, bar = self.plain.free(kept=beside), self.bar(job)
        if bar is None and self.plain.seats(job, free) is not None:
            return None
        seeker = self.seeker(job)
        if seeker is None:
            return None
        return evict(seeker, self.seats(job, beside), [self.gang(each) for each in self.plain.running], self.few)

    def seats(self, job: PlainJob, beside: Mapping[str, int]) -> CountedSeats:
        """The seats of a job beside what is kept for another one."""
        free = self.plain.free(kept=beside)
        return CountedSeats(
            missing=max(0, job.count - sum(each // job.gpus for each in free.values())),
            slots=lambda node, freed: (free[node] + freed.gpus // 1000) // job.gpus,
            hold=lambda gangs: self._fits(job, gangs, beside),
        )

    def measure(self, job: PlainJob, victims: Sequence[str]) -> EvictionMeasure:
        """What the core thinks that an eviction costs."""
        gangs = [self.gang(each) for each in self.plain.running if each.name in victims]
        seeker = self.seeker(job)
        assert seeker is not None
        return measure(seeker, gangs)

    def seeker(self, job: PlainJob) -> RoomSeeker | None:
        """A job as evictions see it; None: what bars it is not lifted by victims."""
        path, size, counted = self.units.path(job.project, POOL), Amounts(gpus=job.size), self.units.counted(POOL)
        lift = None
        if self.bar(job) is not None:
            lift = lift_for(path, self.units.get(job.project), size, counted, JobClass(job.job_class), "ann")
            if lift is None:
                return None
        return RoomSeeker(
            path=path,
            size=size,
            job_class=JobClass(job.job_class),
            priority=job.priority,
            counted=counted,
            lift=lift,
        )

    def gang(self, job: PlainJob) -> RunningGang:
        unit, age = self.plain.units[job.project], self.plain.now - job.started_at
        longer = 2 ** min(job.evictions, 2)
        freed: dict[NodeId, Amounts] = {}
        for node in self.plain.running[job]:
            freed[NodeId(node)] = freed.get(NodeId(node), Amounts()).plus(amounts(job.gpus))
        own = (each for each in self.plain.running if each.project == job.project and each.job_class == "preemptible")
        return RunningGang(
            attempt=AttemptId(JobId(job.name), 1),
            path=self.units.path(job.project, POOL),
            size=Amounts(gpus=job.size),
            job_class=JobClass(job.job_class),
            priority=job.priority,
            level=len({each.priority for each in own if each.priority < job.priority}),
            lost=lost_work(job.size, self.plain.now - (job.saved_at or job.started_at)),
            order=job.started_at * 1000 + job.sequence,
            freed=freed,
            is_safe=age < unit.min_runtime * longer,
            is_safe_within=age < unit.min_runtime_within * longer,
        )

    # inside

    def _fits(self, job: PlainJob, gangs: Sequence[RunningGang], beside: Mapping[str, int]) -> bool:
        return self.plain.seats(job, self.plain.free([self._job(gang) for gang in gangs], beside)) is not None

    def _job(self, gang: RunningGang) -> PlainJob:
        return next(job for job in self.plain.running if job.name == gang.attempt.job)

    def _count(self, job: PlainJob, tally: Tally, sign: int = 1) -> None:
        self.units.count(job.project, POOL, tally, Amounts(gpus=job.size), sign)
        if tally is Tally.HELD and job.job_class == "guaranteed":
            self.units.count(job.project, POOL, Tally.FIXED, Amounts(gpus=job.size), sign)

    def _unit(self, unit: PlainUnit) -> QuotaUnit:
        department = any(each.above == unit.name for each in self.plain.units.values())
        terms = QuotaTerms(
            quota=AmountBounds(gpus=UNLIMITED_AMOUNT if unit.quota is None else unit.quota * 1000),
            limit=AmountBounds(gpus=None if unit.limit >= 10**9 else unit.limit * 1000),
            weight=unit.weight,
            rank=unit.rank,
        )
        kind = UnitKind.DEPARTMENT if department else UnitKind.PROJECT
        return QuotaUnit(name=unit.name, kind=kind, department=unit.above, terms=UnitTerms(everywhere=terms))
