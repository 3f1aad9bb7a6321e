"""Events of nodes and of the fleet in SQL: one table, which names the subject of each event."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

from sqlalchemy import Connection, Engine, bindparam, delete, func, select

from coordinator.core.records import KeepStoryEvent, StoryChange, TrimStory
from coordinator.store import schema
from coordinator.store.dialect import Written, addition, reading
from coordinator.store.records.bodies import decoded
from muster.domain.event import FLEET_SUBJECT, FleetEvent, NodeEvent, StoryEvent, StorySubject

AnyEvent = TypeVar("AnyEvent", NodeEvent, FleetEvent)


class SqlStories:
    """Keeps the stories of nodes and of the fleet."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        events, given = schema.story_events, schema.GIVEN_OF_STORIES
        self._add = Written(engine.dialect, events, addition(engine.dialect, events, ("id",)), given)
        self._select = (
            select(events.c.number, events.c.body)
            .where(events.c.subject == bindparam("of"), events.c.number > bindparam("past"))
            .order_by(events.c.number)
            .limit(bindparam("most"))
        )
        self._select_all = (
            select(events.c.number, events.c.subject, events.c.body)
            .where(events.c.number > bindparam("past"))
            .order_by(events.c.number)
            .limit(bindparam("most"))
        )
        self._select_newest = select(func.max(events.c.number))
        all_told = events.alias("all_told")
        newest = select(all_told.c.number).order_by(all_told.c.number.desc()).limit(1).offset(bindparam("keep"))
        newest_of_one = newest.where(all_told.c.subject == bindparam("of"))
        self._trim = delete(events).where(
            events.c.subject == bindparam("of"), events.c.number <= newest_of_one.scalar_subquery()
        )
        self._trim_all = delete(events).where(events.c.number <= newest.scalar_subquery())

    def events(self, kind: type[AnyEvent], subject: StorySubject, after: int, most: int) -> tuple[AnyEvent, ...]:
        """Events of a subject, which are of this kind, after a number."""
        with reading(self._engine) as connection:
            found = connection.execute(self._select, {"of": subject, "past": after, "most": most}).all()
            events = decoded(schema.story_events, kind, (body for _, body in found))
            return tuple(replace(event, number=number) for event, (number, _) in zip(events, found, strict=True))

    def all_events(self, after: int, most: int) -> tuple[StoryEvent, ...]:
        """Events of all subjects after a number."""
        with reading(self._engine) as connection:
            found = connection.execute(self._select_all, {"past": after, "most": most}).all()
        return tuple(replace(_decoded(subject, body), number=number) for number, subject, body in found)

    def newest(self, connection: Connection) -> int:
        """The number of the newest event that is stored."""
        return int(connection.scalar(self._select_newest) or 0)

    def apply(self, connection: Connection, changes: Iterable[StoryChange]) -> None:
        """Store events and trim stories, in order; like changes that follow each other are one statement."""
        for kind, alike in groupby(changes, key=type):
            if kind is KeepStoryEvent:
                self._add.execute(
                    connection, [schema.story_row(each.event) for each in alike if isinstance(each, KeepStoryEvent)]
                )
            else:
                self._apply_trims(connection, [each for each in alike if isinstance(each, TrimStory)])

    def _apply_trims(self, connection: Connection, trims: Sequence[TrimStory]) -> None:
        if each_one := [{"of": trim.subject, "keep": trim.keep} for trim in trims if trim.subject is not None]:
            connection.execute(self._trim, each_one)
        for trim in trims:
            if trim.subject is None:
                connection.execute(self._trim_all, {"keep": trim.keep})


def _decoded(subject: str, body: str) -> StoryEvent:
    if subject == FLEET_SUBJECT:
        return next(iter(decoded(schema.story_events, FleetEvent, [body])))
    return next(iter(decoded(schema.story_events, NodeEvent, [body])))
