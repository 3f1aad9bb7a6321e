"""The store on disk: SQLAlchemy Core over SQLite, written so that another database needs `dialect` only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, assert_never

from sqlalchemy import Connection, Engine, Select, Table, bindparam, delete, func, select

from coordinator.core.checkpoint_part import CheckpointPart, DropCheckpoint
from coordinator.core.quota_meter import QuotaMeter
from coordinator.core.records import (
    Attempt,
    Change,
    DropDepartment,
    DropEvents,
    DropExecutions,
    DropJob,
    DropNode,
    DropPool,
    DropProject,
    DropWindow,
    Execution,
    Job,
    KeepEvent,
    KeepSpent,
    KeepStoryEvent,
    Node,
    Put,
    Record,
    SpentChange,
    StoryChange,
    TrimSpent,
    TrimStory,
)
from coordinator.core.spent import SpentSums, SpentWaits, SpentWish
from coordinator.store import schema
from coordinator.store.codec import RecordT
from coordinator.store.dialect import Written, addition, connect, explained, reading, upsert
from coordinator.store.records.accounts import SqlAccounts
from coordinator.store.records.bodies import decoded
from coordinator.store.records.stories import SqlStories
from coordinator.store.schema_version import bring_up_to_date
from coordinator.store.store import Snapshot, snapshot_of
from muster.domain.event import FLEET_SUBJECT, FleetEvent, JobEvent, NodeEvent, StoryEvent, node_subject
from muster.domain.fleet.access import Project
from muster.domain.fleet.pool import Pool
from muster.domain.fleet.quota import Department
from muster.domain.fleet.window import Window
from muster.domain.ids import JobId, NodeId
from muster.domain.notifications.happening import EventPlace

_PARENTS_FIRST = (
    schema.departments,
    schema.projects,
    schema.jobs,
    schema.attempts,
    schema.executions,
    schema.checkpoint_parts,
    schema.nodes,
    schema.windows,
    schema.pools,
    schema.meters,
)
_NAMED = (schema.departments, schema.projects, schema.nodes, schema.windows, schema.pools)
"""Tables whose rows are dropped by name."""

_ALL_EVENTS = (
    select(schema.job_events.c.number, schema.job_events.c.body)
    .where(schema.job_events.c.number > bindparam("past"))
    .order_by(schema.job_events.c.number)
    .limit(bindparam("most"))
)


class SqlStore:
    """Keeps records in a database. One thread loads and commits; others may ask for `executions` meanwhile."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._upserts = {
            table: Written(engine.dialect, table, upsert(engine.dialect, table)) for table in _PARENTS_FIRST
        }
        events, given = schema.job_events, schema.GIVEN_OF_EVENTS
        self._add_events = Written(engine.dialect, events, addition(engine.dialect, events, schema.EVENT_ID), given)
        self._delete_events = delete(events).where(
            events.c.job == bindparam("of"), events.c.attempt == bindparam("number")
        )
        self._select_events = (
            select(events.c.number, events.c.body)
            .where(events.c.job == bindparam("of"), events.c.number > bindparam("past"))
            .order_by(events.c.number)
            .limit(bindparam("most"))
        )
        self._stories = SqlStories(engine)
        self._accounts = SqlAccounts(engine)
        self._delete_job = delete(schema.jobs).where(schema.jobs.c.id == bindparam("key"))
        self._delete_meters = delete(schema.meters).where(schema.meters.c.project == bindparam("of"))
        members = (schema.executions.c.job == bindparam("of"), schema.executions.c.attempt == bindparam("number"))
        parts = schema.checkpoint_parts.c
        self._delete_inside = {
            schema.executions: delete(schema.executions).where(*members),
            schema.checkpoint_parts: delete(schema.checkpoint_parts).where(
                parts.job == bindparam("of"), parts.attempt == bindparam("number"), parts.name == bindparam("key")
            ),
        }
        self._select_members = select(schema.executions.c.body).where(*members).order_by(schema.executions.c.rank)
        self._delete_named = {table: delete(table).where(table.c.name == bindparam("key")) for table in _NAMED}

    @classmethod
    def open(cls, database: Path | str) -> "SqlStore":
        """The store in a SQLite file (made if it is not there) or at an SQLAlchemy URL, brought to this version.

        Raises StoreError for a file that is no database, is damaged, or was written by a newer version.
        """
        bring_up_to_date(database)
        return cls(connect(database))

    def load(self) -> Snapshot:
        """Everything, as last committed."""
        with explained(self._engine), self._engine.connect() as connection:
            return snapshot_of(
                chain(
                    _records(connection, schema.jobs, Job),
                    _records(connection, schema.attempts, Attempt),
                    _records(connection, schema.executions, Execution),
                    _records(connection, schema.checkpoint_parts, CheckpointPart),
                    _records(connection, schema.nodes, Node),
                    _records(connection, schema.projects, Project),
                    _records(connection, schema.departments, Department),
                    _records(connection, schema.windows, Window),
                    _records(connection, schema.pools, Pool),
                    _records(connection, schema.meters, QuotaMeter),
                )
            )

    def executions(self, job: JobId, attempt: int) -> tuple[Execution, ...]:
        """The executions of one attempt as last committed, by rank."""
        with reading(self._engine) as connection:
            found = connection.execute(self._select_members, {"of": job, "number": attempt})
            return tuple(decoded(schema.executions, Execution, found.scalars()))

    def events(self, job: JobId, after: int, most: int) -> tuple[JobEvent, ...]:
        """Events of a job after a number."""
        return self._read_events(self._select_events, {"of": job, "past": after, "most": most})

    def node_events(self, node: NodeId, after: int, most: int) -> tuple[NodeEvent, ...]:
        """Events of a node after a number."""
        return self._stories.events(NodeEvent, node_subject(node), after, most)

    def fleet_events(self, after: int, most: int) -> tuple[FleetEvent, ...]:
        """Events of the fleet after a number."""
        return self._stories.events(FleetEvent, FLEET_SUBJECT, after, most)

    def all_job_events(self, after: int, most: int) -> tuple[JobEvent, ...]:
        """Events of all jobs after a number."""
        return self._read_events(_ALL_EVENTS, {"past": after, "most": most})

    def all_stories(self, after: int, most: int) -> tuple[StoryEvent, ...]:
        """Events of all nodes and of the fleet after a number."""
        return self._stories.all_events(after, most)

    def newest_place(self) -> EventPlace:
        """The numbers of the newest events."""
        with reading(self._engine) as connection:
            jobs = connection.scalar(select(func.max(schema.job_events.c.number)))
            return EventPlace(int(jobs or 0), self._stories.newest(connection))

    def spent(self, wish: SpentWish) -> SpentSums:
        """What attempts have held in a span of time."""
        return self._accounts.sums(wish)

    def waits(self, wish: SpentWish, seen_at: datetime) -> tuple[SpentWaits, ...]:
        """How long attempts were in the queue, by group."""
        return self._accounts.waits(wish, seen_at)

    def commit(self, changes: Sequence[Change]) -> None:  # noqa: C901, PLR0912 - a case for each kind of change
        """Apply all changes in one transaction; StoreError: none of them is there."""
        with explained(self._engine), self._engine.begin() as connection:
            batch = _Batch()
            for change in changes:
                match change:
                    case Put(record=record):
                        batch.add(record)
                    case DropJob(job=job):
                        self._write(connection, batch)
                        connection.execute(self._delete_job, {"key": job})
                    case DropExecutions(job=job, attempt=number):
                        self._write(connection, batch)
                        connection.execute(self._delete_inside[schema.executions], {"of": job, "number": number})
                    case DropCheckpoint(job=job, checkpoint=(number, name)):
                        self._write(connection, batch)
                        key = {"of": job, "number": number, "key": name}
                        connection.execute(self._delete_inside[schema.checkpoint_parts], key)
                    case KeepEvent(event=event):
                        batch.events.append(schema.event_row(event))
                    case KeepStoryEvent() | TrimStory():
                        batch.stories.append(change)
                    case KeepSpent() | TrimSpent():
                        batch.spent.append(change)
                    case DropEvents(job=job, attempt=number):
                        connection.execute(self._delete_events, {"of": job, "number": number})
                    case DropNode(node=name):
                        self._drop(connection, batch, schema.nodes, name)
                    case DropProject(project=name):
                        self._drop(connection, batch, schema.projects, name)
                        connection.execute(self._delete_meters, {"of": name})
                    case DropDepartment(department=name):
                        self._drop(connection, batch, schema.departments, name)
                    case DropWindow(window=name):
                        self._drop(connection, batch, schema.windows, name)
                    case DropPool(pool=name):
                        self._drop(connection, batch, schema.pools, name)
                    case _:
                        assert_never(change)
            self._write(connection, batch)

    def close(self) -> None:
        """Let go of the database; what was committed stays."""
        self._engine.dispose()

    def _read_events(self, statement: Select[Any], of: Mapping[str, object]) -> tuple[JobEvent, ...]:
        with reading(self._engine) as connection:
            found = connection.execute(statement, of).all()
            events = decoded(schema.job_events, JobEvent, (body for _, body in found))
            return tuple(replace(event, number=number) for event, (number, _) in zip(events, found, strict=True))

    def _drop(self, connection: Connection, batch: "_Batch", table: Table, name: str) -> None:
        self._write(connection, batch)
        connection.execute(self._delete_named[table], {"key": name})

    def _write(self, connection: Connection, batch: "_Batch") -> None:
        for table in _PARENTS_FIRST:
            if rows := batch.rows.pop(table, None):
                self._upserts[table].execute(connection, rows.values())
        if batch.events:
            self._add_events.execute(connection, batch.events)
            batch.events = []
        if batch.stories:
            self._stories.apply(connection, batch.stories)
            batch.stories = []
        if batch.spent:
            self._accounts.apply(connection, batch.spent)
            batch.spent = []


class _Batch:
    """Rows that wait to be written, many with one statement; of several with the same key the last one counts."""

    def __init__(self) -> None:
        self.rows: dict[Table, dict[tuple[object, ...], schema.Row]] = {}
        self.events: list[schema.Row] = []
        """Events of jobs in the order in which they are to be numbered."""
        self.stories: list[StoryChange] = []
        """What becomes of the stories of nodes and of the fleet, in order."""
        self.spent: list[SpentChange] = []

    def add(self, record: Record) -> None:
        table, row = schema.row(record)
        key = tuple(row[column.name] for column in table.primary_key.columns)
        self.rows.setdefault(table, {})[key] = row


def _records(connection: Connection, table: Table, kind: type[RecordT]) -> Iterable[RecordT]:
    return decoded(table, kind, connection.execute(select(table.c.body)).scalars())
