"""Everything that differs between databases: opening one, upserts, and what its errors mean."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Dialect, Engine, Insert, Table, create_engine, event, make_url
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from coordinator.store.store import StoreError, StoreFullError

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

PRAGMAS = (
    "journal_mode = WAL",  # one fsync a commit, and readers do not stop the writer
    "synchronous = FULL",  # what was committed survives a power cut
    "busy_timeout = 5000",  # milliseconds; a backup or a curious person may hold the file for a moment
    "journal_size_limit = 67108864",  # after a burst the write-ahead log shrinks again
)


def connect(database: Path | str, *, foreign_keys: bool = True) -> Engine:
    """An engine for a SQLite file or for the database of an SQLAlchemy URL; connects when first used."""
    url = make_url(database) if isinstance(database, str) else URL.create("sqlite", database=str(database))
    engine = create_engine(url)
    if engine.dialect.name == "sqlite":
        _prepare_sqlite(engine, foreign_keys=foreign_keys)
    return engine


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection that only reads, and so neither waits for writers nor holds them up."""
    with explained(engine), engine.connect().execution_options(**_READING) as connection:
        yield connection


_READING = {"muster_only_reads": True}


def upsert(dialect: Dialect, table: Table) -> Insert:
    """Insert a row, or replace all of the row that has its key; what follows from the key is as it was."""
    statement = _insert(dialect, table)
    key = table.primary_key.columns
    changing = (column for column in table.columns if column not in set(key) and not column.info.get("part of key"))
    values = {column.name: statement.excluded[column.name] for column in changing}
    return statement.on_conflict_do_update(index_elements=list(key), set_=values)


def addition(dialect: Dialect, table: Table, unique: Sequence[str]) -> Insert:
    """Insert a row, unless one with the same values in these columns is there."""
    return _insert(dialect, table).on_conflict_do_nothing(index_elements=list(unique))


class Written:
    """A statement that writes rows and is compiled once: SQLAlchemy by itself looks at every row of every batch."""

    def __init__(self, dialect: Dialect, table: Table, statement: Insert, given: Sequence[str] | None = None) -> None:
        """`given`: names of the columns that rows have; None: all of the table."""
        compiled = statement.compile(dialect=dialect, column_keys=given)
        self._statement = str(compiled)
        self._names: Sequence[str] | None = compiled.positiontup
        """The order of the parameters; None: they go by name."""
        columns = (column for column in table.columns if given is None or column.name in given)
        # Those of the dialect: times must be written as they are compared, or whole seconds sort before themselves.
        processors = ((column.name, column.type.dialect_impl(dialect).bind_processor(dialect)) for column in columns)
        self._processors = [(name, processor) for name, processor in processors if processor is not None]

    def execute(self, connection: Connection, rows: Collection[dict[str, Any]]) -> None:
        """Write rows."""
        for name, processor in self._processors:
            for row in rows:
                row[name] = processor(row[name])
        names = self._names
        parameters: list[Any] = list(rows) if names is None else [tuple([row[name] for name in names]) for row in rows]
        connection.exec_driver_sql(self._statement, parameters)


@contextmanager
def explained(engine: Engine) -> Iterator[None]:
    """Turn errors of the database into a StoreError that says what to do."""
    try:
        yield
    except SQLAlchemyError as error:
        reason = error.orig if isinstance(error, DBAPIError) else error
        place = engine.url.database if engine.dialect.name == "sqlite" else engine.url.render_as_string()
        name = str(getattr(reason, "sqlite_errorname", ""))
        advice = _advice(name)
        kind = StoreFullError if name.startswith(_FULL) else StoreError
        raise kind(f"the state in {place} cannot be used: {reason}. {advice}") from error


_FULL = ("SQLITE_FULL", "SQLITE_IOERR")
"""What a full disk looks like: some files of a database are not written but mapped."""

_ADVICE: Mapping[str, str] = {
    "SQLITE_FULL": "The disk is full: free some space; nothing of this change was stored",
    "SQLITE_BUSY": "Another program holds the file: end it; nothing of this change was stored",
    "SQLITE_READONLY": "The file or its directory is not writable: give it to the coordinator's user",
    "SQLITE_CANTOPEN": "Check that the directory is there and belongs to the coordinator's user",
    "SQLITE_IOERR": "The disk failed or is full: see the kernel's log; nothing of this change was stored",
    "SQLITE_NOTADB": "This file is no database of Muster: move it away, or name another state directory",
    "SQLITE_CORRUPT": "The file is damaged: put a backup in its place (see docs/storage.md)",
    "SQLITE_CONSTRAINT": "Nothing of this change was stored; please report this as a bug",
}


