"""What one department or project holds and wants in one pool, and what it may have there."""

from collections.abc import Sequence
from enum import IntEnum, StrEnum
from typing import NamedTuple

from coordinator.core.sharing.division import Claimant, divide
from muster.domain.fleet.quota import NO_AMOUNTS, RESOURCES, WHOLE_LOTS, WITHOUT_BOUNDS, Amounts

PLACES = range(len(RESOURCES))
"""The place of each resource in amounts."""


class Entitlement(NamedTuple):
    """What a unit may have in a pool, with all that it inherits."""

    quota: Amounts = NO_AMOUNTS
    limit: Amounts = WITHOUT_BOUNDS
    weight: int = 1
    rank: int = 0


class Tally(StrEnum):
    """What is counted of a unit."""

    HELD = "held"  #: what executions have, from their placement until their end is confirmed
    LEAVING = "leaving"  #: the part of it whose executions were ordered to stop
    CLAIMED = "claimed"  #: what is kept for attempts that are to be placed
    FIXED = "fixed"  #: the part of held and claimed that is of guaranteed jobs
    WAITING = "waiting"  #: what queued jobs want


class DueDivision(IntEnum):
    """What is to be divided anew before shares can be relied on."""

    NOTHING = 0
    BELOW = 1  #: the share of a unit further down
    OWN = 2  #: its own share


class Standing:
    """One unit in one pool; each sum is of all units below it as well."""

    def __init__(self, name: str, above: "Standing | None", entitlement: Entitlement) -> None:
        self.name = name
        self.above = above
        """The standing of the unit above it; None: this is the whole pool."""
        self.below: dict[str, Standing] = {}
        self.entitlement = entitlement
        self.held = [0, 0, 0]
        self.leaving = [0, 0, 0]
        self.claimed = [0, 0, 0]
        self.fixed = [0, 0, 0]
        self.waiting = [0, 0, 0]
        self.share = [0, 0, 0]
        """What it should have now, as of the last time that its pool was shared out."""
        self.touched: dict[str, None] = {} if above is None else above.touched
        """Units of the pool whose load, share or entitlement is other than when somebody took them from here."""
        self.due = DueDivision.OWN
        """What is to be divided anew of its share, and of those below it."""
        if above is not None:
            above.join(self)

    # reading

    def load(self, place: int) -> int:
        """What counts as taken of a resource."""
        return self.held[place] - self.leaving[place] + self.claimed[place]

    @property
    def idle(self) -> bool:
        """Whether nothing is counted here."""
        return not any(map(any, (self.held, self.leaving, self.claimed, self.fixed, self.waiting)))

    def is_hungry(self, place: int) -> bool:
        """Whether it wants more than its quota and gets less than it wants, as of the last time that was shared out.

        Whatever more it wants changes no share then: `divide` never comes to the end of what it wants.
        """
        wanted = self._wanted(place)
        return wanted > self.share[place] and wanted >= self.entitlement.quota[place]

    def _wanted(self, place: int) -> int:
        return min(self.entitlement.limit[place], self.held[place] + self.waiting[place])

    # changing

    def add(self, tally: Tally, amounts: Amounts, sign: int = 1) -> None:
        """Count this much more, or less, here and in all units above; shares are stirred by who counts."""
        gpus, cpus, memory = amounts
        standing: Standing | None = self
        while standing is not None:
            counted = getattr(standing, tally)
            counted[0] += gpus * sign
            counted[1] += cpus * sign
            counted[2] += memory * sign
            if tally is not Tally.WAITING:  # which decides about shares alone
                standing.touch()
            standing = standing.above

    def entitle(self, entitlement: Entitlement) -> None:
        """Take what it may have from now on."""
        if self.entitlement != entitlement:
            self.entitlement = entitlement
            self.touch()
            if self.above is not None:
                self.above.stir()

    def give_share(self, place: int, amount: int) -> None:
        """Take what it should have of a resource."""
        if self.share[place] != amount:
            self.share[place] = amount
            self.touch()
            self.stir()

    def touch(self) -> None:
        """Note that its load, share or entitlement is another one; that of a pool decides about nobody's turn."""
        if self.above is not None:
            self.touched[self.name] = None

    def stir(self) -> None:
        """Note that its share is to be divided anew."""
        self.due = DueDivision.OWN
        if self.above is not None:
            self.above.stir_below()

    def stir_below(self) -> None:
        """Note that a share further down is to be divided anew."""
        if self.due is DueDivision.NOTHING:
            self.due = DueDivision.BELOW
            if self.above is not None:
                self.above.stir_below()

    def stir_path(self) -> None:
        """Note that its share is to be divided anew, and those of all units above it."""
        standing: Standing | None = self
        while standing is not None:
            standing.stir()
            standing = standing.above

    def stir_all(self) -> None:
        """Note that its share is to be divided anew, and those of all units below it."""
        self.stir()
        for each in self.below.values():
            each.stir_all()

    def share_out(self, places: Sequence[int]) -> None:
        """Divide its share of these resources among the units below it, and theirs among those below them.

        Where neither its share nor anything below has changed, it is as it was.
        """
        if self.due is DueDivision.NOTHING:
            return
        below = self.below.values()
        for place in places if self.due is DueDivision.OWN else ():
            claimants = [each.claimant(place) for each in below]
            parts = divide(self.share[place], claimants, WHOLE_LOTS[place])
            for each, part in zip(below, parts, strict=True):
                each.give_share(place, part)
        self.due = DueDivision.NOTHING
        for each in below:
            if each.below and each.due is not DueDivision.NOTHING:
                each.share_out(places)

    def claimant(self, place: int) -> Claimant:
        """What it wants of a resource of the unit above."""
        quota, _, weight, rank = self.entitlement
        return Claimant(self.name, self._wanted(place), quota[place], weight, rank)

    def join(self, standing: "Standing") -> None:
        """Have another one below it; what that counts is counted here by whoever hangs it here."""
        self.below[standing.name] = standing
        self.stir_path()

    def leave(self, standing: "Standing") -> None:
        """Have one below it no longer."""
        del self.below[standing.name]
        self.stir_path()

    def hang_under(self, above: "Standing") -> None:
        """Count below another unit from now on, and no longer where it did."""
        assert self.above is not None, "a pool hangs under nothing"
        for tally in Tally:
            amounts = Amounts(*getattr(self, tally))
            self.above.add(tally, amounts, -1)
            above.add(tally, amounts)
        self.above.leave(self)
        above.join(self)
        self.above = above
        self.touch()
