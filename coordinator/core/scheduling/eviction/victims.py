"""The search for victims: a few good sets in bounded time, of which the one with the least measure counts.

Where few gangs may go, all sets of them are tried. Otherwise there are three searches: one gang that suffices; gangs by
their cost for each execution that gets room; and node by node, the cheapest gangs that make room for one more there.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import combinations

from coordinator.core.scheduling.eviction.entitlement import EvictionRule, allows, is_of_others, is_over, side_of
from coordinator.core.scheduling.eviction.gangs import RoomSeeker, RunningGang, SeatCount, Seats
from coordinator.core.scheduling.eviction.measure import measure
from coordinator.core.sharing.standing import Standing
from muster.domain.fleet.quota import Amounts
from muster.domain.ids import NodeId
from muster.domain.jobs.job_class import JobClass

MOST_CANDIDATES = 256
"""Gangs that one search looks at."""
LEAST_CANDIDATES = 32
"""Gangs that are looked at first, where they have enough; the others are looked at only if these do not do."""
ENOUGH = 2
"""How many times as much as the job the gangs have that are looked at first."""
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
        self._gains: dict[RunningGang, int] = {}
        """How many more executions fit through one gang alone."""

    def best(self) -> Victims | None:
        """The best set that was found, which is minimal and allowed; None: none was."""
        everybody, self._candidates = self._candidates, self._near_enough()
        best = self._best()
        if best is None and len(self._candidates) < len(everybody):
            self._candidates = everybody
            best = self._best()
        return best

    @property
    def finds_any(self) -> bool:
        """Whether `best` finds a set; costs less, as the first one will do."""
        everybody, self._candidates = self._candidates, self._near_enough()
        if self._has_any():
            return True
        if len(self._candidates) < len(everybody):
            self._candidates = everybody
            return self._has_any()
        return False

    def _has_any(self) -> bool:
        allowed = (each for each in self._sets() if allows(self._rule, self._seeker, each))
        return self._all_may_suffice() and any(map(self._seats.hold, allowed))

    def _best(self) -> Victims | None:
        if not self._all_may_suffice():
            return None
        found = [each for each in self._sets() if allows(self._rule, self._seeker, each)]
        for victims in sorted(found, key=lambda each: measure(self._seeker, each)) if len(found) > 1 else found:
            if self._seats.hold(victims):
                return victims
        return None

    def _sets(self) -> Iterator[Victims]:
        if len(self._candidates) <= self._few:
            yield from self._all_sets()
            return
        yield from self._singles()
        for wanted in (self._by_cost, self._by_node):
            victims = wanted()
            if victims is not None:
                # Without those that are not needed, the dearest of these first.
                count = SeatCount(self._seats, self._gains, victims)
                yield self._without_needless(victims, count, self._suffices)

    def _may_suffice(self, gangs: Collection[RunningGang], count: SeatCount) -> bool:
        """Whether all executions may find seats, and the terms that bar the job are lifted."""
        if self._seats.missing > 0 and count.gain < self._seats.missing:
            return False
        return self._seeker.lift is None or allows(self._rule, self._seeker, tuple(gangs))

    def _suffices(self, gangs: Collection[RunningGang], count: SeatCount) -> bool:
        return self._may_suffice(gangs, count) and (self._seats.counts or self._seats.hold(tuple(gangs)))

    def _all_sets(self) -> Iterator[Victims]:
        """Every minimal set."""
        found: list[set[RunningGang]] = []
        for count in range(1, len(self._candidates) + 1):
            for victims in combinations(self._candidates, count):
                chosen = set(victims)
                if any(each <= chosen for each in found):
                    continue
                if self._suffices(victims, SeatCount(self._seats, self._gains, victims)):
                    found.append(chosen)
                    yield victims

    def _singles(self) -> Iterator[Victims]:
        found = 0
        for gang in self._candidates:
            if found == MOST_SINGLES:
                return
            if self._gain(gang) >= self._seats.missing and self._suffices(
                (gang,), SeatCount(self._seats, self._gains, (gang,))
            ):
                found += 1
                yield (gang,)

    def _near_enough(self) -> list[RunningGang]:
        """Candidates that have a few times as much as the job: those that cost least, as a whole or for their size."""
        if len(self._candidates) <= LEAST_CANDIDATES:
            return self._candidates
        kept = {*self._some(self._candidates), *self._some(sorted(self._candidates, key=_cheapest_for_its_size))}
        return [gang for gang in self._candidates if gang in kept]

    def _some(self, in_turn: Sequence[RunningGang]) -> Iterator[RunningGang]:
        """The first ones, until they have enough."""
        enough = ENOUGH * _amount(self._seeker.size)
        for number, gang in enumerate(in_turn, start=1):
            yield gang
            enough -= _amount(gang.size)
            if enough <= 0 and number >= LEAST_CANDIDATES // 2:
                return

    def _all_may_suffice(self) -> bool:
        """Whether all candidates together may make room, and lift what bars the job."""
        count = SeatCount(self._seats, self._gains)
        for gang in self._candidates:
            count.add(gang)
            if count.gain >= self._seats.missing:
                return self._seeker.lift is None or allows(self._rule, self._seeker, tuple(self._candidates))
        return False

    def _gain(self, gang: RunningGang) -> int:
        """How many more executions fit once this gang alone has gone."""
        gain = self._gains.get(gang)
        return SeatCount(self._seats, self._gains, (gang,)).gain if gain is None else gain

    def _cost(self, gang: RunningGang) -> tuple[bool, int, int]:
        gain = self._gain(gang)
        return (gain == 0, gang.level, gang.lost // max(1, gain))

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
            needed = self._bundle(gangs)
            if needed:
                bundles.append((sum(gang.lost for gang in needed), node, needed))
        in_turn = [gang for _, _, bundle in sorted(bundles, key=lambda each: each[:2]) for gang in bundle]
        return self._taken(dict.fromkeys((*in_turn, *self._candidates)))

    def _bundle(self, gangs: Sequence[RunningGang]) -> Victims:
        """The first gangs of a node that make room for an execution, without those that are not needed; or none."""
        if self._gain(gangs[0]) > 0:
            return (gangs[0],)
        count, bundle = SeatCount(self._seats, self._gains), []
        for gang in gangs:
            count.add(gang)
            bundle.append(gang)
            if count.gain > 0:
                return self._without_needless(bundle, count, lambda _, left: left.gain > 0)
        return ()

    def _taken(self, in_turn: Iterable[RunningGang]) -> Victims | None:
        """The first gangs that suffice; no more are taken from a unit than what it has too much."""
        taken: dict[RunningGang, None] = {}
        count, of_side = SeatCount(self._seats, self._gains), dict[Standing, list[int]]()
        for gang in in_turn:
            if self._rule.bound is not None and is_of_others(self._seeker, gang):
                side = side_of(self._seeker, gang)
                before = of_side.setdefault(side, [0, 0, 0])
                if not is_over(side, self._rule.bound, self._seeker.counted, before):
                    continue
                of_side[side] = [sum(each) for each in zip(before, gang.size, strict=True)]
            taken[gang] = None
            count.add(gang)
            if self._suffices(taken, count) and allows(self._rule, self._seeker, tuple(taken)):
                return tuple(taken)
        return None

    def _without_needless(
        self,
        victims: Sequence[RunningGang],
        count: SeatCount,
        suffices: Callable[[Collection[RunningGang], SeatCount], bool],
    ) -> Victims:
        left = dict.fromkeys(victims)
        for gang in sorted(victims, key=_cheapest_first, reverse=True):
            if len(left) == 1:
                break
            del left[gang]
            count.remove(gang)
            if not suffices(left, count):
                left[gang] = None
                count.add(gang)
        return tuple(left)


def _cheapest_for_its_size(gang: RunningGang) -> tuple[bool, int, int]:
    return (gang.job_class is not JobClass.SPARE, gang.level, gang.lost * 1000 // max(1, _amount(gang.size)))


def _amount(size: Amounts) -> int:
    return size.gpus or size.cpus


def _cheapest_first(gang: RunningGang) -> tuple[bool, int, int, int]:
    return (gang.job_class is not JobClass.SPARE, gang.level, gang.lost, -gang.order)
