"""What has changed, in order: an account that a reader can go on with wherever it stopped, and that does not grow."""

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

Thing = TypeVar("Thing", bound=Hashable)

GONE_KEPT = 20_000
"""Things that are gone and still told of; a reader that has missed an older one begins anew."""


class Revised(NamedTuple, Generic[Thing]):
    """A thing at its newest change."""

    revision: int
    key: Thing
    scope: str
    """What decides who may hear of it; empty: nothing does."""
    there: bool
    """False: it is gone."""


class Revisions(Generic[Thing]):
    """Each thing once, at the revision of its newest change."""

    def __init__(self, gone_kept: int = GONE_KEPT) -> None:
        self._gone_kept = gone_kept
        self._there: dict[Thing, tuple[int, str]] = {}
        """Revision and scope of what is there, the oldest change first."""
        self._gone: dict[Thing, tuple[int, str]] = {}
        self._newest = 0
        self._complete_from = 0

    @property
    def newest(self) -> int:
        """The revision of the newest change."""
        return self._newest

    @property
    def complete_from(self) -> int:
        """The revision before which things went that are forgotten: a reader that is further back begins anew."""
        return self._complete_from

    def __contains__(self, key: object) -> bool:
        return key in self._there

    def note(self, key: Thing, scope: str, revision: int | None = None) -> None:
        """Note that a thing is new or other than before; `revision`: by the count of somebody else."""
        self._gone.pop(key, None)
        self._there.pop(key, None)
        self._there[key] = (self._next(revision), scope)

    def note_gone(self, key: Thing, revision: int | None = None) -> None:
        """Note that a thing is gone; one that was not there stays as it is."""
        known = self._there.pop(key, None)
        if known is None:
            return
        self._gone[key] = (self._next(revision), known[1])
        while len(self._gone) > self._gone_kept:
            self._complete_from, _ = self._gone.pop(next(iter(self._gone)))

    def keep_only(self, is_there: Callable[[Thing], bool]) -> None:
        """Note of everything for which a function says so that it is gone."""
        for key in [key for key in self._there if not is_there(key)]:
            self.note_gone(key)

    def move_to(self, revision: int, complete_from: int) -> None:
        """Stand where somebody else does who counts the changes."""
        self._newest = max(self._newest, revision)
        self._complete_from = max(self._complete_from, complete_from)

    def since(self, revision: int) -> list[Revised[Thing]]:
        """What has changed after a revision, in that order; costs in proportion to that alone."""
        found = [*_after(self._there, revision, there=True), *_after(self._gone, revision, there=False)]
        found.sort(key=lambda each: each.revision)
        return found

    def _next(self, revision: int | None) -> int:
        self._newest = self._newest + 1 if revision is None else max(self._newest, revision)
        return self._newest


def _after(changes: dict[Thing, tuple[int, str]], revision: int, *, there: bool) -> Iterator[Revised[Thing]]:
    for key, (at, scope) in reversed(changes.items()):
        if at <= revision:
            return
        yield Revised(at, key, scope, there)
