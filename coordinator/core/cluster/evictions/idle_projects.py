"""The projects for whose jobs nobody was found to evict, as long as nothing has changed since."""

from collections.abc import Set as AbstractSet
from datetime import datetime


class IdleProjects:
    """Projects that need no other look in one state of the fleet."""

    def __init__(self) -> None:
        self._state: object = None
        self._until: dict[str, datetime | None] = {}
        self._first_until: datetime | None = None
        """The first of the times until which projects are idle; None: no time ends that."""

    def begin(self, state: object, now: datetime) -> None:
        """Forget all in another state of the fleet, and else those for which there may be somebody by now."""
        if state != self._state:
            self._state = state
            self._until.clear()
            self._first_until = None
        elif self._first_until is not None and now >= self._first_until:
            self._until = {each: until for each, until in self._until.items() if until is None or now < until}
            self._first_until = min(filter(None, self._until.values()), default=None)

    @property
    def names(self) -> AbstractSet[str]:
        """Projects for whose jobs nobody would be found."""
        return self._until.keys()

    def note(self, project: str, until: datetime | None) -> None:
        """Remember that nobody was found; `until`: then some are not safe any more."""
        self._until[project] = until
        if until is not None and (self._first_until is None or until < self._first_until):
            self._first_until = until

    def look_again(self, project: str) -> None:
        """Hear that a project has other jobs that wait."""
        self._until.pop(project, None)
