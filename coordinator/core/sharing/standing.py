"""What one department or project holds and wants in one pool, and what it may have there."""

from enum import StrEnum
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

    # changing

    def add(self, tally: Tally, amounts: Amounts, sign: int = 1) -> None:
        """Count this much more, or less, here and in all units above."""
        gpus, cpus, memory = amounts
        standing: Standing | None = self
        while standing is not None:
            counted = getattr(standing, tally)
            counted[0] += gpus * sign
            counted[1] += cpus * sign
            counted[2] += memory * sign
            standing = standing.above

    def entitle(self, entitlement: Entitlement) -> None:
        """Take what it may have from now on."""
        self.entitlement = entitlement

    def give_share(self, place: int, amount: int) -> None:
        """Take what it should have of a resource."""
        self.share[place] = amount

    def share_out(self, place: int) -> None:
        """Divide its share of a resource among the units below it, and theirs among those below them."""
        below = list(self.below.values())
        claimants = []
        for each in below:
            quota, limit, weight, rank = each.entitlement
            wanted = min(limit[place], each.held[place] + each.waiting[place])
            claimants.append(Claimant(each.name, wanted, quota[place], weight, rank))
        for each, part in zip(below, divide(self.share[place], claimants, WHOLE_LOTS[place]), strict=True):
            each.give_share(place, part)
            if each.below:
                each.share_out(place)

    def join(self, standing: "Standing") -> None:
        """Have another one below it; what that counts is counted here by whoever hangs it here."""
        self.below[standing.name] = standing

    def leave(self, standing: "Standing") -> None:
        """Have one below it no longer."""
        del self.below[standing.name]

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
