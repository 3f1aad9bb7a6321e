"""Copies of the SQLite file: consistent while others write, whole or not there, readable by their owner only."""

import logging
import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from coordinator.store.fleet_row import open_readonly
from coordinator.store.store import StoreError
from muster.trust.files import sync_directory

log = logging.getLogger(__name__)

COPIES_KEPT = 2
"""Copies from before migrations that stay beside the database."""

_PAGES = 4096
"""Pages copied between two looks at signals and two words on the progress: 16 MiB with pages of the usual size."""
_BEFORE = re.compile(r".+\.before-v([0-9]+)")

Progress = Callable[[int, int], None]
"""A function that is told how many bytes of how many are done."""


def copy_database(source: Path, target: Path, progress: Progress | None = None) -> None:
    """Copy a database as it was last committed, also while a coordinator writes to it.

    Raises StoreError, and leaves nothing at the target, if either file cannot be used.
    """
    fresh = target.with_name(target.name + ".new")
    try:
        fresh.unlink(missing_ok=True)
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(open_readonly(source)) as read:
            _copy(read, fresh, progress)
        fresh.replace(target)
        sync_directory(target.parent)
    except (sqlite3.Error, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise StoreError(
            f"cannot copy {source} to {target}: {reason}. Check that the disk has room for a second database",
        ) from error
    finally:
        fresh.unlink(missing_ok=True)


def _copy(read: sqlite3.Connection, fresh: Path, progress: Progress | None) -> None:
    size = read.execute("PRAGMA page_size").fetchone()[0]

    def tell(_: int, left: int, total: int) -> None:
        if progress is not None:
            progress((total - left) * size, total * size)

    # One transaction for all of the copy: without it every commit of another process would have it begin anew.
    read.execute("BEGIN")
    read.execute("SELECT count(*) FROM sqlite_master").fetchone()
    with closing(sqlite3.connect(fresh)) as write:
        read.backup(write, pages=_PAGES, progress=tell)


def copy_before_migration(database: Path, version: str) -> Path:
    """Copy the database as it is before a migration to `version`; of older copies the newest stay."""
    copy = database.with_name(f"{database.name}.before-v{int(version)}")
    log.info(
        "the database is copied before its schema changes",
        extra={"copy": str(copy), "bytes": database.stat().st_size},
    )
    copy_database(database, copy)
    return copy


def prune_copies(database: Path) -> None:
    """Delete all but the newest copies from before migrations."""
    found = [(int(match[1]), path) for path in database.parent.iterdir() if (match := _BEFORE.fullmatch(path.name))]
    of_it = sorted((version, path) for version, path in found if path.name.startswith(f"{database.name}.before-"))
    for _, path in of_it[:-COPIES_KEPT]:
        log.info("an old copy of the database makes room", extra={"copy": str(path)})
        path.unlink(missing_ok=True)
