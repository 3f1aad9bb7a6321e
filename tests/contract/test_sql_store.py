"""What the store on disk promises beyond the contract: durability, clear faults, and a schema that moves with us."""

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, event, make_url
from sqlalchemy.pool import Pool

from coordinator.core.records import DropJob, Put
from coordinator.store import migrations, schema
from coordinator.store.dialect import connect, upsert
from coordinator.store.quick_check import require_whole
from coordinator.store.records.sql import SqlStore
from coordinator.store.store import Snapshot, StoreError
from coordinator.store.trust import schema as trust_schema
from muster.domain.ids import JobId
from muster.domain.jobs.lifecycle import State
from tests.contract.records import execution, gang, job, puts

ROOT = Path(__file__).parents[2]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "coordinator.db"


@pytest.fixture
def store(database: Path) -> Iterator[SqlStore]:
    opened = SqlStore.open(database)
    yield opened
    opened.close()


def query(database: Path, statement: str) -> list[tuple[object, ...]]:
    """What another program reads from the file."""
    connection = sqlite3.connect(database)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def change(database: Path, statement: str) -> None:
    connection = sqlite3.connect(database)
    with connection:
        connection.execute(statement)
    connection.close()


def test_every_printed_commit_survives_a_kill(database: Path) -> None:
    program = [sys.executable, "-m", "tests.contract.committing", str(database)]
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        printed = [child.stdout.readline() for _ in range(300)]
        child.kill()
        printed += child.stdout.readlines()

    store = SqlStore.open(database)
    loaded = store.load()
    store.close()

    assert child.returncode == -9
    numbers = [int(line) for line in printed if line.endswith("\n")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [job.sequence for job in loaded.jobs][: len(numbers)] == numbers
    assert len(loaded.executions) == 3 * len(loaded.jobs)


def test_people_can_query_columns(store: SqlStore, database: Path) -> None:
    store.commit([*gang("a", size=1), *puts(execution("a", state=State.ARMED))])

    assert query(database, "SELECT name, sequence, submitted_at FROM jobs") == [
        ("job a", 1, "2026-11-21 08:48:50.123456"),
    ]
    assert query(database, "SELECT state, node FROM executions") == [("armed", "node-1")]


def test_people_can_query_transitions(store: SqlStore, database: Path) -> None:
    store.commit(gang("a", size=1))
    store.commit(puts(execution("a", state=State.PREPARING)))
    store.commit(puts(execution("a", state=State.PREPARING)))

    assert query(database, "SELECT execution, state, at FROM transitions ORDER BY at") == [
        ("a-1-0", "queued", "2026-11-21 08:48:50.123456"),
        ("a-1-0", "placed", "2026-11-21 08:48:51.123456"),
        ("a-1-0", "preparing", "2026-11-21 08:48:52.123456"),
    ]

    store.commit([DropJob(job=JobId("a"))])
    assert query(database, "SELECT * FROM transitions") == []


def test_people_can_query_whose_jobs_there_are(store: SqlStore, database: Path) -> None:
    spec = replace(job("a").spec, project="vision", labels={"paper": "icml"})
    store.commit([Put(record=replace(job("a"), owner="ada", spec=spec)), *puts(job("b", sequence=2))])

    assert query(database, "SELECT id FROM jobs WHERE project = 'vision' AND owner = 'ada'") == [("a",)]
    assert query(database, "SELECT owner FROM jobs WHERE id = 'b'") == [("local",)]
    assert query(database, "SELECT job, name, value FROM job_labels") == [("a", "paper", "icml")]


def test_a_database_from_before_the_first_release_is_refused_in_plain_words(store: SqlStore, database: Path) -> None:
    store.close()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0009'")
        connection.commit()

    with pytest.raises(StoreError, match=r"from before its first release \(schema 0009\).* start with a new one"):
        SqlStore.open(database)

    assert query(database, "SELECT version_num FROM alembic_version") == [("0009",)]


def test_a_full_database_refuses_the_whole_batch_and_goes_on_later(database: Path) -> None:
    pages = 60

    def limit(connection: sqlite3.Connection, _: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages}")

    store = SqlStore.open(database)
    store.commit(gang("a", size=1))
    store.close()
    event.listen(Engine, "connect", limit)
    store = SqlStore.open(database)
    try:
        with pytest.raises(StoreError, match=r"database or disk is full.*free some space"):
            store.commit(gang("b", sequence=2, size=2000))
        assert [job.id for job in store.load().jobs] == ["a"]
        assert len(store.load().executions) == 1
        store.commit(gang("c", sequence=2, size=1))
        assert [job.id for job in store.load().jobs] == ["a", "c"]
    finally:
        event.remove(Engine, "connect", limit)
        store.close()


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    if not unshare:
        pytest.skip("needs unshare, for a small file system of its own")
    mount = 'mount -t tmpfs -o size=8m none "$1" || exit 77; exec "$2" -m tests.contract.filling "$1"'
    program = [unshare, "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(tmp_path), sys.executable]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no file system of its own here: {done.stderr.strip()}")

    result = json.loads(done.stdout)

    kept = result["database"]
    assert kept["jobs"] == kept["done"] > 0
    assert kept["executions"] == 2 * kept["done"]
    assert kept["after"] == kept["done"] + 1
    assert "disk is full" in kept["message"]
    log = result["log"]
    assert log["size"] == log["stored"] == log["on_disk"] > 0
    assert log["message"].startswith("the log of a-1-0 cannot be kept: No space left on device. Free some space")
    deletion = result["deletion"]
    assert deletion["reserved"] == 192 * 1024
    assert "disk is full" in deletion["message"]
    assert "two" not in deletion["left"]
    room = result["room"]
    assert "left, which are for its database: logs wait on their nodes" in room["message"]
    assert room["jobs"] == ["after"]
    assert room["again"] > 0


@pytest.mark.parametrize("at", [0.3, 0.6, 0.9])
def test_a_database_that_the_disk_has_damaged_is_not_served(store: SqlStore, database: Path, at: float) -> None:
    store.commit([change for number in range(50) for change in gang(f"job-{number}", sequence=number)])
    store.close()
    require_whole(database)
    with database.open("r+b") as file:
        file.seek(int(database.stat().st_size * at) // 4096 * 4096)
        file.write(b"\xff" * 4096)

    with pytest.raises(StoreError, match=r"(?s)coordinator\.db is damaged: .* Restore a backup"):
        require_whole(database)


def test_another_writer_is_named_as_the_reason(store: SqlStore, database: Path) -> None:
    def hurry(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute("PRAGMA busy_timeout = 0")

    other = sqlite3.connect(database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    event.listen(Pool, "checkout", hurry)
    try:
        with pytest.raises(StoreError, match=r"database is locked.*Another program holds the file"):
            store.commit(gang("a"))
    finally:
        event.remove(Pool, "checkout", hurry)
        other.close()

    store.commit(gang("a"))
    assert [job.id for job in store.load().jobs] == ["a"]


def test_a_file_that_is_no_database_is_refused_and_left_alone(database: Path) -> None:
    content = b"name: train\nimage: pytorch\n" * 100
    database.write_bytes(content)

    with pytest.raises(StoreError, match=r"coordinator\.db .*file is not a database.*move it away"):
        SqlStore.open(database)

    assert database.read_bytes() == content


def test_a_damaged_database_says_so(store: SqlStore, database: Path) -> None:
    store.commit(gang("a", size=500))
    store.close()
    whole = database.read_bytes()
    database.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 8192))

    with pytest.raises(StoreError, match=r"malformed.*put a backup in its place"):
        SqlStore.open(database).load()


def test_a_record_that_cannot_be_read_is_named(store: SqlStore, database: Path) -> None:
    store.commit(gang("a"))
    change(database, """UPDATE jobs SET body = '{"id": 1}'""")

    with pytest.raises(StoreError, match=r"table jobs .*cannot be read"):
        store.load()


def test_a_database_of_another_program_is_refused(database: Path) -> None:
    change(database, "CREATE TABLE recipes (name TEXT)")

    with pytest.raises(StoreError, match=r"another program .*table recipes"):
        SqlStore.open(database)

    assert query(database, "SELECT name FROM sqlite_master") == [("recipes",)]


def test_a_database_of_a_newer_version_is_refused(store: SqlStore, database: Path) -> None:
    store.commit(gang("a"))
    store.close()
    change(database, "UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(StoreError, match=rf"newer Muster \(schema 9999, this one knows up to {schema.VERSION}\)"):
        SqlStore.open(database)

    assert query(database, "SELECT version_num FROM alembic_version") == [("9999",)]


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"nowhere/coordinator\.db .*Check that the directory is there"):
        SqlStore.open(tmp_path / "nowhere" / "coordinator.db")


def test_a_path_with_special_characters_is_only_a_path(tmp_path: Path) -> None:
    directory = tmp_path / "50%20 off?mode=ro#ü"
    directory.mkdir()
    store = SqlStore.open(directory / "coordinator.db")
    store.commit(gang("a"))
    store.close()

    assert query(directory / "coordinator.db", "SELECT id FROM jobs") == [("a",)]


def test_the_migrations_lead_to_the_schema_of_the_program(store: SqlStore, database: Path) -> None:
    assert store.load() == Snapshot()
    engine = connect(database)
    tables = trust_schema.enrolled_nodes.metadata  # who is known has tables beside those of the records
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = compare_metadata(context, tables)
    engine.dispose()

    assert differences == []
    assert migrations.known()[0] == schema.VERSION


def test_a_current_database_opens_without_alembic(store: SqlStore, database: Path) -> None:
    store.close()
    program = (
        "import sys; from pathlib import Path; from coordinator.store.records.sql import SqlStore; "
        "SqlStore.open(Path(sys.argv[1])).close(); print('alembic' in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(database)], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout == "False\n"


def test_a_commit_is_on_the_disk_before_it_returns(database: Path) -> None:
    engine = connect(database)
    with engine.connect() as connection:
        settings = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    engine.dispose()

    assert settings == ["wal", 2, 1]


def test_writes_can_be_said_in_postgresql() -> None:
    dialect = make_url("postgresql+psycopg://").get_dialect()()

    replaces = str(upsert(dialect, schema.nodes).compile(dialect=dialect))

    assert "ON CONFLICT (name) DO UPDATE SET identity = excluded.identity" in replaces
