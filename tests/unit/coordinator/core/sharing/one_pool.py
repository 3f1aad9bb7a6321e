"""A pool that is nothing but an amount of GPUs, and projects whose jobs go into it in the order of precedence."""

from dataclasses import dataclass, field

from coordinator.core.sharing.precedence import Bar, Precedence, Tier, barred, precedence, tier
from coordinator.core.sharing.standing import Tally
from coordinator.core.sharing.units import Units
from muster.domain.fleet.quota import NO_QUOTA_TERMS, AmountBounds, Amounts, QuotaTerms, QuotaUnit, UnitKind, UnitTerms
from muster.domain.jobs.job_class import JobClass

POOL = "default"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A job that waits."""

    name: str
    project: str
    size: Amounts
    job_class: JobClass
    priority: int
    sequence: int
    owner: str

    @property
    def place(self) -> tuple[int, int, int]:
        return (self.job_class.order, -self.priority, self.sequence)


def terms(
    quota: int | None = None, limit: int | None = None, weight: int | None = None, rank: int | None = None
) -> QuotaTerms:
    """Terms in whole GPUs."""
    return QuotaTerms(quota=_gpus(quota), limit=_gpus(limit), weight=weight, rank=rank)


def _gpus(count: int | None) -> AmountBounds:
    return AmountBounds(gpus=None if count is None else count * 1000)


@dataclass(slots=True)
class OnePool:
    """Units, jobs that wait for a pool of GPUs, and those that run there."""

    gpus: int
    units: Units = field(default_factory=Units)
    waiting: list[Wanted] = field(default_factory=list)
    running: dict[str, Wanted] = field(default_factory=dict)
    jobs: int = 0

    def __post_init__(self) -> None:
        self.units.in_pool(POOL).set_capacity(Amounts(gpus=self.gpus * 1000))

    def department(self, name: str, in_all_pools: QuotaTerms) -> None:
        self.units.put(QuotaUnit(name=name, kind=UnitKind.DEPARTMENT, terms=UnitTerms(everywhere=in_all_pools)))

    def project(self, name: str, in_all_pools: QuotaTerms = NO_QUOTA_TERMS, department: str = "") -> None:
        unit = QuotaUnit(
            name=name, kind=UnitKind.PROJECT, department=department, terms=UnitTerms(everywhere=in_all_pools)
        )
        self.units.put(unit)

    def submit(
        self,
        name: str,
        *,
        gpus: int = 1,
        job_class: JobClass = JobClass.PREEMPTIBLE,
        priority: int = 0,
        owner: str = "ann",
    ) -> None:
        """Have a job wait; its project is the first letter of its name, in capitals."""
        self.jobs += 1
        wanted = Wanted(name, name[0].upper(), Amounts(gpus * 1000), job_class, priority, self.jobs, owner)
        self.waiting.append(wanted)
        self.units.count(wanted.project, POOL, Tally.WAITING, wanted.size)
        self.units.count_jobs(wanted.project, owner, queued=1)

    def precedence(self, wanted: Wanted) -> Precedence:
        path, counted = self.units.path(wanted.project, POOL), self.units.counted(POOL)
        return precedence(path, wanted.size, counted, wanted.job_class, wanted.place)

    def bar(self, name: str) -> Bar | None:
        """Why a job that waits is barred."""
        return self._bar(next(each for each in self.waiting if each.name == name))

    def tier(self, name: str) -> Tier:
        wanted = next(each for each in self.waiting if each.name == name)
        standing = self.units.path(wanted.project, POOL)[-1]
        return tier(standing, wanted.size, self.units.counted(POOL), wanted.job_class)

    def run(self) -> list[str]:
        """Start what has room, one after another; the names in the order in which they start."""
        started: list[str] = []
        while (wanted := self._next()) is not None:
            self.waiting.remove(wanted)
            self.running[wanted.name] = wanted
            self.units.count(wanted.project, POOL, Tally.WAITING, wanted.size, -1)
            self.units.count(wanted.project, POOL, Tally.HELD, wanted.size)
            if wanted.job_class is JobClass.GUARANTEED:
                self.units.count(wanted.project, POOL, Tally.FIXED, wanted.size)
            self.units.count_jobs(wanted.project, wanted.owner, queued=-1, running=1)
            started.append(wanted.name)
        return started

    def end(self, name: str) -> None:
        """Have a job end."""
        ended = self.running.pop(name)
        self.units.count(ended.project, POOL, Tally.HELD, ended.size, -1)
        if ended.job_class is JobClass.GUARANTEED:
            self.units.count(ended.project, POOL, Tally.FIXED, ended.size, -1)
        self.units.count_jobs(ended.project, ended.owner, running=-1)

    def share(self, unit: str) -> int:
        """The share of a project, in whole GPUs."""
        self.units.share_out(POOL)
        return self.units.path(unit, POOL)[-1].share[0] // 1000

    def _next(self) -> Wanted | None:
        self.units.share_out(POOL)
        free = self.gpus * 1000 - self.units.root(POOL).held[0]
        ready: dict[str, Wanted] = {}
        for each in sorted(self.waiting, key=lambda each: each.place):
            if each.size.gpus <= free and self._bar(each) is None:
                ready.setdefault(each.project, each)
        return min(ready.values(), key=self.precedence, default=None)

    def _bar(self, wanted: Wanted) -> Bar | None:
        path, unit = self.units.path(wanted.project, POOL), self.units.get(wanted.project)
        return barred(path, unit, wanted.size, self.units.counted(POOL), wanted.job_class, wanted.owner)
