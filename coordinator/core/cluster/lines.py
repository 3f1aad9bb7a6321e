"""Lines: jobs that may be placed now, by leaf and request class, so that a cycle looks at lines and not at jobs.

A *leaf* is a project. All jobs of a line fit or do not fit alike, so only the first one of a line is ever tried.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import TypeAlias, TypeVar

from coordinator.core.placement.request_classes import RequestClass
from muster.domain.ids import JobId

SortKey: TypeAlias = tuple[int, ...]
"""Where a job stands: the least goes first; no two jobs have the same."""

LineEntry: TypeAlias = tuple[SortKey, JobId]
"""A job with its key among the jobs of its leaf."""

_Key = TypeVar("_Key", bound=Hashable)


class Lines:
    """The lines of all leaves."""

    def __init__(self) -> None:
        self._leaves: dict[str, list[LineEntry]] = {}
        self._lines: dict[RequestClass, dict[str, list[LineEntry]]] = {}
        self._ending: dict[RequestClass, dict[str, dict[timedelta, list[LineEntry]]]] = {}
        """The jobs of each line that end by themselves, by the time within which they have."""
        self._changed: dict[str, None] = {}
        """The leaves of which a job came into a line or left one since somebody asked."""

    @property
    def leaves(self) -> Iterable[str]:
        """The leaves that have a job."""
        return self._leaves.keys()

    @property
    def request_classes(self) -> Iterable[RequestClass]:
        """The request classes that have a line."""
        return self._lines.keys()

    def has(self, leaf: str) -> bool:
        """Whether a leaf has a job."""
        return leaf in self._leaves

    def first_of(self, leaf: str) -> LineEntry:
        """The first job of a leaf that has one."""
        return self._leaves[leaf][0]

    def take_changed(self) -> Collection[str]:
        """The leaves of which a job came into a line or left one since this was asked last."""
        if not self._changed:
            return ()
        changed, self._changed = self._changed, {}
        return changed.keys()

    def of_class(self, request_class: RequestClass) -> Iterator[tuple[str, LineEntry]]:
        """The leaves that have a line of this class, each with the first job there."""
        return ((leaf, line[0]) for leaf, line in self._lines.get(request_class, {}).items())

    def first(self, leaf: str, request_class: RequestClass) -> LineEntry | None:
        """The first job of a line; None: it is empty."""
        line = self._lines.get(request_class, {}).get(leaf)
        return None if line is None else line[0]

    def line(self, leaf: str, request_class: RequestClass) -> Sequence[LineEntry]:
        """The jobs of a line, the first one first."""
        return self._lines.get(request_class, {}).get(leaf, ())

    def ending(self, leaf: str, request_class: RequestClass, within: timedelta) -> Iterator[Sequence[LineEntry]]:
        """The jobs of a line that have ended within some time of their placement, in parts, each in order."""
        parts = self._ending.get(request_class, {}).get(leaf, {})
        return (part for time, part in parts.items() if time <= within)

    @property
    def ending_classes(self) -> Collection[RequestClass]:
        """The request classes of which a job ends by itself; it follows what becomes of them."""
        return self._ending.keys()

    def add(
        self, entry: LineEntry, leaf: str, request_class: RequestClass, ends_within: timedelta | None = None
    ) -> None:
        """Have a job in its line; it must not be. `ends_within`: how long after its placement it has ended for sure."""
        insort(self._leaves.setdefault(leaf, []), entry)
        self._changed[leaf] = None
        insort(self._lines.setdefault(request_class, {}).setdefault(leaf, []), entry)
        if ends_within is not None:
            insort(self._ending.setdefault(request_class, {}).setdefault(leaf, {}).setdefault(ends_within, []), entry)

    def remove(
        self, entry: LineEntry, leaf: str, request_class: RequestClass, ends_within: timedelta | None = None
    ) -> None:
        """Have a job in no line any more; it must be in its own, with the same time."""
        _take_out(self._leaves, leaf, entry)
        self._changed[leaf] = None
        lines = self._lines[request_class]
        _take_out(lines, leaf, entry)
        if not lines:
            del self._lines[request_class]
        if ends_within is not None:
            leaves = self._ending[request_class]
            _take_out(leaves[leaf], ends_within, entry)
            if not leaves[leaf]:
                del leaves[leaf]
                if not leaves:
                    del self._ending[request_class]


def _take_out(lines: dict[_Key, list[LineEntry]], key: _Key, entry: LineEntry) -> None:
    line = lines[key]
    del line[bisect_left(line, entry)]
    if not line:
        del lines[key]
