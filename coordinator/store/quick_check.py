"""A look at the whole database when a coordinator starts: does the disk still have what was written?"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from coordinator.store.fleet_row import open_readonly
from coordinator.store.store import StoreError

CHECKED_FIRST = 256 << 20
"""Bytes up to which a database is looked at before it is served; a larger one meanwhile. Both take 1 ms a MiB."""

_SHOWN = 5
_STEPS = 100_000
"""Steps of SQLite's virtual program between two looks whether the check is still wanted: some milliseconds."""


def found_damage(database: Path, unwanted: Callable[[], bool] = lambda: False) -> tuple[str, ...]:
    """What is wrong with a database, the first of it; nothing if the check became unwanted."""
    try:
        with closing(open_readonly(database)) as connection:
            connection.set_progress_handler(unwanted, _STEPS)
            rows = connection.execute(f"PRAGMA quick_check({_SHOWN})").fetchall()
    except sqlite3.Error as error:
        return () if unwanted() else (str(error),)
    return tuple(str(text) for (text,) in rows if text != "ok")


def require_whole(database: Path) -> None:
    """Raise StoreError for a small database that is damaged; large ones are not looked at here."""
    if database.stat().st_size <= CHECKED_FIRST and (found := found_damage(database)):
        raise StoreError(
            f"{database} is damaged: {'; '.join(found)}. Restore a backup (see docs/backup.md); "
            "`muster-coordinator check` says more"
        )
