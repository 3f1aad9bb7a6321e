"""Gang placement: all executions of a job get their seats in one decision, or none does, with the reason per node.

Pure and deterministic: the same job and the same capacities always give the same placement. The cost grows with the
size of the gang and with the number of bins, not with the number of nodes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from coordinator.core.placement import search
from coordinator.core.placement.candidates import Available, Candidates
from coordinator.core.placement.capacity import key_of
from coordinator.core.placement.draft import Draft
from coordinator.core.placement.labels.domain import Levels, closeness
from coordinator.core.placement.parts import Part, part_of
from coordinator.core.placement.topology import together
from muster.domain.ids import GpuUuid, NodeId
from muster.domain.jobs.explanation import NodeRefusal
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.quantity import counted

MOST_REORDERED_ROLES = 3
"""Roles of a job at the most that are seated in every order before the job counts as one that does not fit."""

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
    pools: int = 1
    """How many pools were looked at; a gang lies in one."""
    topology: str = ""
    """Why it does not fit closely enough, in words; empty: that does not matter."""

    def __str__(self) -> str:
        if not self.nodes:
            return f"needs room for {counted(self.wanted, 'execution')}, but no node has joined"
        fit = f"{self.found} {'fits' if self.found == 1 else 'fit'}"
        if self.topology:
            fit = self.topology
        elif self.pools > 1:
            fit = f"at most {fit} in one pool"
        return f"needs room for {counted(self.wanted, 'execution')} at once; {fit}"


def place(spec: JobSpec, available: Available) -> Placement | NoFit:
    """Seats for the whole gang, or NoFit.

    The pools are tried one after the other; no gang lies in two of them.

    `pack` fills as few nodes as possible and takes the tightest fit last, which keeps whole nodes free for the next
    large job; `spread` takes one more execution wherever the job has the fewest. Ranks are dealt out in node order, so
    neighbouring ranks share a node. Roles are seated in the order of the job; where that leaves no room for a role that
    needs much, the one that needs most is seated first; and else the one that fewest nodes can take. Up to three roles
    are tried in all orders. So identical executions find seats wherever there are any, and several roles mostly do.
    """
    fits: list[NoFit] = []
    for pool in available.by_pool():
        fit = _place_in_pool(spec, pool)
        if isinstance(fit, Placement):
            return fit
        fits.append(fit)
    if not fits:
        return NoFit(wanted=spec.size, found=0, nodes=len(available))
    return replace(max(fits, key=lambda fit: fit.found), pools=len(fits))


def _place_in_pool(spec: JobSpec, pool: Available) -> Placement | NoFit:
    as_given, found = range(len(spec.roles)), 0
    by_demand = sorted(as_given, key=lambda place_in_job: _demand(spec.roles[place_in_job]), reverse=True)
    levels = _levels(pool)
    if spec.topology.required is not None and spec.topology.required not in levels:
        return NoFit(wanted=spec.size, found=0, nodes=len(pool), topology=_no_level(spec.topology.required, levels))
    close = closeness(spec, levels)
    for available in (pool,) if close is None else together.areas(spec, pool, close, by_demand[0]):
        seats, found = _seat(spec, available, as_given)
        others = _other_orders(spec, available, by_demand)
        while len(seats) < spec.size and (order := next(others, None)) is not None:
            seats, _ = _seat(spec, available, order)
        if len(seats) == spec.size:
            places = enumerate(seats)
            return Placement(seats=tuple(Seat(rank=rank, node=node, gpus=gpus) for rank, (node, gpus) in places))
    if close is not None and close.required:
        most, words = together.shortage(spec, pool, close)
        return NoFit(wanted=spec.size, found=most, nodes=len(pool), topology=words)
    return NoFit(wanted=spec.size, found=found, nodes=len(pool))


def _other_orders(spec: JobSpec, available: Available, by_demand: Sequence[int]) -> Iterator[Sequence[int]]:
    """The orders in which roles are seated where that of the job leaves no room for one of them, each once."""
    tried = {tuple(range(len(by_demand)))}
    for order in _all_orders(spec, available, by_demand) if len(by_demand) > 1 else ():
        if order not in tried:
            tried.add(order)
            yield order


def _all_orders(spec: JobSpec, available: Available, by_demand: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The orders that promise most, and then, of few roles, all."""
    yield tuple(by_demand)
    # A role that can go anywhere leaves room for one that cannot only if it comes after it.
    takers = [search.nodes_for_one(spec, part_of(spec, number), available) for number in range(len(by_demand))]
    yield tuple(sorted(range(len(by_demand)), key=takers.__getitem__))
    if len(by_demand) <= MOST_REORDERED_ROLES:
        yield from permutations(range(len(by_demand)))


