"""The search for victims: a few good sets in bounded time, of which the one with the least measure counts.

Where few gangs may go, all sets of them are tried. Otherwise there are three searches: one gang that suffices; gangs by
their cost for each execution that gets room; and node by node, the cheapest gangs that make room for one more there.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from coordinator.core.scheduling.eviction.entitlement import EvictionRule, allows, inside, is_over, side_of
from coordinator.core.scheduling.eviction.gangs import RoomSeeker, RunningGang, Seats
from coordinator.core.scheduling.eviction.measure import lost_work, measure
from coordinator.core.sharing.standing import Standing
from muster.domain.ids import NodeId
from muster.domain.jobs.job_class import JobClass

MOST_CANDIDATES = 256
"""Gangs that one search looks at."""
LEAST_CANDIDATES = 32
"""Gangs that the dearer searches look at, unless more executions than half of that find no seat."""
MOST_SINGLES = 8
"""Single gangs that suffice and are compared."""
FEW_CANDIDATES = 8
"""Gangs of which all sets are tried."""

Victims = tuple[RunningGang, ...]


class VictimSearch:
    """The search of one job under one rule; `candidates` are the gangs that the rule opens to it."""

    def __init__(
        self,
        seeker: RoomSeeker,
        seats: Seats,
        rule: EvictionRule,
        candidates: Sequence[RunningGang],
        few: int = FEW_CANDIDATES,
    ) -> None:
        """`few`: so many candidates are few enough to try all sets of them."""
        self._seeker = seeker
        self._seats = seats
        self._rule = rule
        self._candidates = sorted(candidates, key=_cheapest_first)[:MOST_CANDIDATES]
        self._few = few

    def best(self) -> Victims | None:
        """The best set that was found, which is minimal and allowed; None: none was."""
        if not self._candidates or not self._may_suffice(self._candidates):
            return None
        found = [each for each in self._sets() if allows(self._rule, self._seeker, each)]
        for victims in sorted(found, key=lambda each: measure(self._seeker, each)):
            if self._seats.hold(victims):
                return victims
        return None

    def _sets(self) -> Iterator[Victims]:
        if len(self._candidates) <= self._few:
            yield from self._all_sets()
            return
        yield from self._singles()
        self._candidates = self._near_enough()
        for wanted in (self._by_cost, self._by_node):
            victims = wanted()
            if victims is not None:
                yield self._minimal(victims)

    def _may_suffice(self, gangs: Sequence[RunningGang]) -> bool:
        """Whether all executions may find seats, and the terms that bar the job are lifted."""
        if self._seats.missing > 0 and self._seats.gain(gangs) < self._seats.missing:
            return False
        return self._seeker.lift is None or allows(self._rule, self._seeker, gangs)

    def _suffices(self, gangs: Sequence[RunningGang]) -> bool:
        return self._may_suffice(gangs) and self._seats.hold(gangs)

    def _all_sets(self) -> Iterator[Victims]:
        """Every minimal set."""
        found: list[set[RunningGang]] = []
        for count in range(1, len(self._candidates) + 1):
            for victims in combinations(self._candidates, count):
                chosen = set(victims)
                if not any(each <= chosen for each in found) and self._suffices(victims):
                    found.append(chosen)
                    yield victims

    def _singles(self) -> Iterator[Victims]:
        found = 0
        for gang in self._candidates:
            if found == MOST_SINGLES:
                return
            if self._suffices((gang,)):
                found += 1
                yield (gang,)

    def _near_enough(self) -> list[RunningGang]:
        """The candidates with the least cost for each execution, a few times as many as may be needed."""
        most = max(LEAST_CANDIDATES, 2 * self._seats.missing)
        if len(self._candidates) <= most:
            return self._candidates
        kept = set(sorted(self._candidates, key=self._cost)[:most])
        return [gang for gang in self._candidates if gang in kept]

    def _cost(self, gang: RunningGang) -> tuple[bool, int, int]:
        gain = self._seats.gain((gang,))
        return (gain == 0, gang.level, lost_work(gang) // max(1, gain))

    def _by_cost(self) -> Victims | None:
        """Gangs by their cost for each execution that gets room through them alone."""
        return self._taken(sorted(self._candidates, key=self._cost))

    def _by_node(self) -> Victims | None:
        """The cheapest gangs on a node that make room for another execution there, node by node."""
        bundles: list[tuple[int, NodeId, Victims]] = []
        nodes: dict[NodeId, list[RunningGang]] = {}
        for gang in self._candidates:
            for node in gang.freed:
                nodes.setdefault(node, []).append(gang)
        for node, gangs in sorted(nodes.items()):
            bundle: list[RunningGang] = []
            for gang in gangs:
                bundle.append(gang)
                if self._seats.gain(bundle) > 0:
                    needed = self._without_needless(bundle, lambda left: self._seats.gain(left) > 0)
                    bundles.append((sum(map(lost_work, needed)), node, needed))
                    break
        in_turn = [gang for _, _, bundle in sorted(bundles, key=lambda each: each[:2]) for gang in bundle]
        rest = [gang for gang in self._candidates if gang not in in_turn]
        return self._taken([*dict.fromkeys(in_turn), *rest])

    def _taken(self, in_turn: Sequence[RunningGang]) -> Victims | None:
        """The first gangs that suffice; no more are taken from a unit than what it has too much."""
        taken: list[RunningGang] = []
        of_side: dict[Standing, list[RunningGang]] = {}
        for gang in in_turn:
            side = self._side(gang)
            if side is not None and self._rule.bound is not None:
                before = inside(side, of_side.get(side, ()))
                if not is_over(side, self._rule.bound, self._seeker.counted, before):
                    continue
                of_side.setdefault(side, []).append(gang)
            taken.append(gang)
            if self._suffices(taken) and allows(self._rule, self._seeker, taken):
                return tuple(taken)
        return None

    def _side(self, gang: RunningGang) -> Standing | None:
        if gang.job_class is JobClass.SPARE or gang.path[-1] is self._seeker.project:
            return None
        return side_of(self._seeker, gang)

    def _minimal(self, victims: Victims) -> Victims:
        """The victims without those that are not needed, the dearest of these first."""
        return self._without_needless(victims, self._suffices)

    def _without_needless(self, victims: Sequence[RunningGang], suffices: Callable[[Victims], bool]) -> Victims:
        left = tuple(victims)
        for gang in sorted(victims, key=_cheapest_first, reverse=True):
            without = tuple(each for each in left if each is not gang)
            if without and suffices(without):
                left = without
        return left


def _cheapest_first(gang: RunningGang) -> tuple[bool, int, int, int]:
    return (gang.job_class is not JobClass.SPARE, gang.level, lost_work(gang), -gang.order)
