"""A plain model of shares, order and claims for GPUs alone, which knows nothing of how the coordinator decides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

UNLIMITED = 10**9
WHOLE = 1000
CLASSES = ("guaranteed", "preemptible", "spare")


@dataclass(frozen=True)
class PlainUnit:
    """A project or a department, in whole GPUs. `quota` None: nothing is said, which is unlimited."""

    name: str
    quota: int | None = None
    limit: int = UNLIMITED
    weight: int = 1
    rank: int = 0
    above: str = ""
    min_runtime: int = 0
    min_runtime_within: int = 0


@dataclass(frozen=True)
class PlainJob:
    """`count` executions with so many GPUs each; times in seconds."""

    name: str
    project: str
    count: int = 1
    gpus: int = 1
    job_class: str = "preemptible"
    priority: int = 0
    sequence: int = 0
    started_at: int = 0
    saved_at: int | None = None
    evictions: int = 0

    @property
    def size(self) -> int:
        """Thousandths of a GPU, as all amounts of units are."""
        return self.count * self.gpus * WHOLE

    @property
    def standing(self) -> tuple[int, int]:
        return (CLASSES.index(self.job_class), -self.priority)


@dataclass
class PlainRooms:
    """Nodes with GPUs, units, and jobs that run (each execution's node) or wait."""

    nodes: Mapping[str, int]
    units: Mapping[str, PlainUnit]
    running: dict[PlainJob, tuple[str, ...]] = field(default_factory=dict)
    waiting: list[PlainJob] = field(default_factory=list)
    now: int = 1000

    # units

    def line(self, unit: str) -> list[str]:
        """A unit and those above it, the lowest first, without the root."""
        return [unit, *self.line(self.units[unit].above)] if unit else []

    def below(self, above: str) -> list[PlainUnit]:
        return [unit for unit in self.units.values() if unit.above == above]

    def held(self, unit: str, job_class: str = "") -> int:
        jobs = (job for job in self.running if job_class in {"", job.job_class})
        return sum(job.size for job in jobs if unit in self.line(job.project))

    def quota(self, unit: str) -> int:
        quota = self.units[unit].quota
        return UNLIMITED if quota is None else quota * WHOLE

    def limit(self, unit: str) -> int:
        return min(UNLIMITED, self.units[unit].limit * WHOLE)

    def counted(self) -> bool:
        return any(unit.quota is not None for unit in self.units.values())

    def shares(self) -> dict[str, int]:
        """What each unit should have of what there is."""
        found: dict[str, int] = {}
        self._divide("", sum(self.nodes.values()) * WHOLE, found)
        return found

    def _divide(self, above: str, amount: int, found: dict[str, int]) -> None:
        units = self.below(above)
        wants = {unit.name: min(self._demand(unit.name), self.limit(unit.name)) for unit in units}
        parts = {unit.name: min(self.quota(unit.name), wants[unit.name]) for unit in units}
        left = amount - sum(parts.values())
        if left < 0:
            exact = {name: Fraction(part * amount, sum(parts.values())) for name, part in parts.items()}
            parts = {name: int(part) for name, part in exact.items()}
            for unit in sorted(units, key=lambda u: (parts[u.name] - exact[u.name], -u.weight, u.name)):
                parts[unit.name] += sum(parts.values()) < amount
        for rank in sorted({unit.rank for unit in units}, reverse=True):
            left = self._deal([unit for unit in units if unit.rank == rank and unit.weight], wants, parts, left)
        for unit in units:
            found[unit.name] = parts[unit.name]
            self._divide(unit.name, parts[unit.name], found)

    def _deal(self, units: list[PlainUnit], wants: dict[str, int], parts: dict[str, int], left: int) -> int:
        while left > 0 and (hungry := [unit for unit in units if parts[unit.name] < wants[unit.name]]):
            weights = sum(unit.weight for unit in hungry)
            due = {unit.name: Fraction(left * unit.weight, weights) for unit in hungry}
            full = [unit for unit in hungry if wants[unit.name] - parts[unit.name] <= due[unit.name]]
            for unit in full or hungry:
                given = wants[unit.name] - parts[unit.name] if full else int(due[unit.name] // WHOLE) * WHOLE
                parts[unit.name], left = parts[unit.name] + given, left - given
            if not full:
                rests = sorted(hungry, key=lambda u: (-(due[u.name] % WHOLE), -u.weight, u.name))
                for unit in (unit for _ in range(left) for unit in rests):
                    lot = min(WHOLE, left, wants[unit.name] - parts[unit.name])
                    parts[unit.name], left = parts[unit.name] + lot, left - lot
                break
        return left

    def _demand(self, unit: str) -> int:
        return self.held(unit) + sum(job.size for job in self.waiting if unit in self.line(job.project))

    # order and bars

    def in_order(self) -> list[PlainJob]:
        """Within a project the order is fixed; of the first ones of all projects the least key goes first."""
        shares, found = self.shares(), list[PlainJob]()
        left = sorted(self.waiting, key=lambda job: (job.standing, job.sequence))
        while left:
            firsts = {job.project: job for job in reversed(left)}
            found.append(min(firsts.values(), key=lambda job: self._key(job, shares)))
            left.remove(found[-1])
        return found

    def _key(self, job: PlainJob, shares: Mapping[str, int]) -> tuple[object, ...]:
        keys: list[tuple[int, ...]] = []
        for name in reversed(self.line(job.project)) if self.counted() else ():
            load, quota, share = self.held(name), self.quota(name), shares[name]
            tier = 0 if load + job.size <= quota else 1 if load + job.size <= share else 2
            tier = 3 if job.job_class == "spare" else tier
            bound = quota if tier == 0 and quota else max(1, share)
            parts = (load, load + job.size) if bound < UNLIMITED else (0, 0)
            keys.append((tier, -self.units[name].rank, *(part * 10**6 // bound for part in parts)))
        keys += keys[-1:] * (2 - len(keys))
        return (*keys, job.standing, job.sequence)

    def barred(self, job: PlainJob, taken: Sequence[PlainJob] = ()) -> bool:
        """Whether a job would break a term if it were placed and these were gone."""
        for name in self.line(job.project):
            gone = [each for each in taken if name in self.line(each.project)]
            if self.held(name) - sum(each.size for each in gone) + job.size > self.limit(name):
                return True
            fixed = self.held(name, "guaranteed")
            if self.counted() and job.job_class == "guaranteed" and fixed + job.size > self.quota(name):
                return True
        return False

    # seats

    def seats(self, job: PlainJob, free: Mapping[str, int]) -> tuple[str, ...] | None:
        """A node for each execution, the fullest nodes first; None: there is no room."""
        slots = {node: free[node] // job.gpus for node in sorted(free, key=lambda node: (free[node], node))}
        found = [node for node, count in slots.items() for _ in range(count)]
        return tuple(found[: job.count]) if len(found) >= job.count else None

    def free(self, without: Sequence[PlainJob] = (), kept: Mapping[str, int] | None = None) -> dict[str, int]:
        free = {node: gpus - (kept or {}).get(node, 0) for node, gpus in self.nodes.items()}
        for job, seats in self.running.items():
            for node in seats if job not in without else ():
                free[node] -= job.gpus
        return {node: max(0, gpus) for node, gpus in free.items()}

    def claim(self) -> tuple[PlainJob | None, dict[str, int]]:
        """The head, and what is kept for it: its seats in an empty fleet."""
        for job in self.in_order():
            if job.job_class != "spare" and not self.barred(job) and self.seats(job, self.free()) is None:
                kept: dict[str, int] = {}
                for node in self.seats(job, dict(self.nodes)) or ():
                    kept[node] = kept.get(node, 0) + job.gpus
                return job, kept
        return None, {}

    def place_one(self) -> bool:
        head, kept = self.claim()
        for job in self.in_order():
            seats = None if self.barred(job) or job == head else self.seats(job, self.free(kept=kept))
            if seats is not None:
                self.start(job, seats)
                return True
        return False

    def start(self, job: PlainJob, seats: tuple[str, ...]) -> None:
        self.waiting.remove(job)
        self.running[replace(job, started_at=self.now, saved_at=None)] = seats