def _levels(pool: Available) -> Levels:
    """The levels of the one pool in which to look."""
    return pool.capacities.levels.of(pool.pools[0]) if pool.pools else ()


def _no_level(level: str, levels: Levels) -> str:
    known = f"its levels are {', '.join(levels)}" if levels else "its nodes say none"
    return f"topology: its pool has no level {level}; {known}"


def fits(spec: JobSpec, available: Available) -> bool:
    """Whether the gang fits; cheaper than to place it where its executions are identical."""
    part = part_of(spec, 0)
    if len(spec.roles) > 1 or part.first or spec.topology.required is not None:
        return isinstance(place(spec, available), Placement)
    return any(search.has_room(Candidates(spec, part, pool, {})) for pool in available.by_pool())


def refusals(spec: JobSpec, available: Available) -> tuple[NodeRefusal, ...]:
    """What each node lacks for one more execution, by node; for a job that does not fit."""
    drafts: dict[NodeId, Draft] = {}
    lacking: dict[str, Part] = {}
    apart: dict[NodeId, str] = {}
    for pool in available.by_pool():
        if spec.topology.required is not None:
            apart |= together.lacks(spec, pool, _levels(pool))
            continue
        found = _lacking(spec, pool, drafts)
        if found is None:
            return ()
        lacking.update(dict.fromkeys(pool.pools or (), found))
    out = {*available.closed, available.without}
    every = (capacity for capacity in available.capacities if capacity.node not in out)
    return tuple(
        NodeRefusal(
            node=capacity.node,
            reason=apart.get(capacity.node) or _reason(spec, drafts.get(capacity.node) or Draft(capacity), lacking),
        )
        for capacity in sorted(every, key=lambda capacity: key_of(capacity.node))
    )


def _reason(spec: JobSpec, draft: Draft, lacking: Mapping[str, Part]) -> str:
    part = lacking.get(draft.capacity.pool)
    return f"is in pool {draft.capacity.pool}" if part is None else draft.reason(spec, part)


def _lacking(spec: JobSpec, available: Available, drafts: dict[NodeId, Draft]) -> Part | None:
    """The part of which not all find a place, what has found one being taken; None: there is none."""
    own: dict[NodeId, Draft] = {}
    for place_in_job in range(len(spec.roles)):
        part = part_of(spec, place_in_job)
        counts = together.counts(spec, part, available, own)
        whole = sum(counts.values()) == part.count
        if not whole:
            _take(part, counts, available, own)
        elif _take_all(spec, part, counts, available, own):
            continue
        drafts.update(own)
        return part.alone if whole else part
    return None


def _seat(spec: JobSpec, available: Available, order: Iterable[int]) -> tuple[list[_Place], int]:
    """Places by rank, the roles seated in this order, and how many found one; no places if not all did."""
    seats: dict[int, list[_Place]] = {}
    drafts: dict[NodeId, Draft] = {}
    found = 0
    for place_in_job in order:
        part = part_of(spec, place_in_job)
        counts = together.counts(spec, part, available, drafts)
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
    for node in together.in_order(counts, available):
        if (drafts.get(node) or available.capacities.of(node)).ports.isdisjoint(part.first):
            return _take(part, counts, available, drafts, leader=node)
    seats: list[_Place] = []
    for each in (part.alone, part.others):
        counts = together.counts(spec, each, available, drafts)
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
    nodes = together.in_order(counts, available)
    for node in nodes if leader is None else sorted(nodes, key=lambda each: each != leader):
        if node not in drafts:
            drafts[node] = Draft(available.capacities.of(node))
        for _ in range(counts[node]):
            ports = part.ports if seats else part.ports | part.first
            seats.append((node, drafts[node].take(part.role.resources, ports)))
    return seats


def _demand(role: Role) -> tuple[int, int, int]:
    need = role.resources
    return (need.gpus, need.cpu_millis, need.memory or 0)
