"""The tree of units: the fleet, its departments, its projects; what each holds in each pool, and its share of it."""

from collections.abc import Iterator, Sequence

from coordinator.core.sharing.pool_standings import Path, PoolStandings
from coordinator.core.sharing.standing import Entitlement, Standing, Tally
from coordinator.core.sharing.unit import Unit
from muster.domain.fleet.quota import UNLIMITED_AMOUNT, WITHOUT_TERMS, Amounts, QuotaUnit, UnitKind


class Units:
    """Departments and projects; whatever is counted costs as many additions as the tree is deep."""

    def __init__(self) -> None:
        self._units: dict[str, Unit] = {}
        self._pools: dict[str, PoolStandings] = {}
        self._eased = 0
        self.has_terms = False
        """Whether anything was said of any unit, so that more than priority and first come decides."""

    # the tree

    def __iter__(self) -> Iterator[Unit]:
        """All units by name."""
        return iter(sorted(self._units.values(), key=lambda unit: unit.name))

    def __contains__(self, name: object) -> bool:
        return name in self._units

    def get(self, name: str) -> Unit:
        """A unit by name; one that was never put is a project without terms."""
        return self._get(name, UnitKind.PROJECT)

    def put(self, after: QuotaUnit) -> None:
        """Take a unit into the tree, or its terms and its department as they are now."""
        unit = self._get(after.name, after.kind)
        above = self._get(after.department, UnitKind.DEPARTMENT) if after.department else None
        moved = unit.above is not above
        if moved:
            for pool in self._pools.values():
                pool.hang(unit, above)
            unit.hang_under(above)
        if unit.take(after) or moved:
            self._take_terms()

    def remove(self, name: str) -> None:
        """Forget a unit that holds nothing, has no jobs and no units below it."""
        unit = self._units.pop(name)
        for pool in self._pools.values():
            pool.forget(unit)
        if unit.above is not None:
            unit.above.leave(unit)
        self._take_terms()

    # what is counted

    def count(self, project: str, pool: str, tally: Tally, amounts: Amounts, sign: int = 1) -> None:
        """Count amounts for a project in a pool, or no longer."""
        self.in_pool(pool).count(self.get(project), tally, amounts, sign)
        if tally is not Tally.WAITING and (sign < 0 or tally is Tally.LEAVING):
            self._eased += 1

    def count_jobs(self, project: str, owner: str, *, queued: int = 0, running: int = 0) -> None:
        """Count so many more jobs of a project."""
        self.get(project).count_jobs(owner, queued=queued, running=running)
        if running < 0:
            self._eased += 1

    def set_capacity(self, pool: str, capacity: Amounts) -> None:
        """Take what a pool has now."""
        self.in_pool(pool).set_capacity(capacity)

    # what comes of it

    @property
    def eased(self) -> int:
        """Grows whenever a job that was barred may no longer be: less is held, or terms are others."""
        return self._eased

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

    def is_promised_all(self, project: str, pool: str) -> bool:
        """Whether a project has no quota that could be used up."""
        quota = self.entitlement(project, pool).quota
        return all(quota[place] >= UNLIMITED_AMOUNT for place in self.counted(pool))

    # inside

    def _get(self, name: str, kind: UnitKind) -> Unit:
        unit = self._units.get(name)
        if unit is None:
            unit = self._units[name] = Unit(name, kind)
        return unit

    def _take_terms(self) -> None:
        self._eased += 1
        self.has_terms = any(unit.terms != WITHOUT_TERMS for unit in self._units.values())
        for pool in self._pools.values():
            pool.take_terms(self._units.values())
