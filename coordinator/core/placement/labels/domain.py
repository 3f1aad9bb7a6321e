"""Domains: nodes that have the same labels at some levels, such as zone and rack."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from coordinator.core.placement.capacity import Capacity
from muster.domain.jobs.job import JobSpec, Packing
from muster.domain.jobs.placing.topology import NO_LEVEL
from muster.domain.natural_order import natural

Levels = tuple[str, ...]
"""Labels, the coarsest first."""
Path = tuple[str | None, ...]
"""The values of a node at some levels; None from the first one on that it does not carry."""
PathKey = tuple[tuple[bool, str], ...]
"""Sorts paths in natural order; what is not carried comes last."""


@dataclass(frozen=True, slots=True)
class Domain:
    """All nodes with one path."""

    levels: Levels
    path: Path

    def has(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels is one of them."""
        return path_of(self.levels, labels) == self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Closeness:
    """How close the nodes of a gang are to be in one pool."""

    levels: Levels
    """The levels that count; the gang goes to as few domains of the last one as can be."""
    required: int = 0
    """How many of them all its nodes have in common."""


class PoolLevels:
    """The levels of each pool."""

    def __init__(self) -> None:
        self._levels: dict[str, Levels] = {}
        self._carried: Counter[tuple[str, str]] = Counter()
        """How many nodes of a pool carry the label of a level."""

    def of(self, pool: str) -> Levels:
        """The levels of a pool, without those that none of its nodes carries."""
        return tuple(level for level in self._levels.get(pool, ()) if self._carried[pool, level])

    def change(self, before: Capacity | None, after: Capacity | None) -> None:
        """Hear of a node that is new, other than before, or gone."""
        for capacity, change in ((before, -1), (after, 1)):
            if capacity is not None:
                self._levels[capacity.pool] = capacity.levels
                for level in capacity.levels:
                    if level in capacity.labels:
                        self._carried[capacity.pool, level] += change


def path_of(levels: Levels, labels: Mapping[str, str]) -> Path:
    """The path of a node with these labels."""
    path: list[str | None] = []
    for level in levels:
        value = labels.get(level)
        if value is None:
            break
        path.append(value)
    path += [None] * (len(levels) - len(path))
    return tuple(path)


@lru_cache(maxsize=100_000)
def key_of_path(path: Path) -> PathKey:
    """Where a path stands among others."""
    return tuple((value is None, natural(value or "")) for value in path)


def closeness(spec: JobSpec, levels: Levels) -> Closeness | None:
    """How close the nodes of a gang are to be in a pool that has these levels; None: its nodes may be anywhere.

    The level that it requires must be one of them; one that it only prefers need not.
    """
    wish = spec.topology
    required = 0 if wish.required is None else levels.index(wish.required) + 1
    preferred = 0
    if wish.preferred is None and spec.packing is Packing.PACK and spec.size > 1:
        preferred = len(levels) if any(role.resources.gpus for role in spec.roles) else 0
    elif wish.preferred in levels and wish.preferred != NO_LEVEL:
        preferred = levels.index(wish.preferred) + 1
    depth = max(required, preferred)
    return Closeness(levels=levels[:depth], required=required) if depth else None
