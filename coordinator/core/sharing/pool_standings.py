"""One pool with what every unit holds there, and what each should have of it."""

from collections.abc import Iterable

from coordinator.core.sharing.standing import PLACES, Entitlement, Standing, Tally
from coordinator.core.sharing.unit import Unit
from muster.domain.fleet.quota import UNLIMITED_AMOUNT, Amounts

Path = tuple[Standing, ...]
"""The standings of a project in one pool, from its department down."""


class PoolStandings:
    """What every unit holds in one pool."""

    def __init__(self, pool: str, units: Iterable[Unit]) -> None:
        self.pool = pool
        self.root = Standing(pool, None, Entitlement())
        """The pool as a whole; its share is what the pool has."""
        self.counted: tuple[int, ...] = ()
        """The resources that count: those of which some unit was told how much it is promised."""
        self._standings: dict[str, Standing] = {}
        self._paths: dict[str, Path] = {}
        self._promised: dict[str, tuple[int, ...]] = {}
        """The resources of which a unit was told how much it is promised; of no unit that was told nothing."""
        for unit in units:
            self.take_terms(unit)

    def path(self, unit: Unit) -> Path:
        """The standings of a unit, from its department down."""
        path = self._paths.get(unit.name)
        if path is None:
            path = self._paths[unit.name] = tuple(map(self._standing, reversed(list(unit.line()))))
        return path

    def get(self, unit: str) -> Standing | None:
        """The standing of a unit; None: nothing was counted of it yet."""
        return self._standings.get(unit)

    def entitlement(self, unit: Unit) -> Entitlement:
        """What a unit may have, with all that it inherits."""
        standing = self._standings.get(unit.name)
        return self._work_out(unit) if standing is None else standing.entitlement

    def count(self, unit: Unit, tally: Tally, amounts: Amounts, sign: int) -> None:
        """Count amounts for a unit, or no longer."""
        path = self.path(unit)
        if tally is Tally.HELD or tally is Tally.WAITING:
            grows = tally is Tally.WAITING and sign > 0
            wanted = [place for place in self.counted if amounts[place]]
            for standing in path:
                if standing.above is not None and not (grows and all(map(standing.is_hungry, wanted))):
                    standing.above.stir()
        path[-1].add(tally, amounts, sign)

    def set_capacity(self, capacity: Amounts) -> None:
        """Take what the pool has now."""
        for place, amount in enumerate(capacity):
            self.root.give_share(place, amount)

    def share_out(self) -> None:
        """Have the shares as they are now; costs nothing unless something has changed."""
        self.root.share_out(self.counted)

    def take_terms(self, unit: Unit) -> None:
        """Work out anew what a unit may have and what counts, as its terms, or those of its projects, are others."""
        if (standing := self._standings.get(unit.name)) is not None:
            standing.entitle(self._work_out(unit))
        quota = unit.terms.in_pool(self.pool).quota
        promised = tuple(place for place in PLACES if (said := quota[place]) is not None and said < UNLIMITED_AMOUNT)
        self._promise(unit.name, promised)

    def _promise(self, unit: str, places: tuple[int, ...]) -> None:
        """Note the resources of which a unit was told how much it is promised."""
        if places == self._promised.get(unit, ()):
            return
        if places:
            self._promised[unit] = places
        else:
            del self._promised[unit]
        counted = tuple(sorted({place for each in self._promised.values() for place in each}))
        if counted != self.counted:
            self.counted = counted
            self.root.stir_all()
            for each in self._standings.values():
                each.touch()

    def hang(self, unit: Unit, above: Unit | None) -> None:
        """Count a unit in another department from now on, or in none."""
        standing = self._standings.get(unit.name)
        if standing is not None:
            standing.hang_under(self.root if above is None else self._standing(above))
        self._paths.clear()

    def forget(self, unit: Unit) -> None:
        """Forget a unit of which nothing is counted."""
        standing = self._standings.pop(unit.name, None)
        if standing is not None:
            assert standing.idle, f"{unit.name} still counts for something in {self.pool}"
            assert standing.above is not None
            standing.above.leave(standing)
        self._promise(unit.name, ())
        self._paths.clear()

    def _work_out(self, unit: Unit) -> Entitlement:
        terms = unit.terms.in_pool(self.pool)
        return Entitlement(
            quota=unit.quota(self.pool),
            limit=terms.limit.amounts(UNLIMITED_AMOUNT),
            weight=1 if terms.weight is None else terms.weight,
            rank=terms.rank or 0,
        )

    def _standing(self, unit: Unit) -> Standing:
        standing = self._standings.get(unit.name)
        if standing is None:
            above = self.root if unit.above is None else self._standing(unit.above)
            standing = self._standings[unit.name] = Standing(unit.name, above, self._work_out(unit))
        return standing
