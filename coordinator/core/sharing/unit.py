"""One department or project in the tree, with its terms and the number of its jobs."""

from collections.abc import Iterator

from muster.domain.fleet.quota import (
    NO_AMOUNTS,
    UNLIMITED_AMOUNT,
    WITHOUT_TERMS,
    Amounts,
    QuotaUnit,
    UnitKind,
    UnitTerms,
)
from muster.domain.jobs.job import DEFAULT_PROJECT

UNIT_LEVELS = 2
"""Departments, and projects below them."""


class Unit:
    """A department or a project; its jobs are counted in all pools together, with those of the units below it."""

    def __init__(self, name: str, kind: UnitKind) -> None:
        self.name = name
        self.kind = kind
        self.terms: UnitTerms = WITHOUT_TERMS
        self.above: Unit | None = None
        """The department; None: the fleet itself."""
        self.below: dict[str, Unit] = {}
        self.queued = 0
        """Jobs that are queued."""
        self.running = 0
        """Jobs that hold something."""
        self.running_of: dict[str, int] = {}
        """Jobs that hold something, by the account that submitted them."""

    # reading

    def line(self) -> "Iterator[Unit]":
        """The unit itself, then those above it."""
        unit: Unit | None = self
        while unit is not None:
            yield unit
            unit = unit.above

    def quota(self, pool: str) -> Amounts:
        """What is promised to it; to a department of which nothing is said: what its projects are promised."""
        said = self.terms.in_pool(pool).quota
        if self.kind is UnitKind.PROJECT:
            return said.amounts(UNLIMITED_AMOUNT if self.name == DEFAULT_PROJECT else 0)
        if None not in said:
            return said.amounts(0)
        below = NO_AMOUNTS
        for unit in self.below.values():
            below = below.plus(unit.quota(pool))
        return Amounts(
            *(min(UNLIMITED_AMOUNT, sums) if own is None else own for own, sums in zip(said, below, strict=True))
        )

    # changing

    def take(self, unit: QuotaUnit) -> bool:
        """Take over its kind and its terms; whether they are others than before."""
        if (self.kind, self.terms) == (unit.kind, unit.terms):
            return False
        self.kind, self.terms = unit.kind, unit.terms
        return True

    def count_jobs(self, owner: str, *, queued: int = 0, running: int = 0) -> None:
        """Count so many more jobs of an account, here and in the units above."""
        for unit in self.line():
            unit.add_jobs(owner, queued, running)

    def add_jobs(self, owner: str, queued: int, running: int) -> None:
        """Count so many more jobs of an account, here alone."""
        self.queued += queued
        self.running += running
        if running:
            self.running_of[owner] = self.running_of.get(owner, 0) + running
            if not self.running_of[owner]:
                del self.running_of[owner]

    def join(self, unit: "Unit") -> None:
        """Have another one below it; its jobs are counted here by whoever hangs it here."""
        self.below[unit.name] = unit

    def leave(self, unit: "Unit") -> None:
        """Have one below it no longer."""
        del self.below[unit.name]

    def hang_under(self, above: "Unit | None") -> None:
        """Count in another department from now on, or in none."""
        for department, sign in ((self.above, -1), (above, 1)):
            if department is not None:
                department.count_jobs("", queued=sign * self.queued)
                for owner, running in self.running_of.items():
                    department.count_jobs(owner, running=sign * running)
        if self.above is not None:
            self.above.leave(self)
        if above is not None:
            above.join(self)
        self.above = above
