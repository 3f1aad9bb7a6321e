"""The tree of units: the fleet, its departments, its projects; what each holds in each pool, and its share of it."""

from collections.abc import Collection, Iterator, Sequence

from coordinator.core.sharing.pool_standings import Path, PoolStandings
from coordinator.core.sharing.standing import Entitlement, Standing, Tally
from coordinator.core.sharing.unit import Unit
from muster.domain.fleet.quota import WITHOUT_TERMS, Amounts, QuotaUnit, UnitKind


class Units:
    """Departments and projects; whatever is counted costs as many additions as the tree is deep."""

    def __init__(self) -> None:
        self._units: dict[str, Unit] = {}
        self._pools: dict[str, PoolStandings] = {}
        self._eased = 0
        self._touched: dict[str, None] = {}
        """Units of which something is other than before that counts in all pools."""
        self._with_terms: dict[str, None] = {}

    # the tree

    def __iter__(self) -> Iterator[Unit]:
        """All units by name."""
        return iter(sorted(self._units.values(), key=lambda unit: unit.name))

    def __contains__(self, name: object) -> bool:
        return name in self._units

    def get(self, name: str, kind: UnitKind = UnitKind.PROJECT) -> Unit:
        """A unit by name; one that was never put has no terms, and is a project if nothing else is said."""
        unit = self._units.get(name)
        if unit is None:
            unit = self._units[name] = Unit(name, kind)
        return unit

    def put(self, after: QuotaUnit) -> None:
        """Take a unit into the tree, or its terms and its department as they are now."""
        unit = self.get(after.name, after.kind)
        above = self.get(after.department, UnitKind.DEPARTMENT) if after.department else None
        departments = {each.name: each for each in (unit.above, above) if each is not None}
        moved = unit.above is not above
        if moved:
            for pool in self._pools.values():
                pool.hang(unit, above)
            unit.hang_under(above)
        if unit.take(after) or moved:
            self._take_terms(unit, *departments.values())

    def remove(self, name: str) -> None:
        """Forget a unit that holds nothing, has no jobs and no units below it."""
        unit = self._units.pop(name)
        department = unit.above
        for pool in self._pools.values():
            pool.forget(unit)
        self._with_terms.pop(name, None)
        if department is not None:
            department.leave(unit)
        self._take_terms(*(() if department is None else (department,)))

    # what is counted

    def count(self, project: str, pool: str, tally: Tally, amounts: Amounts, sign: int = 1) -> None:
        """Count amounts for a project in a pool, or no longer."""
        self.in_pool(pool).count(self.get(project), tally, amounts, sign)
        if tally is not Tally.WAITING and (sign < 0 or tally is Tally.LEAVING):
            self._eased += 1

    def count_jobs(self, project: str, owner: str, *, queued: int = 0, running: int = 0) -> None:
        """Count so many more jobs of a project; what they hold is counted by itself."""
        self.get(project).count_jobs(owner, queued=queued, running=running)
        if running < 0:
            self._eased += 1

    def touch(self, name: str) -> None:
        """Note that something of a unit is other than before, which decides about the jobs of its projects."""
        self._touched[name] = None

    # what comes of it

    @property
    def eased(self) -> int:
        """Grows whenever a job that was barred may no longer be: less is held, or terms are others."""
        return self._eased

    @property
    def has_terms(self) -> bool:
        """Whether anything was said of any unit, so that more than priority and first come decides."""
        return bool(self._with_terms)

    def take_touched(self) -> Collection[str]:
        """The projects whose jobs may have another place, or be barred otherwise, than when this was asked last."""
        touched, self._touched = self._touched, {}
        for pool in self._pools.values():
            if pool.root.touched:
                touched.update(pool.root.touched)
                pool.root.touched.clear()
        if not touched:
            return ()
        found: dict[str, None] = {}
        for name in touched:
            unit = self._units.get(name)
            found.update(dict.fromkeys(unit.below if unit is not None and unit.below else (name,)))
        return found

    def in_pool(self, pool: str) -> PoolStandings:
        """What every unit holds in a pool."""
        known = self._pools.get(pool)
        if known is None:
            known = self._pools[pool] = PoolStandings(pool, self._units.values())
        return known

    @property
    def pools(self) -> Sequence[str]:
        """Pools in which something was counted, by name."""
        return sorted(self._pools)

    def counted(self, pool: str) -> tuple[int, ...]:
        """The resources that count in a pool: those of which some unit was told how much it is promised."""
        return self.in_pool(pool).counted

    def path(self, project: str, pool: str) -> Path:
        """The standings of a project in a pool, from its department down."""
        return self.in_pool(pool).path(self.get(project))

    def root(self, pool: str) -> Standing:
        """The pool as a whole: what is held of it, and what it has as its share."""
        return self.in_pool(pool).root

    def share_out(self, pool: str) -> None:
        """Have the shares of a pool as they are now; costs nothing unless something has changed."""
        self.in_pool(pool).share_out()

    def entitlement(self, name: str, pool: str) -> Entitlement:
        """What a unit may have in a pool, with all that it inherits."""
        return self.in_pool(pool).entitlement(self.get(name))

    # inside

    def _take_terms(self, *changed: Unit) -> None:
        """Hear that these have other terms, or other projects than before."""
        self._eased += 1
        for unit in changed:
            self.touch(unit.name)
            if unit.terms != WITHOUT_TERMS:
                self._with_terms[unit.name] = None
            else:
                self._with_terms.pop(unit.name, None)
            for pool in self._pools.values():
                pool.take_terms(unit)
