"""Where a gang stays together: in which domains it is tried, and how it is spread over several of them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from coordinator.core.placement import search
from coordinator.core.placement.candidates import Available, Candidates
from coordinator.core.placement.capacity import Capacity, Key, key_of
from coordinator.core.placement.draft import Draft
from coordinator.core.placement.labels.domain import (
    Closeness,
    Domain,
    Levels,
    Path,
    PathKey,
    closeness,
    key_of_path,
    path_of,
)
from coordinator.core.placement.parts import Part, part_of
from coordinator.core.placement.topology.grid import Grid, Rank
from muster.domain.ids import NodeId
from muster.domain.jobs.job import JobSpec, Packing

MOST_DOMAINS_SAID = 3
"""Domains of which a refusal says how many executions fit there."""


def areas(spec: JobSpec, available: Available, close: Closeness, largest: int) -> Iterator[Available]:
    """Where in a pool the gang is tried, one after the other: in the smallest domains first, in the best of them first.

    Nodes that cost the job less come before domains, as they come before packing.

    Each of them takes every role by itself, but perhaps not all of them. `largest` is the role that needs most: what
    suits it best is best.
    """
    parts = _parts(spec)
    found = [Candidates(spec, part, available, {}) for part in parts]
    if not close.required and len(parts) == 1:
        if spec.packing is Packing.PACK and (node := search.alone(found[0])) is not None:
            yield replace(available, node=node)  # it is then as close together as can be
            return
        if not search.has_room(found[0]):
            yield available  # it fits nowhere, and how many would is counted without regard to domains
            return
    levels = close.levels
    grids = [Grid(each, levels) for each in found]
    least = grids[largest].least_cost(parts[largest].count, close.required)
    for depth in range(len(levels), max(close.required, 1) - 1, -1):
        if len(parts) == 1 and not least and (best := grids[0].best(parts[0].count, depth)) is not None:
            yield replace(available, levels=levels, domain=Domain(levels[:depth], best))
        for path, cost in _ranked(grids, parts, depth, largest):
            if cost == least or depth == close.required:
                yield replace(available, levels=levels, domain=Domain(levels[:depth], path))
    if not close.required:
        yield replace(available, levels=levels)


def counts(spec: JobSpec, part: Part, available: Available, drafts: Mapping[NodeId, Draft]) -> dict[NodeId, int]:
    """Executions of a part by node, in as few domains as can be; fewer in all than it has where no more fit."""
    levels, domain = available.levels, available.domain
    if available.node is not None and part.count == spec.size:
        return {available.node: part.count}
    if not levels or (domain is not None and len(domain.levels) == len(levels)):
        return search.counts(spec, part, available, drafts)
    candidates, left = Candidates(spec, part, replace(available, domain=None), drafts), part.count
    found: dict[NodeId, int] = {}
    for price in candidates.costs():
        grid = Grid(candidates, levels, price)
        for path, count in grid.plan(left, () if domain is None else domain.path):
            leaf = replace(available, domain=Domain(levels, path), price=price)
            found.update(search.counts(spec, replace(part, count=count), leaf, drafts))
            left -= count
        if not left:
            break
    return found


def in_order(nodes: Collection[NodeId], available: Available) -> list[NodeId]:
    """The order in which nodes get ranks, so that neighbours share a domain: by path, and then by name."""
    if len(nodes) == 1:
        return [*nodes]

    def key(node: NodeId) -> tuple[PathKey, Key]:
        labels = available.capacities.of(node).labels if available.levels else {}
        return (key_of_path(path_of(available.levels, labels)), key_of(node))

    return sorted(nodes, key=key)


def shortage(spec: JobSpec, available: Available, close: Closeness) -> tuple[int, str]:
    """How many executions fit into one domain of the level that is required, and in words."""
    level, rooms = close.levels[close.required - 1], _rooms(spec, available, close)
    most = max((seats for _, seats in rooms), default=0)
    said = [f"{'/'.join(filter(None, path))} has {seats}" for path, seats in rooms[:MOST_DOMAINS_SAID] if seats]
    where = f" ({', '.join(said)})" if said else ""
    return most, f"topology: at most {most} of {spec.size} in a {level}{where}"


def lacks(spec: JobSpec, available: Available, levels: Levels) -> dict[NodeId, str]:
    """What keeps a gang that requires a level off each node of a pool with these levels: the node, or its domain."""
    level, parts = spec.topology.required, _parts(spec)
    close = None if level not in levels else closeness(spec, levels)
    if close is None:
        nodes = (each for each in available.capacities if available.has(each.pool))
        return {each.node: f"is in pool {each.pool}, which has no level {level}" for each in nodes}
    rooms = dict(_rooms(spec, available, close))
    found: dict[NodeId, str] = {}
    for capacity in available.capacities:
        if not available.has(capacity.pool):
            continue
        draft, path = Draft(capacity), path_of(close.levels[: close.required], capacity.labels)
        if None in path:
            missing = close.levels[path.index(None)]
            found[capacity.node] = f"does not carry the label {missing}, so it is in no {level}"
        elif not any(draft.slots(spec, part) for part in parts):
            found[capacity.node] = draft.lack(spec, parts[0])
        else:
            name = "/".join(filter(None, path))
            found[capacity.node] = f"is in the {level} {name}, which has room for {rooms.get(path, 0)} of {spec.size}"
    return found


def is_together(spec: JobSpec, capacities: Iterable[Capacity]) -> bool:
    """Whether nodes are as close to each other as a job requires."""
    required = spec.topology.required
    if required is None:
        return True
    nodes = list(capacities)
    if any(required not in capacity.levels or required not in capacity.labels for capacity in nodes):
        return False
    paths = set()
    for capacity in nodes:
        levels = capacity.levels[: capacity.levels.index(required) + 1]
        carried = tuple(level for level in levels if any(level in each.labels for each in nodes))
        paths.add(path_of(carried, capacity.labels))
    return len(paths) <= 1 and not any(None in path for path in paths)


def _rooms(spec: JobSpec, available: Available, close: Closeness) -> Sequence[tuple[Path, int]]:
    """The domains of the level that is required with how many executions fit there, the most first."""
    rooms: dict[Path, int] = {}
    for part in _parts(spec):
        grid = Grid(Candidates(spec, part, available, {}), close.levels)
        for path, seats in grid.most(close.required):
            rooms[path] = rooms.get(path, 0) + min(seats, part.count)
    least = min(spec.size - 1, max(rooms.values(), default=0))
    return sorted(
        ((path, min(seats, least)) for path, seats in rooms.items()),
        key=lambda room: (-room[1], key_of_path(room[0])),
    )


def _ranked(grids: Sequence[Grid], parts: Sequence[Part], depth: int, largest: int) -> Iterator[tuple[Path, int]]:
    """The domains of so many levels that take each part by itself, the best first, with what they cost."""
    ranks = [grid.ranks(part.count, depth) for grid, part in zip(grids, parts, strict=True)]
    by_rank: dict[Rank, list[Path]] = {}
    for path, rank in ranks[largest].items():
        if all(path in each for each in ranks):
            by_rank.setdefault(rank, []).append(path)
    for rank in sorted(by_rank):
        for path in sorted(by_rank[rank], key=key_of_path):
            yield path, rank[0]


def _parts(spec: JobSpec) -> list[Part]:
    return [part_of(spec, number) for number in range(len(spec.roles))]
