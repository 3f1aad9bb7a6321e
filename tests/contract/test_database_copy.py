"""Copies of the database: before each migration, and while it is written to."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import insert

from coordinator.store import migrations, schema
from coordinator.store.database_copy import copy_database, prune_copies
from coordinator.store.dialect import connect
from coordinator.store.records.sql import SqlStore
from coordinator.store.schema import VERSION
from coordinator.store.schema_version import History, bring_up_to_date
from coordinator.store.store import StoreError
from muster.domain.ids import NodeId
from tests.contract.records import gang, job, node_events

LATER = History(newest="9999", folder=str(Path(__file__).parent / "later_migrations"))
"""The history of a later version."""


def read(database: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(statement).fetchall()


def write(database: Path) -> None:
    store = SqlStore.open(database)
    store.commit(gang("a", size=1))
    store.close()


def test_a_migration_leaves_a_copy_from_before_it(tmp_path: Path) -> None:
    database, copy = tmp_path / "coordinator.db", tmp_path / "coordinator.db.before-v9999"
    write(database)

    bring_up_to_date(database, LATER)

    assert read(database, "SELECT version_num FROM alembic_version") == [("9999",)]
    assert read(database, "SELECT id, note FROM jobs") == [("a", "")]
    assert read(copy, "SELECT version_num FROM alembic_version") == [(VERSION,)]
    assert read(copy, "SELECT id FROM jobs") == [("a",)]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_a_database_of_the_first_schema_keeps_its_jobs_and_gets_room_for_stories(tmp_path: Path) -> None:
    database = tmp_path / "coordinator.db"
    engine = connect(database, foreign_keys=False)
    with engine.begin() as connection:
        migrations.upgrade(connection, "0100")
        connection.execute(insert(schema.jobs), schema.row(job("a"))[1])
    engine.dispose()

    store = SqlStore.open(database)
    store.commit(node_events("a", 1))

    assert [each.id for each in store.load().jobs] == ["a"]
    assert [event.text for event in store.node_events(NodeId("a"), 0, 9)] == ["text 0"]
    store.close()


def test_neither_a_first_nor_a_later_start_makes_a_copy(tmp_path: Path) -> None:
    SqlStore.open(tmp_path / "coordinator.db").close()
    SqlStore.open(tmp_path / "coordinator.db").close()

    assert [path.name for path in tmp_path.iterdir()] == ["coordinator.db"]


def test_a_database_that_cannot_be_copied_is_not_migrated(tmp_path: Path) -> None:
    database = tmp_path / "coordinator.db"
    write(database)
    (tmp_path / "coordinator.db.before-v9999").mkdir()

    with pytest.raises(StoreError, match=r"cannot copy .*coordinator\.db to .*before-v"):
        bring_up_to_date(database, LATER)

    assert read(database, "SELECT version_num FROM alembic_version") == [(VERSION,)]
    assert not list(tmp_path.glob("*.new"))


def test_the_newest_copies_stay(tmp_path: Path) -> None:
    for name in (
        "coordinator.db.before-v9",
        "coordinator.db.before-v10",
        "coordinator.db.before-v8",
        "other.before-v1",
    ):
        (tmp_path / name).touch()

    prune_copies(tmp_path / "coordinator.db")

    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "coordinator.db.before-v10",
        "coordinator.db.before-v9",
        "other.before-v1",
    ]


def test_a_copy_has_what_was_committed_when_it_began_and_nothing_of_what_came_meanwhile(tmp_path: Path) -> None:
    database, copy = tmp_path / "coordinator.db", tmp_path / "copy"
    store = SqlStore.open(database)
    store.commit(gang("before", size=2000))
    seen: list[tuple[int, int]] = []

    def write_meanwhile(done: int, whole: int) -> None:
        store.commit(gang(f"meanwhile-{len(seen)}", sequence=len(seen) + 2))
        seen.append((done, whole))

    copy_database(database, copy, write_meanwhile)
    after = read(database, "SELECT count(*) FROM jobs")
    store.close()

    assert read(copy, "SELECT id FROM jobs") == [("before",)]
    assert read(copy, "PRAGMA integrity_check") == [("ok",)]
    assert after == [(len(seen) + 1,)]
    assert seen[-1][0] == seen[-1][1] > 0


def test_a_copy_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    SqlStore.open(tmp_path / "coordinator.db").close()

    def interrupted(done: int, whole: int) -> None:
        del done, whole
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_database(tmp_path / "coordinator.db", tmp_path / "copy", interrupted)

    assert list(tmp_path.glob("copy*")) == []