def alone(connection: Connection, table: Table) -> None:
    """Let nobody else write to a table until this transaction ends; in SQLite nobody can."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"LOCK TABLE {table.name} IN EXCLUSIVE MODE")


def audit_rules(dialect: Dialect) -> Sequence[str]:
    """Statements by which the database itself refuses to change the audit log.

    Entries are only added. They are deleted up to the newest anchor, and an anchor has the number and the hash of an
    entry that is there; anchors are only added, too.
    """
    return _SQLITE_AUDIT_RULES if dialect.name == "sqlite" else _POSTGRESQL_AUDIT_RULES


_KEPT = "OLD.number > (SELECT coalesce(max(number), 0) FROM audit_anchors)"
_UNKNOWN = "NOT EXISTS (SELECT 1 FROM audit WHERE number = NEW.number AND hash = NEW.hash)"
_ONLY_ADDED_TO = "the audit log is only added to"
_NO_ENTRY = "an anchor of the audit log must be one of its entries"

_SQLITE_AUDIT_RULES = tuple(
    f"CREATE TRIGGER {name} BEFORE {order} ON {table} {when}BEGIN SELECT RAISE(ABORT, '{message}'); END"
    for name, order, table, when, message in (
        ("audit_no_update", "UPDATE", "audit", "", _ONLY_ADDED_TO),
        ("audit_no_delete", "DELETE", "audit", f"WHEN {_KEPT} ", _ONLY_ADDED_TO),
        ("audit_anchors_no_update", "UPDATE", "audit_anchors", "", _ONLY_ADDED_TO),
        ("audit_anchors_no_delete", "DELETE", "audit_anchors", "", _ONLY_ADDED_TO),
        ("audit_anchors_known", "INSERT", "audit_anchors", f"WHEN {_UNKNOWN} ", _NO_ENTRY),
    )
)


def _postgresql_trigger(name: str, orders: str, table: str, each: str, condition: str, message: str) -> tuple[str, str]:
    function = (
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF {condition} THEN "
        f"RAISE EXCEPTION '{message}'; END IF; RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END; END $$"
    )
    return function, f"CREATE TRIGGER {name} BEFORE {orders} ON {table} FOR EACH {each} EXECUTE FUNCTION {name}()"


_POSTGRESQL_AUDIT_RULES = (
    *_postgresql_trigger("audit_no_update", "UPDATE", "audit", "ROW", "true", _ONLY_ADDED_TO),
    *_postgresql_trigger("audit_no_delete", "DELETE", "audit", "ROW", _KEPT, _ONLY_ADDED_TO),
    *_postgresql_trigger("audit_no_truncate", "TRUNCATE", "audit", "STATEMENT", "true", _ONLY_ADDED_TO),
    *_postgresql_trigger("audit_anchors_no_change", "UPDATE OR DELETE", "audit_anchors", "ROW", "true", _ONLY_ADDED_TO),
    *_postgresql_trigger("audit_anchors_no_truncate", "TRUNCATE", "audit_anchors", "STATEMENT", "true", _ONLY_ADDED_TO),
    *_postgresql_trigger("audit_anchors_known", "INSERT", "audit_anchors", "ROW", _UNKNOWN, _NO_ENTRY),
)


def _advice(name: str) -> str:
    known = (text for beginning, text in _ADVICE.items() if name.startswith(beginning))
    return next(known, "Nothing of this change was stored")


def _insert(dialect: Dialect, table: Table) -> "sqlite.Insert | postgresql.Insert":
    if dialect.name == "sqlite":
        return sqlite.insert(table)
    # A twentieth of what it takes to start a coordinator, and most do without.
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415 - only with a PostgreSQL database

    return postgresql.insert(table)


def _prepare_sqlite(engine: Engine, *, foreign_keys: bool) -> None:
    @event.listens_for(engine, "connect")
    def configure(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        # The driver would begin transactions late and not at all for DDL; `begin` below does it at once.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in (*PRAGMAS, f"foreign_keys = {'ON' if foreign_keys else 'OFF'}"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        only_reads = _READING.items() <= connection.get_execution_options().items()
        connection.exec_driver_sql("BEGIN" if only_reads else "BEGIN IMMEDIATE")
