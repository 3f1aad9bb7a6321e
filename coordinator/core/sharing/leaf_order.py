"""The first jobs of all projects, in the order in which they are next, as it is kept from one cycle to the next.

What is known of a project stays until it is in doubt, since something of the project or of its department has changed.
So a cycle costs what has changed, and no more because there are many projects.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Hashable, Iterator
from collections.abc import Set as AbstractSet
from heapq import merge
from typing import NamedTuple

from coordinator.core.sharing.precedence import Precedence
from muster.domain.ids import JobId


class RankedJob(NamedTuple):
    """A job of a project with its place among those of all projects."""

    key: Precedence
    """No two jobs have the same."""
    job: JobId
    leaf: str


class FirstJobs(NamedTuple):
    """The jobs of one project that may be next."""

    first: RankedJob
    """The first one, whether it is barred or not."""
    free: RankedJob | None
    """The first one that is not barred; None: all are."""


class LeafOrder:
    """Projects by what is known of their first jobs."""

    def __init__(self) -> None:
        self._known: dict[str, FirstJobs] = {}
        self._free: list[RankedJob] = []
        self._barred: list[RankedJob] = []
        """First jobs that are barred."""
        self._doubted: dict[str, None] = {}
        self._for_now: dict[str, None] = {}
        """Projects of which what is known holds for one cycle alone."""
        self._basis: Hashable = None

    # reading

    @property
    def doubted(self) -> Collection[str]:
        """The projects of which something has changed since it was worked out; they may change meanwhile."""
        return tuple(self._doubted)

    def doubts(self, leaf: str) -> bool:
        """Whether something of a project has changed since it was worked out."""
        return leaf in self._doubted

    def of(self, leaf: str) -> FirstJobs | None:
        """What was worked out of a project; None: nothing of it waits."""
        return self._known.get(leaf)

    @property
    def least(self) -> RankedJob | None:
        """The first of all jobs that are not barred, as it was worked out; None: there is none."""
        return self._free[0] if self._free else None

    def __iter__(self) -> Iterator[RankedJob]:
        """All first jobs, and all first ones that are not barred, in order; nothing may change meanwhile."""
        return merge(self._free, self._barred)

    def without(self, leaves: AbstractSet[str]) -> Iterator[RankedJob]:
        """The same, without those of some projects; costs as much as there are others, or as are asked for."""
        others = self._known.keys() - leaves
        if len(others) > len(leaves):
            return (each for each in self if each.leaf not in leaves)
        firsts = (self._known[leaf] for leaf in others)
        return iter(sorted({each for first, free in firsts for each in (first, free) if each is not None}))

    # changing

    def begin(self, basis: Hashable) -> None:
        """Begin another cycle; `basis`: what all depends on, so that all is in doubt if it is other than before."""
        self._doubted.update(dict.fromkeys(self._known if basis != self._basis else self._for_now))
        self._for_now.clear()
        self._basis = basis

    def doubt(self, leaf: str) -> None:
        """Hear that something of a project has changed."""
        self._doubted[leaf] = None

    def put(self, leaf: str, found: FirstJobs, *, lasting: bool) -> None:
        """Take what was worked out of a project; `lasting`: whether it holds for longer than this cycle."""
        self._doubted.pop(leaf, None)
        if not lasting:
            self._for_now[leaf] = None
        if found != self._known.get(leaf):
            self._take_out(leaf)
            self._known[leaf] = found
            if found.free is not None:
                insort(self._free, found.free)
            if found.first != found.free:
                insort(self._barred, found.first)

    def drop(self, leaf: str) -> None:
        """Hear that nothing of a project waits any more."""
        self._doubted.pop(leaf, None)
        self._take_out(leaf)

    def _take_out(self, leaf: str) -> None:
        known = self._known.pop(leaf, None)
        if known is None:
            return
        if known.free is not None:
            del self._free[bisect_left(self._free, known.free)]
        if known.first != known.free:
            del self._barred[bisect_left(self._barred, known.first)]
