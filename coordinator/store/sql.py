"""The store on disk: SQLAlchemy Core over SQLite, written so that another database needs `dialect` only."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import assert_never

from sqlalchemy import Connection, Engine, Table, bindparam, delete, select

from coordinator.core.records import Attempt, Change, DropJob, DropNode, Execution, Job, Node, Put, Record
from coordinator.store import schema
from coordinator.store.codec import RecordT, decode
from coordinator.store.dialect import connect, explained, insert_missing, upsert
from coordinator.store.schema_version import bring_up_to_date
from coordinator.store.store import Snapshot, StoreError, snapshot
from muster.domain.ids import ExecutionId
from muster.domain.lifecycle import State

Times = dict[ExecutionId, Mapping[State, datetime]]
"""Transitions that are in the database for certain, so that they need not be written again with every change."""

_PARENTS_FIRST = (schema.jobs, schema.attempts, schema.executions, schema.nodes)


class SqlStore:
    """Keeps records in a database. Use it from one thread at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._upserts = {table: upsert(engine.dialect, table) for table in _PARENTS_FIRST}
        self._insert_moves = insert_missing(engine.dialect, schema.transitions)
        self._recorded: Times = {}
        self._delete_job = delete(schema.jobs).where(schema.jobs.c.id == bindparam("key"))
        self._delete_node = delete(schema.nodes).where(schema.nodes.c.name == bindparam("key"))

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
            return snapshot(
                _records(connection, schema.jobs, Job),
                _records(connection, schema.attempts, Attempt),
                _records(connection, schema.executions, Execution),
                _records(connection, schema.nodes, Node),
            )

    def commit(self, changes: Sequence[Change]) -> None:
        """Apply all changes in one transaction; StoreError: none of them is there."""
        with explained(self._engine), self._engine.begin() as connection:
            batch = _Batch(self._recorded)
            for change in changes:
                match change:
                    case Put(record=record):
                        batch.add(record)
                    case DropJob(job=job):
                        self._write(connection, batch)
                        connection.execute(self._delete_job, {"key": job})
                        self._recorded.clear()
                        batch.times.clear()
                    case DropNode(node=node):
                        self._write(connection, batch)
                        connection.execute(self._delete_node, {"key": node})
                    case _:
                        assert_never(change)
            self._write(connection, batch)
        self._recorded.update(batch.times)

    def close(self) -> None:
        """Let go of the database; what was committed stays."""
        self._engine.dispose()

    def _write(self, connection: Connection, batch: "_Batch") -> None:
        for table in _PARENTS_FIRST:
            if rows := batch.rows.pop(table, None):
                connection.execute(self._upserts[table], list(rows.values()))
        if batch.moves:
            connection.execute(self._insert_moves, list(batch.moves.values()))
            batch.moves.clear()


class _Batch:
    """Rows that wait to be written, many with one statement; of several with the same key the last one counts."""

    def __init__(self, recorded: Times) -> None:
        self.rows: dict[Table, dict[tuple[object, ...], schema.Row]] = {}
        self.moves: dict[tuple[ExecutionId, State], schema.Row] = {}
        self.times: Times = {}
        self._recorded = recorded

    def add(self, record: Record) -> None:
        table, row = schema.row(record)
        key = tuple(row[column.name] for column in table.primary_key.columns)
        self.rows.setdefault(table, {})[key] = row
        if isinstance(record, Execution):
            known = self._recorded.get(record.id, {})
            for state, at in record.times.items():
                if state not in known:
                    self.moves.setdefault((record.id, state), schema.transition(record.id, state, at))
            self.times[record.id] = record.times


def _records(connection: Connection, table: Table, kind: type[RecordT]) -> Iterable[RecordT]:
    for (body,) in connection.execute(select(table.c.body)):
        try:
            yield decode(kind, body)
        except ValueError as error:
            raise StoreError(
                f"the table {table.name} holds a record that cannot be read: {error}. "
                "Put a backup of the database in its place (see docs/storage.md)",
            ) from error
