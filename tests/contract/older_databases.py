"""Databases as earlier versions wrote them."""

from pathlib import Path

from coordinator.store import migrations
from coordinator.store.dialect import connect
from coordinator.store.sql import SqlStore
from muster.domain.lifecycle import State
from tests.contract.records import execution, gang, puts


def write_older(database: Path, version: str) -> None:
    """A database with one job, of that version of the schema."""
    engine = connect(database, foreign_keys=False)
    with engine.begin() as connection:
        migrations.upgrade(connection, version)
    engine.dispose()
    store = SqlStore(connect(database))
    store.commit([*gang("a", size=1), *puts(execution("a", state=State.PLACED))])
    store.close()
