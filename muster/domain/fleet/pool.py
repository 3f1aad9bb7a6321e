"""Pools: each node is in exactly one, and no gang lies in two."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

DEFAULT_POOL = "default"
"""The pool of nodes that are in no other."""
POOL_LABEL = "pool"
"""The label of a node that names its pool where no selector takes it; nodes cannot give it to themselves."""
NODE_TYPE_LABEL = "type"
"""The label of a node that names its type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool that somebody has set up."""

    name: str
    selector: Mapping[str, str]
    """Labels that its nodes carry, at least one."""

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels may be in it."""
        return bool(self.selector) and self.selector.items() <= labels.items()


def pool_of(labels: Mapping[str, str], pools: Iterable[Pool] = ()) -> str:
    """The pool of a node with these labels: the first by name that takes it, else that of its label."""
    names = (pool.name for pool in pools if pool.takes(labels))
    return min(names, default=None) or labels.get(POOL_LABEL) or DEFAULT_POOL
