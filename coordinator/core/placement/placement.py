"""Gang placement: all executions of a job get their seats in one decision, or none does, with the reason per node.

Pure and deterministic: the same job and the same capacities always give the same placement. The cost grows with the
size of the gang and with the number of bins, not with the number of nodes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coordinator.core.placement import search
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.capacity import key_of
from coordinator.core.placement.draft import Draft
from coordinator.core.placement.parts import Part, part_of
from muster.domain.ids import GpuUuid, NodeId
from muster.domain.jobs.explanation import NodeRefusal
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.quantity import counted

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
            return f"needs room for {counted(self.wanted, 'execution')}, but no node has joined"
        fit = f"{self.found} {'fits' if self.found == 1 else 'fit'}"
        return f"needs room for {counted(self.wanted, 'execution')} at once; {fit}"


def place(spec: JobSpec, available: Available) -> Placement | NoFit:
    """Seats for the whole gang, or NoFit.

    `pack` fills as few nodes as possible and takes the tightest fit last, which keeps whole nodes free for the next
    large job; `spread` takes one more execution wherever the job has the fewest. Ranks are dealt out in node order, so
    neighbouring ranks share a node. Roles are seated in the order of the job; where that leaves no room for a role that
    needs much, the one that needs most is seated first.
    """
    as_given = range(len(spec.roles))
    seats, found = _seat(spec, available, as_given)
    if found < spec.size and len(spec.roles) > 1:
        by_demand = sorted(as_given, key=lambda place_in_job: _demand(spec.roles[place_in_job]), reverse=True)
        seats, _ = _seat(spec, available, by_demand)
    if len(seats) < spec.size:
        return NoFit(wanted=spec.size, found=found, nodes=len(available))
    return Placement(seats=tuple(Seat(rank=rank, node=node, gpus=gpus) for rank, (node, gpus) in enumerate(seats)))


def fits(spec: JobSpec, available: Available) -> bool:
    """Whether the gang fits; cheaper than to place it where its executions are identical."""
    part = part_of(spec, 0)
    if len(spec.roles) > 1 or part.first:
        return isinstance(place(spec, available), Placement)
    return search.has_room(spec, part, available)


def refusals(spec: JobSpec, available: Available) -> tuple[NodeRefusal, ...]:
    """What each node lacks for one more execution, by node; for a job that does not fit."""
    drafts: dict[NodeId, Draft] = {}
    for place_in_job in range(len(spec.roles)):
        part = part_of(spec, place_in_job)
        counts = search.counts(spec, part, available, drafts)
        whole = sum(counts.values()) == part.count
        if not whole:
            _take(part, counts, available, drafts)
        elif _take_all(spec, part, counts, available, drafts):
            continue
        lacking = part.alone if whole else part
        nodes = sorted(
            (capacity.node for capacity in available.capacities if capacity.node != available.without), key=key_of
        )
        every = (drafts.get(node) or Draft(available.capacities.of(node)) for node in nodes)
        return tuple(NodeRefusal(node=draft.capacity.node, reason=draft.reason(spec, lacking)) for draft in every)
    return ()


def _seat(spec: JobSpec, available: Available, order: Iterable[int]) -> tuple[list[_Place], int]:
    """Places by rank, the roles seated in this order, and how many found one; no places if not all did."""
    seats: dict[int, list[_Place]] = {}
    drafts: dict[NodeId, Draft] = {}
    found = 0
    for place_in_job in order:
        part = part_of(spec, place_in_job)
        counts = search.counts(spec, part, available, drafts)
        found += sum(counts.values())
        if sum(counts.values()) < part.count:
            return [], found
        seats[place_in_job] = _take_all(spec, part, counts, available, drafts)
        if not seats[place_in_job]:
            return [], found - 1
    return [seat for place_in_job in sorted(seats) for seat in seats[place_in_job]], found


def _take_all(
    spec: JobSpec, part: Part, counts: Mapping[NodeId, int], available: Available, drafts: dict[NodeId, Draft]
) -> list[_Place]:
    """Give a part its seats; none where its first one finds no node that has what it alone needs.

    That one goes to the first node of the part that has it. Where none has, it is seated by itself and then the others.
    """
    if not part.first:
        return _take(part, counts, available, drafts)
    for node in sorted(counts, key=key_of):
        if (drafts.get(node) or available.capacities.of(node)).ports.isdisjoint(part.first):
            return _take(part, counts, available, drafts, leader=node)
    seats: list[_Place] = []
    for each in (part.alone, part.others):
        counts = search.counts(spec, each, available, drafts)
        if sum(counts.values()) < each.count:
            return []
        seats += _take(each, counts, available, drafts)
    return seats


def _take(
    part: Part,
    counts: Mapping[NodeId, int],
    available: Available,
    drafts: dict[NodeId, Draft],
    leader: NodeId | None = None,
) -> list[_Place]:
    """Give a part its seats, in the natural order of the nodes; those of the leader come first."""
    seats: list[_Place] = []
    for node in sorted(counts, key=lambda each: (each != leader, key_of(each))):
        if node not in drafts:
            drafts[node] = Draft(available.capacities.of(node))
        for _ in range(counts[node]):
            ports = part.ports if seats else part.ports | part.first
            seats.append((node, drafts[node].take(part.role.resources, ports)))
    return seats


def _demand(role: Role) -> tuple[int, int, int]:
    need = role.resources
    return (need.gpus, need.cpu_millis, need.memory or 0)
