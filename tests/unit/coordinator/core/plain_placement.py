"""Placement node by node, as plainly as can be: what the search by node classes must come to."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from coordinator.core.placement.capacity import Capacity, key_of
from coordinator.core.placement.devices import matching, pick
from coordinator.core.placement.suitable import unfit
from muster.domain.ids import GpuUuid, NodeId
from muster.domain.jobs.job import JobSpec, Packing, Role
from muster.domain.jobs.placing.affinity import LabelExpression
from muster.domain.jobs.placing.taint import Taint
from muster.domain.jobs.placing.toleration import TaintEffect, Toleration, TolerationOperator
from muster.domain.jobs.ports import node_ports

Place = tuple[NodeId, tuple[GpuUuid, ...]]
Ports: TypeAlias = frozenset[int]


class Draft:
    """A node with what is left of it."""

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self.gpus = list(capacity.gpus)
        self.cpu_millis, self.memory, self.taken = capacity.cpu_millis, capacity.memory, 0
        self.ports = set(capacity.ports)

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
        if need.gpus:
            most = min(most, len(matching(self.gpus, need)) // need.gpus)
        if need.cpu_millis:
            most = min(most, self.cpu_millis // need.cpu_millis)
        if need.memory:
            most = min(most, self.memory // need.memory)
        if spec.max_per_node is not None:
            most = min(most, spec.max_per_node - self.taken)
        return max(0, most)

    def take(self, role: Role, ports: Ports) -> Place:
        """Seat one more."""
        self.ports |= ports
        need = role.resources
        chosen = pick(matching(self.gpus, need), need.gpus)
        self.gpus = [gpu for gpu in self.gpus if gpu.uuid not in chosen]
        self.cpu_millis -= need.cpu_millis
        self.memory -= need.memory or 0
        self.taken += 1
        return (self.capacity.node, chosen)


def place_plainly(
    spec: JobSpec, capacities: Sequence[Capacity], pools: Sequence[str] | None = None
) -> list[Place] | None:
    """Node and GPUs by rank; None if the gang fits into no pool."""
    names = sorted({capacity.pool for capacity in capacities}) if pools is None else pools
    by_pool = ([capacity for capacity in capacities if capacity.pool == name] for name in names)
    return next(filter(None, (_place_in_pool(spec, members) for members in by_pool)), None)


def _place_in_pool(spec: JobSpec, capacities: Sequence[Capacity]) -> list[Place] | None:
    in_order = sorted(capacities, key=lambda capacity: key_of(capacity.node))
    as_given = range(len(spec.roles))
    by_demand = sorted(as_given, key=lambda index: _demand(spec.roles[index]), reverse=True)
    return _seat(spec, in_order, as_given) or _seat(spec, in_order, by_demand)


def _seat(spec: JobSpec, capacities: Sequence[Capacity], order: Sequence[int]) -> list[Place] | None:
    drafts = [Draft(capacity) for capacity in capacities]
    seats: dict[int, list[Place]] = {}
    for index in order:
        role = spec.roles[index]
        first, others = node_ports(spec, role, 0 if index == 0 else 1), node_ports(spec, role, 1)
        if role.count == 1:
            others = first
        counts = _counts(spec, role, drafts, others, role.count)
        if counts is None:
            return None
        leader = _leader(drafts, counts, first - others)
        if leader is not None:
            seats[index] = _take(role, drafts, counts, leader, first, others)
            continue
        alone = _counts(spec, role, drafts, first, 1)
        if alone is None:
            return None
        seats[index] = _take(role, drafts, alone, 0, first, first)
        rest = _counts(spec, role, drafts, others, role.count - 1)
        if rest is None:
            return None
        seats[index] += _take(role, drafts, rest, 0, others, others)
    return [seat for index in sorted(seats) for seat in seats[index]]


def _leader(drafts: Sequence[Draft], counts: Sequence[int], ports: Ports) -> int | None:
    """The first node that is used and has these ports free."""
    usable = (index for index, count in enumerate(counts) if count and drafts[index].ports.isdisjoint(ports))
    return next(usable, None)


def _counts(spec: JobSpec, role: Role, drafts: Sequence[Draft], ports: Ports, count: int) -> list[int] | None:
    slots = [draft.slots(spec, replace(role, count=count), ports) for draft in drafts]
    costs = [_cost(spec, draft.capacity) for draft in drafts]
    counts, left = [0] * len(drafts), count
    for cost in sorted(set(costs)):
        here = [room if own == cost else 0 for room, own in zip(slots, costs, strict=True)]
        found = (_spread if spec.packing is Packing.SPREAD else _pack)(replace(role, count=left), drafts, here)
        counts = [before + more for before, more in zip(counts, found, strict=True)]
        left = count - sum(counts)
        if not left:
            return counts
    return None


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
            best = min(holding, key=lambda other: (not drafts[other].taken, slots[other], len(drafts[other].gpus)))
            counts[best] = left
            return counts
        counts[index] = slots[index]
        left -= slots[index]
    return counts


def _spread(role: Role, drafts: Sequence[Draft], slots: Sequence[int]) -> list[int]:
    """One at a time, where the job has the fewest."""
    counts = [0] * len(drafts)
    for _ in range(role.count):
        open_ = [index for index in range(len(drafts)) if counts[index] < slots[index]]
        if not open_:
            break
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
