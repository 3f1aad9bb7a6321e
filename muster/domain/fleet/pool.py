"""Pools: each node is in exactly one, and no gang lies in two."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from muster.domain.fleet.node import OWN_LABELS
from muster.domain.jobs.placing.topology import DEFAULT_LEVELS, NO_LEVEL
from muster.domain.jobs.rules.job_values import node_label
from muster.domain.quantity import format_duration

DEFAULT_POOL = "default"
"""The pool of nodes that are in no other."""
POOL_LABEL = "pool"
"""The label of a node that names its pool where no selector takes it; nodes cannot give it to themselves."""
NODE_TYPE_LABEL = "type"
"""The label of a node that names its type."""
MOST_POOL_LABELS = 16
"""Labels of one selector."""
MOST_TOPOLOGY_LEVELS = 5
"""Levels of one pool."""
SHORTEST_LONGEST_RUN = 60
"""Seconds that jobs of a pool may run at least."""


class PortionRule(StrEnum):
    """What becomes of an execution that uses more GPU memory than its portion."""

    TELL = "tell"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool that somebody has set up."""

    name: str
    selector: Mapping[str, str] = field(default_factory=dict)
    """Labels that its nodes carry; empty: its nodes are those whose label `pool` has its name."""
    longest_run: timedelta | None = None
    """How long user code may run there; None: as long as its job says."""
    levels: tuple[str, ...] = ()
    """Labels that say where its nodes are, the coarsest first; empty: those with the usual names."""
    enforce: PortionRule = PortionRule.TELL
    """What becomes of whoever uses more GPU memory than its portion there."""

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
        yield from self._faults_of_levels()

    def _faults_of_levels(self) -> Iterator[str]:
        if len(self.levels) > MOST_TOPOLOGY_LEVELS:
            yield f"it has {len(self.levels)} levels, and {MOST_TOPOLOGY_LEVELS} are the most"
        if len(set(self.levels)) < len(self.levels):
            yield "a level is named twice"
        for level in self.levels:
            if wrong := node_label(level):
                yield f"the level {wrong.message}"
            elif level == NO_LEVEL:
                yield f"no level is called {NO_LEVEL}, as jobs write that where they want none"
            elif level.startswith(OWN_LABELS):
                yield f"nodes give the label {level} to themselves, so it does not say where they are"


def pool_of(labels: Mapping[str, str], pools: Iterable[Pool] = ()) -> str:
    """The pool of a node with these labels: the first by name that takes it, else that of its label."""
    names = (pool.name for pool in pools if pool.takes(labels))
    return min(names, default=None) or labels.get(POOL_LABEL) or DEFAULT_POOL


def levels_of(name: str, pools: Iterable[Pool] = ()) -> tuple[str, ...]:
    """The labels that say where the nodes of a pool of this name are, the coarsest first."""
    own = next((pool.levels for pool in pools if pool.name == name), ())
    return own or DEFAULT_LEVELS


def told_of_pool(before: Pool | None, after: Pool | None) -> str:
    """What became of a pool, on one line: it as it was and as it is."""
    return f"{_said(before)} -> {_said(after)}"


def _said(pool: Pool | None) -> str:
    if pool is None:
        return "not set"
    labels = ", ".join(f"{name}={value}" for name, value in sorted(pool.selector.items())) or "nodes with its name"
    if pool.longest_run is not None:
        labels += f", longest run {format_duration(pool.longest_run)}"
    if pool.levels:
        labels += f", levels {' '.join(pool.levels)}"
    return labels if pool.enforce is PortionRule.TELL else f"{labels}, enforce {pool.enforce}"
