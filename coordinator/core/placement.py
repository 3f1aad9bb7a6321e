"""Gang placement: all executions of a job get their room in one decision, or none does, with the reason per node.

Pure and deterministic: the same job and the same rooms always give the same placement.
"""

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from muster.domain.ids import GpuUuid, NodeId
from muster.domain.job import JobSpec, Packing, Resources, Role, RuntimeKind
from muster.domain.node import Gpu, RuntimeOffer
from muster.domain.view import NodeRefusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a node has to give, free or in all."""

    node: NodeId
    gpus: tuple[Gpu, ...] = ()
    """Usable ones, by index."""
    cpu_millis: int = 0
    memory: int = 0
    runtimes: tuple[RuntimeOffer, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None
    """Why nothing can be placed on it at all."""


_Place = tuple[NodeId, tuple[GpuUuid, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where one execution goes."""

    rank: int
    node: NodeId
    gpus: tuple[GpuUuid, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A seat for every execution, by rank."""

    seats: tuple[Seat, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoFit:
    """The gang does not fit, and why."""

    wanted: int
    found: int
    """How many executions would fit."""
    nodes: int
    """How many were looked at."""

    def __str__(self) -> str:
        if not self.nodes:
            return f"needs room for {_executions(self.wanted)}, but no node has joined"
        return f"needs room for {_executions(self.wanted)} at once; {self.found} {'fits' if self.found == 1 else 'fit'}"


def place(spec: JobSpec, rooms: Iterable[Room]) -> Placement | NoFit:
    """Seats for the whole gang, or NoFit.

    `pack` fills as few nodes as possible and takes the tightest fit last, which keeps whole nodes free for the next
    large job; `spread` takes one more execution wherever the job has the fewest. Ranks are dealt out in node order, so
    neighbouring ranks share a node. Roles are seated in the order of the job; where that leaves no room for a role that
    needs much, the one that needs most is seated first.
    """
    in_order = sorted(rooms, key=lambda room: natural(room.node))
    shelves = [_Shelf(room) for room in in_order if _may_hold(spec, room)]
    as_given = range(len(spec.roles))
    seats, found = _seat(spec, shelves, as_given)
    if found < spec.size and len(spec.roles) > 1:
        by_demand = sorted(as_given, key=lambda place_in_job: _demand(spec.roles[place_in_job]), reverse=True)
        seats, _ = _seat(spec, [_Shelf(shelf.room) for shelf in shelves], by_demand)
    if len(seats) < spec.size:
        return NoFit(wanted=spec.size, found=found, nodes=len(in_order))
    return Placement(seats=tuple(Seat(rank=rank, node=node, gpus=gpus) for rank, (node, gpus) in enumerate(seats)))


def fits(spec: JobSpec, rooms: Iterable[Room]) -> bool:
    """Whether the gang fits; looks at no more rooms than it must, in the usual case of identical executions."""
    if len(spec.roles) > 1:
        return isinstance(place(spec, rooms), Placement)
    left = spec.size
    for room in rooms:
        if _may_hold(spec, room):
            left -= _Shelf(room).slots(spec, spec.roles[0])
        if left <= 0:
            return True
    return False


def refusals(spec: JobSpec, rooms: Iterable[Room]) -> tuple[NodeRefusal, ...]:
    """What each node lacks for one more execution, by node; for a job that does not fit."""
    shelves = [_Shelf(room) for room in sorted(rooms, key=lambda room: natural(room.node))]
    for role in spec.roles:
        counts = _counts(spec, role, shelves)
        for shelf in shelves:
            for _ in range(counts.get(shelf.room.node, 0)):
                shelf.take(role.resources)
        if sum(counts.values()) < role.count:
            return tuple(NodeRefusal(node=shelf.room.node, reason=_reason(shelf, spec, role)) for shelf in shelves)
    return ()


@lru_cache(maxsize=100_000)
def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A sort key that puts node-2 before node-10."""
    return tuple((int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name))


class _Shelf:
    """A room from which this gang has already taken some."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.gpus = list(room.gpus)
        self.cpu_millis = room.cpu_millis
        self.memory = room.memory
        self.taken = 0

    def slots(self, spec: JobSpec, role: Role) -> int:
        """How many more executions of a role fit."""
        if unfit(spec, role, self.room) is not None:
            return 0
        need = role.resources
        limits = [role.count]
        if need.gpus:
            limits.append(len(matching(self.gpus, need)) // need.gpus)
        if need.cpu_millis:
            limits.append(self.cpu_millis // need.cpu_millis)
        if need.memory:
            limits.append(self.memory // need.memory)
        if spec.max_per_node is not None:
            limits.append(spec.max_per_node - self.taken)
        return max(0, min(limits))

    def take(self, need: Resources) -> tuple[GpuUuid, ...]:
        """Seat one more execution."""
        gpus = pick(matching(self.gpus, need), need.gpus)
        self.gpus = [gpu for gpu in self.gpus if gpu.uuid not in gpus]
        self.cpu_millis -= need.cpu_millis
        self.memory -= need.memory or 0
        self.taken += 1
        return gpus

    def lack(self, spec: JobSpec, role: Role) -> str:
        """What is missing for one more execution of a role."""
        unsuitable = unfit(spec, role, self.room)
        if unsuitable is not None:
            return unsuitable
        need = role.resources
        if spec.max_per_node is not None and self.taken >= spec.max_per_node:
            return f"has {_executions(self.taken)} of this job, as many as max_per_node allows"
        found = len(matching(self.gpus, need))
        if found < need.gpus:
            return (
                f"needs {need.gpus} {need.gpu_model or ''} GPUs, {found} {'is' if found == 1 else 'are'} free".replace(
                    "  ", " "
                )
            )
        if self.cpu_millis < need.cpu_millis:
            return f"needs {need.cpu_millis / 1000:g} CPUs, {max(0, self.cpu_millis) / 1000:g} are free"
        return f"needs {_gib(need.memory or 0)} of memory, {_gib(max(0, self.memory))} are free"


def _may_hold(spec: JobSpec, room: Room) -> bool:
    """A quick look that leaves out most nodes of a full fleet."""
    if room.problem is not None:
        return False
    needs = (role.resources for role in spec.roles)
    return any(need.gpus <= len(room.gpus) and need.cpu_millis <= max(0, room.cpu_millis) for need in needs)


def _seat(spec: JobSpec, shelves: Sequence[_Shelf], order: Iterable[int]) -> tuple[list[_Place], int]:
    """Places by rank, the roles seated in this order, and how many found room; no places if not all did."""
    seats: dict[int, list[_Place]] = {}
    found = 0
    for place_in_job in order:
        role = spec.roles[place_in_job]
        counts = _counts(spec, role, shelves)
        found += sum(counts.values())
        if sum(counts.values()) < role.count:
            return [], found
        seats[place_in_job] = [
            (shelf.room.node, shelf.take(role.resources))
            for shelf in shelves
            for _ in range(counts.get(shelf.room.node, 0))
        ]
    return [seat for place_in_job in sorted(seats) for seat in seats[place_in_job]], found


def _demand(role: Role) -> tuple[int, int, int]:
    need = role.resources
    return (need.gpus, need.cpu_millis, need.memory or 0)


def unfit(spec: JobSpec, role: Role, room: Room) -> str | None:
    """Why a node is not suitable at all for a role, however free it is; None: it is."""
    if room.problem is not None:
        return room.problem
    lacking = [f"{key}={value}" for key, value in spec.node_labels.items() if room.labels.get(key) != value]
    if lacking:
        return f"does not carry the label {', '.join(lacking)}"
    return _runtime_problem(room.runtimes, role)


def matching(gpus: Sequence[Gpu], need: Resources) -> list[Gpu]:
    """The GPUs of the model that is asked for."""
    if need.gpu_model is None:
        return list(gpus)
    wanted = need.gpu_model.lower()
    return [gpu for gpu in gpus if wanted in gpu.model.lower()]


def pick(gpus: Sequence[Gpu], count: int) -> tuple[GpuUuid, ...]:
    """The `count` neighbours that are joined best: by NVLink, then by NUMA node; the first such by index."""
    if count == 0:
        return ()
    ordered = sorted(gpus, key=lambda gpu: (gpu.numa_node or 0, gpu.index))
    windows = (ordered[start : start + count] for start in range(len(ordered) - count + 1))
    best = min(windows, key=_distance)
    return tuple(gpu.uuid for gpu in sorted(best, key=lambda gpu: gpu.index))


def _distance(window: Sequence[Gpu]) -> tuple[int, int]:
    uuids = {gpu.uuid for gpu in window}
    unlinked = sum(len(uuids) - 1 - len(uuids.intersection(gpu.nvlink_peers)) for gpu in window)
    return (unlinked, len({gpu.numa_node for gpu in window}))


def _counts(spec: JobSpec, role: Role, shelves: Sequence[_Shelf]) -> dict[NodeId, int]:
    if spec.packing is Packing.SPREAD:
        return _spread(spec, role, shelves)
    return _pack(spec, role, shelves)


def _pack(spec: JobSpec, role: Role, shelves: Sequence[_Shelf]) -> dict[NodeId, int]:
    """Fullest first; the remainder goes to the node with the least room that holds all of it."""
    slots = {shelf.room.node: shelf.slots(spec, role) for shelf in shelves}
    by_room = sorted((shelf for shelf in shelves if slots[shelf.room.node]), key=lambda shelf: -slots[shelf.room.node])
    counts: dict[NodeId, int] = {}
    left = role.count
    for place_in_order, shelf in enumerate(by_room):
        if slots[shelf.room.node] >= left:
            node = _tightest(by_room[place_in_order:], slots, left)
            return {**counts, node: left}
        counts[shelf.room.node] = slots[shelf.room.node]
        left -= slots[shelf.room.node]
    return counts


def _tightest(shelves: Sequence[_Shelf], slots: Mapping[NodeId, int], left: int) -> NodeId:
    """Prefer a node that this job already uses, then the fewest slots, then the fewest idle GPUs left over."""
    holding = [shelf for shelf in shelves if slots[shelf.room.node] >= left]
    best = min(holding, key=lambda shelf: (shelf.taken == 0, slots[shelf.room.node], len(shelf.gpus)))
    return best.room.node


def _spread(spec: JobSpec, role: Role, shelves: Sequence[_Shelf]) -> dict[NodeId, int]:
    """One at a time to the node where this job has the fewest, then where most was free."""
    slots = [shelf.slots(spec, role) for shelf in shelves]
    heap = [
        (shelf.taken, -len(shelf.gpus), -shelf.cpu_millis, order) for order, shelf in enumerate(shelves) if slots[order]
    ]
    heapq.heapify(heap)
    counts: dict[NodeId, int] = {}
    for _ in range(role.count):
        if not heap:
            break
        taken, gpus, cpu_millis, order = heapq.heappop(heap)
        node = shelves[order].room.node
        counts[node] = counts.get(node, 0) + 1
        if counts[node] < slots[order]:
            heapq.heappush(heap, (taken + 1, gpus, cpu_millis, order))
    return counts


def _reason(shelf: _Shelf, spec: JobSpec, role: Role) -> str:
    """What the node lacks; a node that could take some says how many."""
    lack = shelf.lack(spec, role)
    return f"has room for {shelf.taken}; for one more it {lack}" if shelf.taken else lack


def _runtime_problem(offers: Sequence[RuntimeOffer], role: Role) -> str | None:
    offer = next((offer for offer in offers if offer.kind is role.runtime), None)
    if offer is None:
        needs = "containers" if role.runtime is RuntimeKind.DOCKER else "plain processes"
        return f"does not run {needs} (its agent offers {_words(offers)})"
    if offer.problem is not None:
        return f"cannot run executions with {offer.kind}: {offer.problem}"
    if role.resources.gpus and not offer.gpus:
        return f"has a {offer.kind} runtime that cannot hand out GPUs"
    return None


def _words(offers: Iterable[RuntimeOffer]) -> str:
    return ", ".join(offer.kind for offer in offers) or "no runtime"


def _executions(count: int) -> str:
    return f"{count} execution" if count == 1 else f"{count} executions"


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
