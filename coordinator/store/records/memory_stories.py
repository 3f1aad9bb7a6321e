"""Events of nodes and of the fleet in memory."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import count, islice
from operator import attrgetter

from coordinator.core.records import StoryChange, TrimStory
from muster.domain.event import StoryEvent, StorySubject


class MemoryStories:
    """Keeps the stories of nodes and of the fleet for as long as it lives."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._events: dict[StorySubject, dict[str, StoryEvent]] = {}
        """Events by subject and id, in the order of their numbers."""

    def events(self, subject: StorySubject, after: int, most: int) -> tuple[StoryEvent, ...]:
        """Events of a subject after a number."""
        every = self._events.get(subject, {}).values()
        return tuple(islice((event for event in every if event.number > after), most))

    def all_events(self, after: int, most: int) -> tuple[StoryEvent, ...]:
        """Events of all subjects after a number."""
        every = (event for story in self._events.values() for event in story.values() if event.number > after)
        return tuple(sorted(every, key=attrgetter("number"))[:most])

    @property
    def newest(self) -> int:
        """The number of the newest event that is there."""
        return max((event.number for story in self._events.values() for event in story.values()), default=0)

    def apply(self, changes: Iterable[StoryChange]) -> None:
        """Store events and trim stories, in order."""
        for change in changes:
            if isinstance(change, TrimStory):
                self._trim(change)
            else:
                event = replace(change.event, number=next(self._numbers))
                self._events.setdefault(event.subject, {}).setdefault(event.id, event)

    def _trim(self, trim: TrimStory) -> None:
        stories = self._events.values() if trim.subject is None else (self._events.get(trim.subject, {}),)
        newest_first = sorted((event for story in stories for event in story.values()), key=attrgetter("number"))[::-1]
        for event in newest_first[trim.keep :]:
            del self._events[event.subject][event.id]
