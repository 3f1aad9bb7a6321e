"""Placement node by node, as plainly as can be: what the search by node classes must come to."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from coordinator.core.placement.capacity import Capacity, key_of
from coordinator.core.placement.devices import matching, pick
from coordinator.core.placement.suitable import unfit
from muster.domain.ids import GpuUuid, NodeId
from muster.domain.jobs.job import JobSpec, Packing, Role
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
        if unfit(spec, role, self.capacity) is not None:
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


def place_plainly(spec: JobSpec, capacities: Sequence[Capacity]) -> list[Place] | None:
    """Node and GPUs by rank; None if the gang does not fit."""
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
    part = replace(role, count=count)
    slots = [draft.slots(spec, part, ports) for draft in drafts]
    counts = (_spread if spec.packing is Packing.SPREAD else _pack)(part, drafts, slots)
    return counts if sum(counts) == count else None


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
