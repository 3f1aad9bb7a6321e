"""Pools: each node is in exactly one, and no gang lies in two."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from muster.domain.quantity import format_duration

DEFAULT_POOL = "default"
"""The pool of nodes that are in no other."""
POOL_LABEL = "pool"
"""The label of a node that names its pool where no selector takes it; nodes cannot give it to themselves."""
NODE_TYPE_LABEL = "type"
"""The label of a node that names its type."""
MOST_POOL_LABELS = 16
"""Labels of one selector."""
SHORTEST_LONGEST_RUN = 60
"""Seconds that jobs of a pool may run at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool that somebody has set up."""

    name: str
    selector: Mapping[str, str] = field(default_factory=dict)
    """Labels that its nodes carry; empty: its nodes are those whose label `pool` has its name."""
    longest_run: timedelta | None = None
    """How long user code may run there; None: as long as its job says."""

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether its selector takes a node with these labels."""
        return bool(self.selector) and self.selector.items() <= labels.items()

    def claims(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels would be in it if there were no other pool."""
        return self.takes(labels) or labels.get(POOL_LABEL) == self.name

    def faults(self) -> Iterator[str]:
        """What cannot be meant, a clause each."""
        if self.name == DEFAULT_POOL and self.selector:
            yield "it has the nodes that are in no other, so it takes no labels"
        if len(self.selector) > MOST_POOL_LABELS:
            yield f"it has {len(self.selector)} labels, and {MOST_POOL_LABELS} are the most"
        if self.longest_run is not None and self.longest_run < timedelta(seconds=SHORTEST_LONGEST_RUN):
            yield f"the longest run is at least {format_duration(timedelta(seconds=SHORTEST_LONGEST_RUN))}"


def pool_of(labels: Mapping[str, str], pools: Iterable[Pool] = ()) -> str:
    """The pool of a node with these labels: the first by name that takes it, else that of its label."""
    names = (pool.name for pool in pools if pool.takes(labels))
    return min(names, default=None) or labels.get(POOL_LABEL) or DEFAULT_POOL


def told_of_pool(before: Pool | None, after: Pool | None) -> str:
    """What became of a pool, on one line: it as it was and as it is."""
    return f"{_said(before)} -> {_said(after)}"


def _said(pool: Pool | None) -> str:
    if pool is None:
        return "not set"
    labels = ", ".join(f"{name}={value}" for name, value in sorted(pool.selector.items())) or "nodes with its name"
    return labels if pool.longest_run is None else f"{labels}, longest run {format_duration(pool.longest_run)}"
