"""Brings a database to the schema of this program."""

import os
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Engine, inspect, text

from coordinator.store.database_copy import copy_before_migration, prune_copies
from coordinator.store.dialect import connect, explained
from coordinator.store.schema import VERSION
from coordinator.store.store import StoreError


def bring_up_to_date(database: Path | str) -> None:
    """Migrate a new or older database; nothing to do, and cheap, for a current one.

    An older SQLite file is copied first, so that the older program can have it back.

    Raises StoreError for a database that is newer than this program or belongs to another program.
    """
    if isinstance(database, Path):
        _make_private(database)
    # Without foreign keys, because SQLite alters a table by making it anew, which would delete what refers to it.
    engine = connect(database, foreign_keys=False)
    try:
        with explained(engine):
            present = _version(engine)
            if present != VERSION:
                _migrate(engine, present)
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


def _migrate(engine: Engine, present: str | None) -> None:
    # Alembic takes longer to import than everything else here, and most starts do not need it.
    from coordinator.store import migrations  # noqa: PLC0415

    if present and present not in migrations.known():
        raise StoreError(
            f"{engine.url.database} was written by a newer Muster (schema {present}, this one knows up to {VERSION}): "
            "install that version again, or restore a backup from before the upgrade",
        )
    file = Path(engine.url.database or "") if engine.dialect.name == "sqlite" else None
    if present and file is not None:
        copy_before_migration(file, VERSION)
    with engine.begin() as connection:
        migrations.upgrade(connection)
    if present and file is not None:
        prune_copies(file)
