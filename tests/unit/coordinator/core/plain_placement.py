"""Placement node by node, as plainly as can be: what the search by node classes must come to."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import TypeAlias

from coordinator.core.placement.capacity import Capacity, key_of
from coordinator.core.placement.devices import matching, pick
from coordinator.core.placement.suitable import unfit
from muster.domain.ids import GpuUuid, NodeId
from muster.domain.jobs.job import JobSpec, Packing, Resources, Role
from muster.domain.jobs.placing.affinity import LabelExpression
from muster.domain.jobs.placing.taint import Taint
from muster.domain.jobs.placing.toleration import TaintEffect, Toleration, TolerationOperator
from muster.domain.jobs.placing.topology import DEFAULT_LEVELS
from muster.domain.jobs.ports import node_ports
from muster.domain.natural_order import natural
from tests.unit.coordinator.core.plain_portions import PlainShares

Place = tuple[NodeId, tuple[GpuUuid, ...]]
Ports: TypeAlias = frozenset[int]
Path: TypeAlias = tuple[str | None, ...]
Room: TypeAlias = tuple[Capacity, int, int]


class Draft:
    """A node with what is left of it."""

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self.gpus = list(capacity.gpus)
        self.cpu_millis, self.memory, self.disk, self.taken = capacity.cpu_millis, capacity.memory, capacity.disk, 0
        self.ports = set(capacity.ports)
        self.shares = PlainShares(capacity.gpus, capacity.shared)

    def slots(self, spec: JobSpec, role: Role, ports: Ports) -> int:
        """How many executions of a role fit, one after the other, if each takes these ports."""
        need, most = role.resources, role.count
        if ports:
            most = min(most, int(self.ports.isdisjoint(ports)))
        if unfit(spec, role, self.capacity) is not None or self.capacity.node in spec.exclude_nodes:
            return 0
        if (spec.exclusive and not self.capacity.idle) or _tainted(spec, self.capacity):
            return 0
        if not _wanted(spec, self.capacity):
            return 0
        if need.portion is not None:
            most = self.shares.slots(need, most)
        elif need.gpus:
            most = min(most, len(matching(self.gpus, need)) // need.gpus)
        if need.cpu_millis:
            most = min(most, self.cpu_millis // need.cpu_millis)
        for wanted, left in ((need.memory, self.memory), (need.disk, self.disk)):
            most = min(most, left // wanted) if wanted else most
        if spec.max_per_node is not None:
            most = min(most, spec.max_per_node - self.taken)
        return max(0, most)

    def take(self, role: Role, ports: Ports) -> Place:
        """Seat one more."""
        self.ports |= ports
        need = role.resources
        portions = None if need.portion is None else self.shares.take(need)
        chosen = pick(matching(self.gpus, need), need.gpus) if portions is None else portions
        self.gpus = [gpu for gpu in self.gpus if gpu.uuid not in chosen]
        for gpu in chosen if portions is None else ():
            del self.shares.free[gpu]
        self.cpu_millis -= need.cpu_millis
        self.memory -= need.memory or 0
        self.disk -= need.disk or 0
        self.taken += 1
        return (self.capacity.node, chosen)


def place_plainly(
    spec: JobSpec, capacities: Sequence[Capacity], pools: Sequence[str] | None = None
) -> list[Place] | None:
    """Node and GPUs by rank; None if the gang fits into no pool."""
    names = sorted({each.pool for each in capacities}) if pools is None else pools
    members = ([each for each in capacities if each.pool == name] for name in names)
    return next(filter(None, (_place_in_pool(spec, each) for each in members)), None)


def _place_in_pool(spec: JobSpec, capacities: Sequence[Capacity]) -> list[Place] | None:
    in_order = sorted(capacities, key=lambda capacity: key_of(capacity.node))
    by_demand = sorted(range(len(spec.roles)), key=lambda index: _demand(spec.roles[index]), reverse=True)
    levels = [level for level in DEFAULT_LEVELS if any(level in each.labels for each in in_order)]
    if spec.topology.required is not None and spec.topology.required not in levels:
        return None
    for domain, near in _areas(spec, in_order, levels, by_demand[0]):
        inside = [each for each in in_order if _path(each, levels)[: len(domain)] == domain]
        takers = [sum(room > 0 for _, room, _ in _rooms(spec, index, inside)) for index in range(len(spec.roles))]
        as_given = range(len(takers))
        orders = (as_given, by_demand, sorted(as_given, key=takers.__getitem__), *permutations(as_given))
        if found := next(filter(None, (_seat(spec, inside, order, near) for order in orders)), None):
            return found
    return None


def _areas(
    spec: JobSpec, capacities: Sequence[Capacity], levels: Sequence[str], largest: int
) -> Iterator[tuple[Path, Sequence[str]]]:
    """The domains in which a gang is tried, with the levels by which it stays together there."""
    required = 0 if spec.topology.required is None else list(levels).index(spec.topology.required) + 1
    wanted = spec.topology.preferred
    if wanted is None and spec.packing is Packing.PACK and any(role.resources.gpus for role in spec.roles):
        wanted = levels[-1] if levels and spec.size > 1 else None
    preferred = 0 if wanted is None or wanted not in levels else list(levels).index(wanted) + 1
    near = levels[: max(required, preferred)]
    rooms = [_rooms(spec, number, capacities) for number in range(len(spec.roles))]
    count = spec.roles[largest].count
    if not near or (not required and len(rooms) == 1 and spec.packing is Packing.PACK and _is_for_one(rooms[0], count)):
        yield (), ()
        return
    costs = {
        domain: _cheapest(inside, count)
        for domain, inside in _by_domain(rooms[largest], levels, required).items()
        if sum(room for _, room, _ in inside) >= count
    }
    for depth in range(len(near), max(required, 1) - 1, -1):
        ranks = []
        for domain, inside in _by_domain(rooms[largest], levels, depth).items():
            enough = all(
                sum(room for _, room, _ in _by_domain(each, levels, depth).get(domain, [])) >= role.count
                for each, role in zip(rooms, spec.roles, strict=True)
            )
            cost = _cheapest(inside, count)
            if enough and (depth == required or cost == min(costs.values(), default=None)):
                seats = sum(room for _, room, _ in inside)
                ranks.append((cost, _fewest(inside, near, count), seats - count, _natural(domain), domain))
        for *_, domain in sorted(ranks):
            yield domain, near
    if not required:
        yield (), near


def _rooms(spec: JobSpec, number: int, capacities: Sequence[Capacity]) -> list[Room]:
    """Nodes with how many executions of a role fit, and what each of them costs."""
    role = spec.roles[number]
    first, others = node_ports(spec, role, 0 if number == 0 else 1), node_ports(spec, role, 1)
    ports = first if role.count == 1 else others
    return [(each, Draft(each).slots(spec, role, ports), _cost(spec, each)) for each in capacities]


def _by_domain(rooms: Sequence[Room], levels: Sequence[str], depth: int) -> dict[Path, list[Room]]:
    found: dict[Path, list[Room]] = {}
    for room in rooms:
        path = _path(room[0], levels)[:depth]
        if None not in path:
            found.setdefault(path, []).append(room)
    return found


def _is_for_one(rooms: Sequence[Room], count: int) -> bool:
    """Whether one of the cheapest nodes takes all."""
    cheapest = min((cost for _, room, cost in rooms if room), default=0)
    return any(room >= count and cost == cheapest for _, room, cost in rooms)


def _cheapest(rooms: Sequence[Room], count: int) -> int:
    """What so many executions cost on the nodes that cost least."""
    seats = sorted(cost for _, room, cost in rooms for _ in range(room))
    return sum(seats[:count])


def _fewest(rooms: Sequence[Room], levels: Sequence[str], count: int) -> int:
    """How few leaves take so many executions."""
    leaves: dict[Path, int] = {}
    for capacity, room, _ in rooms:
        path = _path(capacity, levels)
        leaves[path] = leaves.get(path, 0) + room
    sizes = sorted(leaves.values(), reverse=True)
    return next((number for number in range(len(sizes) + 1) if sum(sizes[:number]) >= count), len(sizes))


def _path(capacity: Capacity, levels: Sequence[str]) -> Path:
    values = [capacity.labels.get(level) for level in levels]
    known = values.index(None) if None in values else len(values)
    return tuple(value if place < known else None for place, value in enumerate(values))


def _natural(path: Path) -> list[tuple[bool, object]]:
    return [(value is None, natural(value or "")) for value in path]


def _seat(
    spec: JobSpec, capacities: Sequence[Capacity], order: Sequence[int], near: Sequence[str]
) -> list[Place] | None:
    by_place = sorted(capacities, key=lambda each: (_natural(_path(each, near)), key_of(each.node)))
    drafts = [Draft(capacity) for capacity in by_place]
    seats: dict[int, list[Place]] = {}
    for index in order:
        role = spec.roles[index]
        first, others = node_ports(spec, role, 0 if index == 0 else 1), node_ports(spec, role, 1)
        if role.count == 1:
            others = first
        counts = _counts(spec, role, drafts, others, role.count, near)
        if counts is None:
            return None
        leader = _leader(drafts, counts, first - others)
        if leader is not None:
            seats[index] = _take(role, drafts, counts, leader, first, others)
            continue
        alone = _counts(spec, role, drafts, first, 1, near)
        if alone is None:
            return None
        seats[index] = _take(role, drafts, alone, 0, first, first)
        rest = _counts(spec, role, drafts, others, role.count - 1, near)
        if rest is None:
            return None
        seats[index] += _take(role, drafts, rest, 0, others, others)
    return [seat for index in sorted(seats) for seat in seats[index]]


def _leader(drafts: Sequence[Draft], counts: Sequence[int], ports: Ports) -> int | None:
    """The first node that is used and has these ports free."""
    usable = (index for index, count in enumerate(counts) if count and drafts[index].ports.isdisjoint(ports))
    return next(usable, None)


def _counts(
    spec: JobSpec, role: Role, drafts: Sequence[Draft], ports: Ports, count: int, near: Sequence[str]
) -> list[int] | None:
    slots = [draft.slots(spec, replace(role, count=count), ports) for draft in drafts]
    costs = [_cost(spec, draft.capacity) for draft in drafts]
    counts, left = [0] * len(drafts), count
    for cost in sorted(set(costs)):
        here = [room if own == cost else 0 for room, own in zip(slots, costs, strict=True)]
        found = _together(spec, replace(role, count=left), drafts, here, near)
        counts = [before + more for before, more in zip(counts, found, strict=True)]
        left = count - sum(counts)
        if not left:
            return counts
    return None


def _together(
    spec: JobSpec, role: Role, drafts: Sequence[Draft], slots: Sequence[int], near: Sequence[str]
) -> list[int]:
    deal = _spread if spec.packing is Packing.SPREAD else _pack
    return _Dealing(deal, role, drafts, slots, near).counts() if near else deal(role, drafts, slots)


class _Dealing:
    """Executions go to as few domains as can be: all to the best one, or the widest is filled and then others."""

    def __init__(
        self,
        deal: Callable[[Role, Sequence[Draft], Sequence[int]], list[int]],
        role: Role,
        drafts: Sequence[Draft],
        slots: Sequence[int],
        near: Sequence[str],
    ) -> None:
        self.deal, self.role, self.drafts, self.free = deal, role, drafts, list(slots)
        self.paths: list[Path] = [_path(draft.capacity, near) for draft in drafts]
        self.dealt, self.left = [0] * len(drafts), role.count
        self.depth = len(near)

    def counts(self) -> list[int]:
        under: Path = ()
        while self.left and self.size(under):
            parts = {path[:depth] for path in self.paths for depth in range(len(under) + 1, self.depth + 1)}
            inside = [part for part in parts if part[: len(under)] == under]
            whole = [part for part in inside if part[-1] is not None and self.size(part) >= self.left]
            if whole:
                under = min((part for part in whole if len(part) == max(map(len, whole))), key=self.rank)
            if len(under) == self.depth:
                self.fill(under, self.left)
            elif not whole:
                self.fill_widest([part for part in inside if len(part) == len(under) + 1 and self.size(part)])
        return self.dealt

    def size(self, domain: Path) -> int:
        lines = zip(self.free, self.paths, strict=True)
        return sum(room for room, path in lines if path[: len(domain)] == domain)

    def rank(self, domain: Path) -> tuple[bool, int, int, object]:
        lines = zip(self.drafts, self.free, self.paths, strict=True)
        taken = any(draft.taken and room and path[: len(domain)] == domain for draft, room, path in lines)
        sizes = sorted((self.size(path) for path in {*self.paths} if path[: len(domain)] == domain), reverse=True)
        fewest = next(number for number in range(len(sizes) + 1) if sum(sizes[:number]) >= self.left)
        return (not taken, fewest, self.size(domain) - self.left, _natural(domain))

    def fill_widest(self, children: Sequence[Path]) -> None:
        leaves = {leaf for leaf in self.paths if self.size(leaf)}
        fewest = {part: sum(leaf[: len(part)] == part for leaf in leaves) for part in children}
        widest = min(children, key=lambda part: (part[-1] is None, -self.size(part), fewest[part], _natural(part)))
        leaves = {path for path in self.paths if path[: len(widest)] == widest}
        for leaf in sorted(leaves, key=lambda path: (None in path, -self.size(path), _natural(path))):
            self.fill(leaf, min(self.left, self.size(leaf)))

    def fill(self, leaf: Path, most: int) -> None:
        here = [min(most, room) if path == leaf else 0 for room, path in zip(self.free, self.paths, strict=True)]
        for index, more in enumerate(self.deal(replace(self.role, count=most), self.drafts, here)):
            self.dealt[index] += more
            self.left -= more
            self.free[index] = 0 if self.paths[index] == leaf else self.free[index]


def _cost(spec: JobSpec, capacity: Capacity) -> int:
    """What a job would rather not have of a node: taints count a hundred, what it lacks its weight."""
    soft = (taint for taint in capacity.taints if taint.effect is TaintEffect.PREFER_NO_SCHEDULE)
    tainted = sum(not any(_tolerates(each, taint) for each in spec.tolerations) for taint in soft)
    terms = ((term.weight, [_says(each, capacity) for each in term.all]) for term in spec.affinity.preferred)
    return 100 * tainted + sum(weight for weight, said in terms if not all(said))


def _wanted(spec: JobSpec, capacity: Capacity) -> bool:
    terms = [[_says(each, capacity) for each in term] for term in spec.affinity.required]
    return not terms or any(all(term) for term in terms)


def _says(expression: LabelExpression, capacity: Capacity) -> bool:
    value, operator = capacity.labels.get(expression.key), str(expression.operator)
    number = int(value) if value is not None and value.isascii() and value.removeprefix("-").isdigit() else None
    match operator:
        case "In":
            return value is not None and any(value == each for each in expression.values)
        case "NotIn":
            return all(value != each for each in expression.values)
        case "Exists" | "DoesNotExist":
            return (value is not None) == (operator == "Exists")
    if number is None:
        return False
    return number > int(expression.values[0]) if operator == "Gt" else number < int(expression.values[0])


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    values = {taint.value} if toleration.operator is TolerationOperator.EXISTS else {toleration.value}
    effects = set(TaintEffect) if toleration.effect is None else {toleration.effect}
    lasting = toleration.seconds is None
    return lasting and toleration.key in {"", taint.key} and taint.value in values and taint.effect in effects


def _tainted(spec: JobSpec, capacity: Capacity) -> bool:
    """Whether a taint keeps the job off the node."""
    hard = [taint for taint in capacity.taints if taint.effect is not TaintEffect.PREFER_NO_SCHEDULE]
    return not all(any(_tolerates(each, taint) for each in spec.tolerations) for taint in hard)


def _take(
    role: Role, drafts: Sequence[Draft], counts: Sequence[int], leader: int, first: Ports, others: Ports
) -> list[Place]:
    """Seats in the order of the nodes, those of the leader first; the very first one takes ports of its own."""
    in_order = sorted(range(len(drafts)), key=lambda index: (index != leader or not counts[index], index))
    seats: list[Place] = []
    for index in in_order:
        for _ in range(counts[index]):
            seats.append(drafts[index].take(role, others if seats else first))
    return seats


def _pack(role: Role, drafts: Sequence[Draft], slots: Sequence[int]) -> list[int]:
    """The fullest first; what is left over goes where it fits tightest."""
    counts, left = [0] * len(drafts), role.count
    by_room = sorted(range(len(drafts)), key=lambda index: -slots[index])
    for position, index in enumerate(by_room):
        if slots[index] >= left:
            holding = [other for other in by_room[position:] if slots[other] >= left]
            best = min(holding, key=lambda other: _tightness(role.resources, drafts[other], slots[other], left, other))
            counts[best] = left
            return counts
        counts[index] = slots[index]
        left -= slots[index]
    return counts


def _tightness(need: Resources, draft: Draft, slots: int, left: int, index: int) -> tuple[int, int, int, int]:
    """The smaller, the better a node is for what is left."""
    gpus = len(draft.gpus)
    if draft.taken:
        return 0, slots, gpus, index
    if need.portion is not None:
        shared = draft.shares.copy(without_free=True)
        if shared.slots(need, left) >= left:
            return 1, shared.holding(need)[0][0], gpus, index
    return 2, slots, gpus, index


def _spread(role: Role, drafts: Sequence[Draft], slots: Sequence[int]) -> list[int]:
    """One at a time, where the job has the fewest."""
    counts = [0] * len(drafts)
    while sum(counts) < role.count and (open_ := [index for index, room in enumerate(slots) if counts[index] < room]):
        best = min(
            open_,
            key=lambda index: (
                drafts[index].taken + counts[index],
                -len(drafts[index].gpus),
                -drafts[index].cpu_millis,
                index,
            ),
        )
        counts[best] += 1
    return counts


def _demand(role: Role) -> tuple[int, int, int]:
    return (role.resources.gpus, role.resources.cpu_millis, role.resources.memory or 0)
