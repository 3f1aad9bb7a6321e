"""The tables: columns that one would query, and the whole record as JSON in `body`.

The program reads bodies only, and so does the view `transitions`, which is for people; `spent` alone has columns that
the program reads. Others are there for people with a database client, for keys and for foreign keys.
A change of a table needs a new file in `migrations/versions` and the new `VERSION`.
"""

from datetime import UTC, datetime
from typing import assert_never

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Dialect,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

from coordinator.core.checkpoint_part import CheckpointPart
from coordinator.core.quota_meter import QuotaMeter
from coordinator.core.records import Attempt, Execution, Job, Node, Record
from coordinator.core.spent import Spent
from coordinator.store.codec import encode
from muster.domain.event import JobEvent, StoryEvent
from muster.domain.fleet.access import Project
from muster.domain.fleet.pool import Pool
from muster.domain.fleet.quota import RESOURCES, Department
from muster.domain.fleet.window import Window

VERSION = "0118"
"""The newest migration."""

PART_OF_KEY: dict[str, bool] = {"part of key": True}
"""Mark of a column that follows from the key: written with a new row only, or its indexes would be with every
change.
"""

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
"""Constraints have names, so that migrations can address them on every database."""


def _child_of(columns: list[str], referred: list[str]) -> ForeignKeyConstraint:
    # Checked at commit, so that the records of a batch may come in any order.
    return ForeignKeyConstraint(columns, referred, ondelete="CASCADE", deferrable=True, initially="DEFERRED")


class UtcTime(TypeDecorator[datetime]):
    """A point in time, in UTC also where the database has no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """SQLite keeps times as text; this one sorts and works with its date functions."""
        if value is None or dialect.name != "sqlite":
            return value
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The time in UTC, as it was given."""
        del dialect
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


metadata = MetaData(naming_convention=NAMING)

