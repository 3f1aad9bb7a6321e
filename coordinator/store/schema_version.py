"""Brings a database to the schema of this program."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, inspect, text

from coordinator.store.database_copy import copy_before_migration, prune_copies
from coordinator.store.dialect import connect, explained
from coordinator.store.schema import VERSION
from coordinator.store.store import StoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The migrations that there are."""

    newest: str = VERSION
    folder: str = ""
    """A folder of migrations after those of this program; empty: there is none."""


OWN = History()

FIRST = "0100"
"""The first migration. Lower numbers were used before the first release, and nothing leads from them to here."""


def bring_up_to_date(database: Path | str, history: History = OWN) -> None:
    """Migrate a new or older database; nothing to do, and cheap, for a current one.

    An older SQLite file is copied first, so that the older program can have it back.

    Raises StoreError for a database that is newer than this program, from before the first release, or of others.
    """
    if isinstance(database, Path):
        _make_private(database)
    # Without foreign keys, because SQLite alters a table by making it anew, which would delete what refers to it.
    engine = connect(database, foreign_keys=False)
    try:
        with explained(engine):
            present = _version(engine)
            if present != history.newest:
                _migrate(engine, present, history)
    finally:
        engine.dispose()


def _make_private(database: Path) -> None:
    """Make a file that is not there, readable by its owner only; what SQLite lays beside it has the same mode."""
    with suppress(OSError):  # the connection says why it cannot be made
        os.close(os.open(database, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _version(engine: Engine) -> str | None:
    """None: the database is new."""
    with engine.connect() as connection:
        tables = inspect(connection).get_table_names()
        if "alembic_version" in tables:
            return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    if tables:
        raise StoreError(
            f"{engine.url.database} is a database of another program (it has the table {tables[0]}): "
            "move it away, or name another state directory",
        )
    return None


def _migrate(engine: Engine, present: str | None, history: History) -> None:
    if present and present < FIRST:
        raise StoreError(
            f"{engine.url.database} was written by a Muster from before its first release (schema {present}), and "
            "nothing brings it to this version: move the state directory away and start with a new one",
        )
    # Alembic takes longer to import than everything else here, and most starts do not need it.
    from coordinator.store import migrations  # noqa: PLC0415 - only where tables are made or changed

    if present and present not in migrations.known(history.folder):
        raise StoreError(
            f"{engine.url.database} was written by a newer Muster (schema {present}, this one knows up to "
            f"{history.newest}): "
            "install that version again, or restore a backup from before the upgrade",
        )
    file = Path(engine.url.database or "") if engine.dialect.name == "sqlite" else None
    if present and file is not None:
        copy_before_migration(file, history.newest)
    with engine.begin() as connection:
        migrations.upgrade(connection, folder=history.folder)
    if present and file is not None:
        prune_copies(file)
