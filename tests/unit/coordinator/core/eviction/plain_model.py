"""A plain model of who runs: evictions beside shares, order and claims, for GPUs alone, with all sets of victims.

It is slow, and knows nothing of how the coordinator decides. An eviction takes no time: victims wait again at once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from tests.unit.coordinator.core.eviction.plain_rooms import PlainJob, PlainRooms


@dataclass
class PlainPool(PlainRooms):
    """Nodes, units and jobs, and who is evicted for whom until it comes to rest."""

    evicted: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """The job that gets room, and who is evicted for it."""

    def settle(self) -> "PlainPool":
        """Place and evict until nothing changes."""
        while self.place_one() or self._evict_one():
            assert len(self.evicted) <= 4 * (len(self.running) + len(self.waiting)), "it does not come to rest"
        return self

    def _evict_one(self) -> bool:
        head, kept = self.claim()
        for job in self.in_order():
            victims = self.victims(job, {} if job == head else kept)
            if victims is not None:
                seats = self.seats(job, self.free(victims, {} if job == head else kept))
                assert seats is not None
                self.evicted.append((job.name, tuple(sorted(each.name for each in victims))))
                for each in victims:
                    del self.running[each]
                    self.waiting.append(replace(each, evictions=each.evictions + 1))
                self.start(job, seats)
                return True
        return False

    def victims(self, job: PlainJob, kept: Mapping[str, int]) -> tuple[PlainJob, ...] | None:
        """The jobs that one without room evicts; None: it may evict nobody, or need not."""
        shares, barred = self.shares(), self.barred(job)
        if not barred and self.seats(job, self.free(kept=kept)) is not None:
            return None
        quotas = {name: self.quota(name) for name in self.units}
        right, fair = (lambda v: self._entitled(job, v, quotas)), (lambda v: self._fair(job, v, shares))
        spare, own = self._spare(job), self._own(job)
        bounded = {id(bound): self._over(job, bound) for bound in (quotas, shares)}
        rules: list[tuple[list[PlainJob], Callable[[Sequence[PlainJob]], bool]]] = [(spare, lambda _: True)]
        for bound, allowed in ((quotas, right), (shares, fair)) if self.counted() else ():
            others = bounded[id(bound)]
            rules += [([*spare, *others], allowed), ([*spare, *others, *own], allowed)]
        rules.append(([*spare, *own], lambda _: True))
        for candidates, allowed in rules[-1:] if barred else rules:
            sets = [each for each in self._minimal(job, candidates, kept) if allowed(each)]
            if sets:
                return min(sets, key=lambda each: self.measure(job, each, shares))
        return None

    def _minimal(
        self, job: PlainJob, candidates: Sequence[PlainJob], kept: Mapping[str, int]
    ) -> Iterator[tuple[PlainJob, ...]]:
        found: list[set[PlainJob]] = []
        for count in range(1, len(set(candidates)) + 1):
            for each in combinations(dict.fromkeys(candidates), count):
                enough = self.seats(job, self.free(each, kept)) is not None and not self.barred(job, each)
                if enough and not any(smaller <= set(each) for smaller in found):
                    found.append(set(each))
                    yield each

    def _is_protected(self, job: PlainJob, least: int) -> bool:
        return job.started_at + least * (1, 2, 4)[min(job.evictions, 2)] > self.now

    def _spare(self, job: PlainJob) -> list[PlainJob]:
        return [] if job.job_class == "spare" else [each for each in self.running if each.job_class == "spare"]

    def _own(self, job: PlainJob) -> list[PlainJob]:
        least = self.units[job.project].min_runtime_within
        own = (each for each in self.running if each.project == job.project and each.job_class == "preemptible")
        return [each for each in own if each.standing > job.standing and not self._is_protected(each, least)]

    def _over(self, job: PlainJob, bound: Mapping[str, int]) -> list[PlainJob]:
        """Attempts of other projects whose side is over its bound."""
        if job.job_class == "spare":
            return []
        others = (each for each in self.running if each.project != job.project and each.job_class == "preemptible")
        return [
            each
            for each in others
            if self.held(side := self._side(job, each)) > max(bound[side], self.quota(side))
            and not self._is_protected(each, self.units[each.project].min_runtime)
        ]

    def _side(self, job: PlainJob, victim: PlainJob) -> str:
        """The child of the unit that both share, on the victim's side."""
        return [name for name in self.line(victim.project) if name not in self.line(job.project)][-1]

    def _inside(self, unit: str, jobs: Sequence[PlainJob]) -> list[int]:
        return [each.size for each in jobs if unit in self.line(each.project)]

    def _entitled(self, job: PlainJob, victims: Sequence[PlainJob], bound: Mapping[str, int]) -> bool:
        for victim in victims:
            if victim.job_class == "spare" or victim.project == job.project:
                continue
            side = self._side(job, victim)
            taken = self._inside(side, [each for each in victims if each.job_class != "spare"])
            if self.held(side) - sum(taken) + max(taken) <= max(bound[side], self.quota(side)):
                return False  # it was not over its bound any more before the last one
            for name in (name for name in self.line(job.project) if name not in self.line(victim.project)):
                if self.held(name) - sum(self._inside(name, victims)) + job.size > bound[name]:
                    return False
        return True

    def _fair(self, job: PlainJob, victims: Sequence[PlainJob], shares: Mapping[str, int]) -> bool:
        def lacking(above: str, *, after: bool) -> int:
            total = 0
            for unit in self.below(above):
                gained = job.size if unit.name in self.line(job.project) else 0
                change = gained - sum(self._inside(unit.name, victims)) if after else 0
                total += max(0, shares[unit.name] - self.held(unit.name) - change)
            return total

        others = [each for each in victims if each.job_class != "spare" and each.project != job.project]
        commons = {self.units[self._side(job, each)].above for each in others}
        return self._entitled(job, victims, shares) and all(
            lacking(above, after=True) < lacking(above, after=False) for above in commons
        )

    def measure(self, job: PlainJob, victims: Sequence[PlainJob], shares: Mapping[str, int]) -> tuple[object, ...]:
        sides = {self._side(job, each) for each in victims if each.project != job.project}
        after = {side: self.held(side) - sum(self._inside(side, victims)) for side in sides}
        return (
            sum(max(0, self.quota(side) - after[side]) for side in sides),
            sum(max(0, shares[side] - after[side]) for side in sides),
            max((self.units[side].rank for side in sides), default=0),
            max(map(self._level, victims)),
            sum(each.size * (self.now - (each.saved_at or each.started_at) + 60) for each in victims),
            len(victims),
            sorted((-each.started_at, -each.sequence) for each in victims),
        )

    def _level(self, victim: PlainJob) -> int:
        own = (each for each in self.running if each.project == victim.project and each.job_class == "preemptible")
        return len({each.priority for each in own if each.priority < victim.priority})