jobs = Table(
    "jobs",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("project", String, nullable=False, server_default="", index=True, info=PART_OF_KEY),
    Column("owner", String, nullable=False, server_default="", index=True, info=PART_OF_KEY),
    Column("priority", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("submitted_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    Column("body", Text, nullable=False),
)

attempts = Table(
    "attempts",
    metadata,
    Column("job", String, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("goal", String),
    Column("placed_at", UtcTime),
    Column("released_at", UtcTime),
    Column("ended_at", UtcTime),
    Column("failure", String),
    Column("body", Text, nullable=False),
    _child_of(["job"], ["jobs.id"]),
)

executions = Table(
    "executions",
    metadata,
    Column("id", String, primary_key=True),
    Column("job", String, nullable=False, info=PART_OF_KEY),
    Column("attempt", Integer, nullable=False, info=PART_OF_KEY),
    Column("rank", Integer, nullable=False, info=PART_OF_KEY),
    Column("state", String, nullable=False),
    Column("node", String),
    Column("exit_code", Integer),
    Column("body", Text, nullable=False),
    _child_of(["job", "attempt"], ["attempts.job", "attempts.number"]),
    UniqueConstraint("job", "attempt", "rank"),
)

checkpoint_parts = Table(
    "checkpoint_parts",
    metadata,
    Column("job", String, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("name", String, primary_key=True),
    Column("rank", Integer, primary_key=True, autoincrement=False),
    Column("tree", String, nullable=False),
    Column("body", Text, nullable=False),
    _child_of(["job"], ["jobs.id"]),
)
"""What ranks have saved of checkpoints, as far as it is kept; those of an attempt outlive its executions."""

nodes = Table(
    "nodes",
    metadata,
    Column("name", String, primary_key=True),
    Column("identity", String, nullable=False),
    Column("address", String, nullable=False),
    Column("agent_version", String, nullable=False),
    Column("joined_at", UtcTime, nullable=False),
    Column("body", Text, nullable=False),
)

projects = Table(
    "projects",
    metadata,
    Column("name", String, primary_key=True),
    Column("created_at", UtcTime, nullable=False),
    Column("body", Text, nullable=False),
)

departments = Table(
    "departments",
    metadata,
    Column("name", String, primary_key=True),
    Column("created_at", UtcTime, nullable=False),
    Column("body", Text, nullable=False),
)
windows = Table(
    "windows",
    metadata,
    Column("name", String, primary_key=True),
    Column("begins", UtcTime, nullable=False),
    Column("ends", UtcTime, nullable=False),
    Column("project", String, nullable=False),
    Column("body", Text, nullable=False),
)
"""Nodes that are out of service, or for one project alone, from a time to a time."""

pools = Table(
    "pools",
    metadata,
    Column("name", String, primary_key=True),
    Column("body", Text, nullable=False),
)
"""Which nodes are in a pool, and what holds there."""

meters = Table(
    "meters",
    metadata,
    Column("project", String, primary_key=True),
    Column("pool", String, primary_key=True),
    Column("body", Text, nullable=False),
)
"""How much of what projects hold of pools is above their quotas, added up over time."""

EVENT_ID = ("job", "attempt", "kind", "rank", "again")
"""What the id of an event of a job is made of."""
GIVEN_OF_EVENTS = (*EVENT_ID, "at", "body")
"""Columns of an event that the program writes; the database gives the number."""

job_events = Table(
    "job_events",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("job", String, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("kind", String, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("body", Text, nullable=False),
    Column("again", BigInteger, nullable=False, server_default="0"),
    _child_of(["job"], ["jobs.id"]),
    UniqueConstraint(*EVENT_ID),
    sqlite_autoincrement=True,
)
"""Events of jobs in the order in which they were stored; `rank` is -1 where an event concerns a whole attempt.

`again` is the time in microseconds of an event that comes again in one attempt, and 0 of all others.
"""


GIVEN_OF_STORIES = ("id", "subject", "kind", "at", "body")
"""Columns of an event of a node or of the fleet that the program writes; the database gives the number."""

story_events = Table(
    "story_events",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("subject", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("body", Text, nullable=False),
    Index(None, "subject", "number"),
    sqlite_autoincrement=True,
)
"""Events of nodes and of the fleet in the order in which they were stored; they outlive their node."""

spent = Table(
    "spent",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("job", String, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("name", String, nullable=False),
    Column("project", String, nullable=False),
    Column("owner", String, nullable=False),
    Column("pool", String, nullable=False),
    Column("job_class", String, nullable=False),
    Column("outcome", String, nullable=False),
    Column("gpus", BigInteger, nullable=False),
    Column("cpus", BigInteger, nullable=False),
    Column("memory", BigInteger, nullable=False),
    Column("lost", BigInteger, nullable=False),
    Column("borrowed", BigInteger, nullable=False, server_default="0"),
    Column("busy", BigInteger),
    Column("waited", BigInteger),
    Column("placed_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime, nullable=False, index=True),
    UniqueConstraint("job", "attempt"),
)
"""What attempts have held, in the order in which they ended; they outlive their jobs.

It has no `body`, as the database sums it up. Amounts are times seconds: thousandths of GPUs and CPUs, and mebibytes.
`lost`, `borrowed` and `busy` are parts of the GPUs; `waited` is in milliseconds. What is absent is not known.
"""
GIVEN_OF_SPENT = tuple(column.name for column in spent.columns if column.name != "number")
"""Columns of it that the program writes; the database gives the number."""

fleet = Table("fleet", metadata, Column("id", String, primary_key=True))
"""One row, written at the first start: whose database this is."""

Row = dict[str, object]


def row(record: Record) -> tuple[Table, Row]:  # noqa: PLR0911 - one case for each kind of record
    """Where a record is kept, and as what."""
    match record:
        case Job():
            return jobs, _job(record)
        case Attempt():
            return attempts, _attempt(record)
        case Execution():
            return executions, _execution(record)
        case CheckpointPart():
            return checkpoint_parts, _part(record)
        case Node():
            return nodes, _node(record)
        case Project() | Department():
            table = projects if isinstance(record, Project) else departments
            return table, {"name": record.name, "created_at": record.created_at, "body": encode(record)}
        case Window():
            return windows, _window(record)
        case Pool():
            return pools, {"name": record.name, "body": encode(record)}
        case QuotaMeter():
            return meters, {"project": record.project, "pool": record.pool, "body": encode(record)}
        case _:
            assert_never(record)


def event_row(event: JobEvent) -> Row:
    """An event as it is kept; the database gives it its number."""
    return {
        "job": event.job,
        "attempt": event.attempt,
        "kind": event.kind,
        "rank": -1 if event.rank is None else event.rank,
        "at": event.at,
        "body": encode(event),
        "again": event.again,
    }


def spent_row(record: Spent) -> Row:
    """What an attempt has held as it is kept; the database gives it its number."""
    held = dict(zip(RESOURCES, record.held, strict=True))
    return {name: held[name] if name in held else getattr(record, name) for name in GIVEN_OF_SPENT}


def story_row(event: StoryEvent) -> Row:
    """An event of a node or of the fleet as it is kept; the database gives it its number."""
    return {
        "id": event.id,
        "subject": event.subject,
        "kind": event.kind,
        "at": event.at,
        "body": encode(event),
    }


def _window(window: Window) -> Row:
    return {
        "name": window.name,
        "begins": window.begins,
        "ends": window.ends,
        "project": window.project,
        "body": encode(window),
    }


def _job(job: Job) -> Row:
    return {
        "id": job.id,
        "name": job.spec.name,
        "sequence": job.sequence,
        "project": job.spec.project,
        "owner": job.owner,
        "priority": job.spec.priority,
        "attempt": job.attempt,
        "submitted_at": job.submitted_at,
        "ended_at": job.ended_at,
        "body": encode(job),
    }


def _attempt(attempt: Attempt) -> Row:
    return {
        "job": attempt.job,
        "number": attempt.number,
        "goal": attempt.goal.name.lower() if attempt.goal else None,
        "placed_at": attempt.placed_at,
        "released_at": attempt.released_at,
        "ended_at": attempt.ended_at,
        "failure": attempt.failure.kind if attempt.failure else None,
        "body": encode(attempt),
    }


def _execution(execution: Execution) -> Row:
    return {
        "id": execution.id,
        "job": execution.job,
        "attempt": execution.attempt,
        "rank": execution.rank,
        "state": execution.state,
        "node": execution.node,
        "exit_code": execution.exit.code if execution.exit else None,
        "body": encode(execution),
    }


def _part(part: CheckpointPart) -> Row:
    return {
        "job": part.job,
        "attempt": part.attempt,
        "name": part.name,
        "rank": part.rank,
        "tree": part.tree,
        "body": encode(part),
    }


def _node(node: Node) -> Row:
    return {
        "name": node.name,
        "identity": node.identity,
        "address": node.address,
        "agent_version": node.agent_version,
        "joined_at": node.joined_at,
        "body": encode(node),
    }
