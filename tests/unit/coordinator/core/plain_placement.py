"""Placement node by node, as plainly as can be: what the search by groups of equal rooms must come to."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from coordinator.core.placement.capacity import Capacity, key_of
from coordinator.core.placement.placement import matching, pick, unfit
from muster.domain.ids import GpuUuid, NodeId
from muster.domain.jobs.job import JobSpec, Packing, Role
from muster.domain.jobs.ports import node_ports

Place = tuple[NodeId, tuple[GpuUuid, ...]]
Ports: TypeAlias = frozenset[int]


class Shelf:
    """A node with what is left of it."""

    def __init__(self, room: Capacity) -> None:
        self.room = room
        self.gpus = list(room.gpus)
        self.cpu_millis, self.memory, self.taken = room.cpu_millis, room.memory, 0
        self.ports = set(room.ports)

    def slots(self, spec: JobSpec, role: Role, ports: Ports) -> int:
        """How many executions of a role fit, one after the other, if each takes these ports."""
        need, most = role.resources, role.count
        if ports:
            most = min(most, int(self.ports.isdisjoint(ports)))
        if unfit(spec, role, self.room) is not None:
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
        return (self.room.node, chosen)


def place_plainly(spec: JobSpec, rooms: Sequence[Capacity]) -> list[Place] | None:
    """Node and GPUs by rank; None if the gang does not fit."""
    in_order = sorted(rooms, key=lambda room: key_of(room.node))
    as_given = range(len(spec.roles))
    by_demand = sorted(as_given, key=lambda index: _demand(spec.roles[index]), reverse=True)
    return _seat(spec, in_order, as_given) or _seat(spec, in_order, by_demand)


def _seat(spec: JobSpec, rooms: Sequence[Capacity], order: Sequence[int]) -> list[Place] | None:
    shelves = [Shelf(room) for room in rooms]
    seats: dict[int, list[Place]] = {}
    for index in order:
        role = spec.roles[index]
        first, others = node_ports(spec, role, 0 if index == 0 else 1), node_ports(spec, role, 1)
        if role.count == 1:
            others = first
        counts = _counts(spec, role, shelves, others, role.count)
        if counts is None:
            return None
        leader = _leader(shelves, counts, first - others)
        if leader is not None:
            seats[index] = _take(role, shelves, counts, leader, first, others)
            continue
        alone = _counts(spec, role, shelves, first, 1)
        if alone is None:
            return None
        seats[index] = _take(role, shelves, alone, 0, first, first)
        rest = _counts(spec, role, shelves, others, role.count - 1)
        if rest is None:
            return None
        seats[index] += _take(role, shelves, rest, 0, others, others)
    return [seat for index in sorted(seats) for seat in seats[index]]


def _leader(shelves: Sequence[Shelf], counts: Sequence[int], ports: Ports) -> int | None:
    """The first node that is used and has these ports free."""
    usable = (index for index, count in enumerate(counts) if count and shelves[index].ports.isdisjoint(ports))
    return next(usable, None)


def _counts(spec: JobSpec, role: Role, shelves: Sequence[Shelf], ports: Ports, count: int) -> list[int] | None:
    part = replace(role, count=count)
    slots = [shelf.slots(spec, part, ports) for shelf in shelves]
    counts = (_spread if spec.packing is Packing.SPREAD else _pack)(part, shelves, slots)
    return counts if sum(counts) == count else None


def _take(
    role: Role, shelves: Sequence[Shelf], counts: Sequence[int], leader: int, first: Ports, others: Ports
) -> list[Place]:
    """Seats in the order of the nodes, those of the leader first; the very first one takes ports of its own."""
    in_order = sorted(range(len(shelves)), key=lambda index: (index != leader or not counts[index], index))
    seats: list[Place] = []
    for index in in_order:
        for _ in range(counts[index]):
            seats.append(shelves[index].take(role, others if seats else first))
    return seats


def _pack(role: Role, shelves: Sequence[Shelf], slots: Sequence[int]) -> list[int]:
    """The fullest first; what is left over goes where it fits tightest."""
    counts, left = [0] * len(shelves), role.count
    by_room = sorted(range(len(shelves)), key=lambda index: -slots[index])
    for position, index in enumerate(by_room):
        if slots[index] >= left:
            holding = [other for other in by_room[position:] if slots[other] >= left]
            best = min(holding, key=lambda other: (not shelves[other].taken, slots[other], len(shelves[other].gpus)))
            counts[best] = left
            return counts
        counts[index] = slots[index]
        left -= slots[index]
    return counts


def _spread(role: Role, shelves: Sequence[Shelf], slots: Sequence[int]) -> list[int]:
    """One at a time, where the job has the fewest."""
    counts = [0] * len(shelves)
    for _ in range(role.count):
        open_ = [index for index in range(len(shelves)) if counts[index] < slots[index]]
        if not open_:
            break
        best = min(
            open_,
            key=lambda index: (
                shelves[index].taken + counts[index],
                -len(shelves[index].gpus),
                -shelves[index].cpu_millis,
                index,
            ),
        )
        counts[best] += 1
    return counts


def _demand(role: Role) -> tuple[int, int, int]:
    return (role.resources.gpus, role.resources.cpu_millis, role.resources.memory or 0)
