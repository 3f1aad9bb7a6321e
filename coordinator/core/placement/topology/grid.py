"""How many executions of a part fit into each domain, and which domains a gang goes to.

A *leaf* has the nodes with one path at the finest level that counts. Bounds of leaves come from bins; nodes of a leaf
are looked at one by one only where these bounds do not tell and the leaf may be needed.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from coordinator.core.placement.candidates import AlikeNodes, Candidates
from coordinator.core.placement.capacity import Key
from coordinator.core.placement.classes.leaf_rooms import LeafRooms
from coordinator.core.placement.labels.domain import Levels, Path, key_of_path, path_of

_Vague = tuple[int, AlikeNodes, Sequence[Key]]
"""What nodes of a group cost, and which of them they are."""
Rank = tuple[int, bool, int, int]
"""Prefers nodes that cost less, a domain that the gang uses already, few leaves, little room left over."""


class Grid:
    """Executions of a part by leaf."""

    def __init__(self, found: Candidates, levels: Levels, price: int | None = None) -> None:
        """`price`: only nodes that cost so much; None: all of them."""
        self._found = found
        self._levels = levels
        self._seats: dict[Path, int] = {}
        """Executions that fit for sure."""
        self._vague: dict[Path, list[_Vague]] = {}
        """Nodes of which the bounds do not tell how many fit."""
        self._prices: dict[Path, list[tuple[int, int]]] = {}
        """What seats cost, and how many cost so much; none of those that cost nothing."""
        self._taken: set[Path] = set()
        """Leaves of which the gang uses a node."""
        capacities = found.available.capacities
        out = (node for node in found.out if node in capacities)
        paths = ((node, path_of(levels, capacities.of(node).labels)) for node in out)
        self._missing = Counter((id(group), path) for node, path in paths for group in capacities.groups_of(node))
        """How many nodes of a group and a leaf are out."""
        self._rooms = self._known_rooms() if price is None else None
        """What is known of all leaves from looks before; None: it must be counted, or is not as it was."""
        if self._rooms is not None:
            self._seats = self._rooms.seats
            return
        for each in found.costs() if price is None else (price,):
            self._take_in(each)

    def most(self, depth: int) -> list[tuple[Path, int]]:
        """The domains of so many levels with the executions that fit there, the most first."""
        rooms = ((domain, self._sum(leaves)) for domain, leaves in self._domains(depth, ()).items())
        return sorted(rooms, key=lambda room: (-room[1], key_of_path(room[0])))

    def least_cost(self, count: int, depth: int) -> int:
        """What so many executions cost at the least in one domain of so many levels; 0 levels: wherever they go."""
        if not self._prices and not self._vague:
            return 0
        if not depth:
            self._sum(list(self._seats))
            return self._cost(list(self._seats), count)
        return min((cost for cost, *_ in self.ranks(count, depth).values()), default=0)

    def best(self, count: int, depth: int, under: Path = ()) -> Path | None:
        """The domain of so many levels, in a domain, that takes so many executions best; None: there is none."""
        if depth == len(self._levels) and not self._prices and not self._taken and not self._vague:
            if self._rooms is not None and not under:
                return self._rooms.tightest(count)
            return self._tightest(count, self._seats if not under else self._under(under))
        ranks = self.ranks(count, depth, under)
        lowest = min(ranks.values(), default=None)
        return min((domain for domain, rank in ranks.items() if rank == lowest), key=key_of_path, default=None)

    def _tightest(self, count: int, leaves: Iterable[Path]) -> Path | None:
        """The leaf that so many executions fill best, where leaves differ in nothing but how many they take."""
        seats, least, found = self._seats, sys.maxsize, list[Path]()
        for leaf in leaves:
            if count <= seats[leaf] <= least and leaf[-1] is not None:
                if seats[leaf] < least:
                    least, found = seats[leaf], []
                found.append(leaf)
        return min(found, key=key_of_path, default=None)

    def ranks(self, count: int, depth: int, under: Path = ()) -> dict[Path, Rank]:
        """The domains of so many levels, in a domain, that take so many executions, and how well each does."""
        found = {}
        for domain, leaves in self._domains(depth, under).items():
            if sum(map(self._bound, leaves)) >= count:
                seats = self._sum(leaves)
                if seats >= count:
                    is_new = self._taken.isdisjoint(leaves)
                    needed = 1 if len(leaves) == 1 else _needed([self._seats[leaf] for leaf in leaves], count)
                    found[domain] = (self._cost(leaves, count), is_new, needed, seats - count)
        return found

    def plan(self, count: int, under: Path = ()) -> Iterator[tuple[Path, int]]:
        """Executions by leaf, in a domain: in the one that is best for all of them, or else in as few as can be.

        The grid is used up by it.
        """
        self._sum(list(self._seats))
        if self._rooms is not None:
            self._seats, self._rooms = dict(self._seats), None
        left = count
        while left:
            depths = range(len(self._levels), len(under), -1)
            best = next(filter(None, (self.best(left, depth, under) for depth in depths)), None)
            if best is not None:
                under = best
                if len(under) == len(self._levels):
                    yield under, left
                    return
                continue
            if len(under) == len(self._levels) - 1:
                yield from self._deal(left, under)
                return
            if not (widest := self._widest(under)):
                return
            for leaf in widest:
                taken = min(left, self._seats.pop(leaf))
                if taken:
                    yield leaf, taken
                left -= taken

    def _deal(self, count: int, under: Path) -> Iterator[tuple[Path, int]]:
        """Executions by leaf, where all parts of a domain are leaves: the widest first, the last one tightest."""
        left, leaves = count, [leaf for leaf in self._under(under) if self._seats[leaf]]
        leaves.sort(key=lambda leaf: (leaf[-1] is None, -self._seats[leaf], key_of_path(leaf)))
        for leaf in leaves:
            if self._seats[leaf] >= left:
                last = self.best(left, len(self._levels), under) or leaf
                yield last, left
                return
            left -= self._seats[leaf]
            yield leaf, self._seats.pop(leaf)

    def _widest(self, under: Path) -> list[Path]:
        """The leaves of the part of a domain that takes the most, the largest first; what is in no part comes last.

        Of parts that take equally many it is the one with the fewest leaves.
        """
        parts: dict[Path, list[Path]] = {}
        for leaf in self._under(under):
            if self._seats[leaf]:
                parts.setdefault(leaf[: len(under) + 1], []).append(leaf)
        if not parts:
            return []
        sizes = {part: sum(self._seats[leaf] for leaf in leaves) for part, leaves in parts.items()}
        widest = min(parts, key=lambda part: (part[-1] is None, -sizes[part], len(parts[part]), key_of_path(part)))
        return sorted(parts[widest], key=lambda leaf: (None in leaf, -self._seats[leaf], key_of_path(leaf)))

    def _known_rooms(self) -> LeafRooms | None:
        """Executions by leaf, if all nodes cost the same, none is out, and bounds tell how many fit on each."""
        found = self._found
        is_plain = found.costs() == (None,) and found.available.domain is None and not self._missing
        if not is_plain or next(found.singles(), None) is not None:
            return None
        groups = [nodes for level in found.levels() for nodes in found.groups(level)]
        if not all(nodes.is_exact for nodes in groups):
            return None
        kind = (found.part.count, found.part.role.resources.gpus)
        slots = [(nodes.group, nodes.most) for nodes in groups]
        return found.available.capacities.rooms.of(self._levels, kind, slots, found.available.capacities.of)

    def _take_in(self, price: int | None) -> None:
        """Count the nodes that cost so much."""
        found, capacities = self._found, self._found.available.capacities
        for single in found.singles(price):
            leaf = path_of(self._levels, capacities.of(single.key[1]).labels)
            self._add(leaf, price, single.slots)
            if single.taken:
                self._taken.add(leaf)
        for level in found.levels(price):
            for nodes in found.groups(level):
                self._take_group(nodes, price)

    def _take_group(self, nodes: AlikeNodes, price: int | None) -> None:
        domain, seats = self._found.available.domain, self._seats
        leaves = nodes.group.by_path(self._levels, self._found.available.capacities.of)
        if nodes.is_exact and not price and domain is None and not self._missing:
            most = nodes.most
            for leaf, keys in leaves.items():
                seats[leaf] = seats.get(leaf, 0) + most * len(keys)
            return
        for leaf, keys in leaves.items():
            if domain is not None and leaf[: len(domain.path)] != domain.path:
                continue
            size = len(keys) - self._missing[id(nodes.group), leaf] if self._missing else len(keys)
            if size and nodes.is_exact:
                self._add(leaf, price, nodes.most * size)
            elif size:
                seats.setdefault(leaf, 0)
                self._vague.setdefault(leaf, []).append((price or 0, nodes, keys))

    def _add(self, leaf: Path, price: int | None, seats: int) -> None:
        self._seats[leaf] = self._seats.get(leaf, 0) + seats
        if price:
            self._prices.setdefault(leaf, []).append((price, seats))

    def _under(self, domain: Path) -> list[Path]:
        depth = len(domain)
        return [leaf for leaf in self._seats if leaf[:depth] == domain]

    def _domains(self, depth: int, under: Path) -> dict[Path, list[Path]]:
        """The leaves of each domain of so many levels; a node without one of them is in none."""
        found: dict[Path, list[Path]] = {}
        for leaf in self._under(under):
            if leaf[depth - 1] is not None:
                found.setdefault(leaf[:depth], []).append(leaf)
        return found

    def _bound(self, leaf: Path) -> int:
        """Executions that fit into a leaf at the most."""
        vague = self._vague.get(leaf, ())
        return self._seats[leaf] + sum(nodes.most * len(keys) for _, nodes, keys in vague)

    def _sum(self, leaves: Sequence[Path]) -> int:
        """Executions that fit into leaves, whose nodes are looked at where the bounds do not tell."""
        if self._vague:
            out = self._found.out
            for leaf in leaves:
                for price, nodes, keys in self._vague.pop(leaf, ()):
                    slots = (self._found.slots(nodes, key[1]) for key in keys if key[1] not in out)
                    self._add(leaf, price, sum(slots))
        return sum(self._seats[leaf] for leaf in leaves)

    def _cost(self, leaves: Sequence[Path], count: int) -> int:
        """What so many executions cost on the cheapest nodes of these leaves."""
        if not self._prices:
            return 0
        prices = sorted(price for leaf in leaves for price in self._prices.get(leaf, ()))
        left = count - sum(self._seats[leaf] for leaf in leaves) + sum(seats for _, seats in prices)
        cost = 0
        for price, seats in prices:
            if left <= 0:
                break
            cost += price * min(left, seats)
            left -= seats
        return cost


def _needed(sizes: Iterable[int], count: int) -> int:
    """How few leaves take so many executions."""
    needed = 0
    for seats in sorted(sizes, reverse=True):
        if count <= 0:
            break
        count -= seats
        needed += 1
    return needed
