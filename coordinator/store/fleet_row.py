"""The fleet id in the database."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import delete, insert

from coordinator.store.dialect import connect, explained
from coordinator.store.schema import fleet
from coordinator.store.store import StoreError


def read_fleet_id(database: Path) -> str | None:
    """The fleet id in a SQLite file; empty for one from before fleet ids, None where there is nothing in it.

    Nothing is made or changed, also not the write-ahead log of a coordinator that was killed; to be called while the
    state directory is locked. Raises StoreError.
    """
    if not database.exists() or not database.stat().st_size:
        return None
    try:
        with closing(open_readonly(database, alone=not _log_of(database).exists())) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if fleet.name not in tables:
                return "" if tables else None
            found = connection.execute("SELECT id FROM fleet").fetchone()
            return None if found is None else str(found[0])
    except sqlite3.Error as error:
        raise StoreError(
            f"{database} cannot be read: {error}. Put a backup in its place (see docs/backup.md)",
        ) from error


def open_readonly(database: Path, *, alone: bool = False) -> sqlite3.Connection:
    """A connection that writes nothing to the database, and leaves the write-ahead log where it is when it closes.

    `alone`: nobody else has the database open, so that not even empty files appear beside it.
    """
    options = "mode=ro&immutable=1" if alone else "mode=ro"
    connection = sqlite3.connect(f"{database.resolve().as_uri()}?{options}", uri=True, isolation_level=None)
    connection.execute("PRAGMA busy_timeout = 5000")
    return connection


def _log_of(database: Path) -> Path:
    return database.with_name(f"{database.name}-wal")


def write_fleet_id(database: Path | str, fleet_id: str) -> None:
    """Have a database belong to a fleet."""
    engine = connect(database)
    try:
        with explained(engine), engine.begin() as connection:
            connection.execute(delete(fleet))
            connection.execute(insert(fleet), {"id": fleet_id})
    finally:
        engine.dispose()
