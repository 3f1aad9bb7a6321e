"""The audit log on disk: a chain that is only added to, read in pages, and cut off at its old end."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from coordinator.store.dialect import connect
from coordinator.store.trust.audit_reserve import RESERVE_SIZE
from coordinator.store.trust.sql import PRUNED, SqlTrust
from coordinator.trust.records import AuditWish
from muster.domain.fleet.access import AuditAnchor, AuditEntry
from muster.domain.fleet.audit_chain import ChainCheck, hash_of
from tests.contract.postgresql import MissingServerError, PostgreSQL, postgresql

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def entry(number: int) -> AuditEntry:
    at = NOW + timedelta(seconds=number)
    return AuditEntry(at=at, who="ada", what="jobs.stop", target=f"j{number}", origin="ipv4:1.2.3.4:5", result="ok")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQL]:
    try:
        with postgresql() as running:
            yield running
    except MissingServerError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where an empty database is, of each kind."""
    if request.param == "SQLite":
        return tmp_path / "coordinator.db"
    running: PostgreSQL = request.getfixturevalue("server")
    return running.new_database()


@pytest.fixture
def store(database: Path | str) -> Iterator[SqlTrust]:
    opened = SqlTrust.open(database)
    yield opened
    opened.close()


def execute(database: Path | str, *statements: str) -> None:
    """Do something to a database past the coordinator; `DROP TRIGGER` is said as the database wants it."""
    engine = connect(database)
    named = " ON audit" if engine.dialect.name == "postgresql" else ""
    try:
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement + named if statement.startswith("DROP TRIGGER") else statement))
    finally:
        engine.dispose()


def broken(store: SqlTrust, expected: AuditAnchor | None = None) -> int | None:
    """The entry at which the chain does not hold."""
    check = ChainCheck(store.audit_anchor(), expected)
    for each in store.audit(AuditWish(limit=1_000_000, oldest_first=True)):
        check.take(each)
    found = check.end()
    return None if found is None else found.number


def test_each_entry_follows_the_one_before_whoever_writes_it(store: SqlTrust, database: Path | str) -> None:
    store.commit_trust([], [entry(1), entry(2)])
    other = SqlTrust.open(database)
    other.commit_trust([], [entry(3)])
    store.commit_trust([], [entry(4)])
    found = store.audit(AuditWish())
    assert [each.number for each in found] == [1, 2, 3, 4]
    assert [each.previous for each in found] == ["", *(each.hash for each in found[:-1])]
    assert [each.hash for each in found] == [hash_of(each) for each in found]
    assert broken(store) is None
    other.close()


GUARDED = (
    "UPDATE audit SET who = 'somebody else'",
    "DELETE FROM audit",
    "DELETE FROM audit WHERE number = 2",
    "DELETE FROM audit_anchors",
    "UPDATE audit_anchors SET number = 3",
)


@pytest.mark.parametrize("order", GUARDED)
def test_nobody_changes_the_audit_log(store: SqlTrust, database: Path | str, order: str) -> None:
    store.commit_trust([], [entry(1), entry(2), entry(3)])
    assert store.prune_audit(NOW + timedelta(seconds=2), None, NOW) == 1
    before = store.audit(AuditWish())
    with pytest.raises(DBAPIError, match="the audit log is only added to"):
        execute(database, order)
    assert store.audit(AuditWish()) == before


def test_nobody_makes_an_anchor_of_what_is_no_entry(store: SqlTrust, database: Path | str) -> None:
    store.commit_trust([], [entry(1), entry(2)])
    with pytest.raises(DBAPIError, match="must be one of its entries"):
        execute(database, "INSERT INTO audit_anchors VALUES (2, 'f00', '2026-05-01 12:00:00')")


@pytest.mark.parametrize(
    ("tampering", "first"),
    [
        ("UPDATE audit SET target = 'another' WHERE number = 2", 2),
        ("UPDATE audit SET at = '2026-04-30 12:00:00.000000' WHERE number = 3", 3),
        ("DELETE FROM audit WHERE number = 2", 3),
        ("DELETE FROM audit WHERE number = 1", 2),
    ],
)
def test_whoever_changes_it_past_the_database_is_found_out(
    store: SqlTrust, database: Path | str, tampering: str, first: int
) -> None:
    store.commit_trust([], [entry(1), entry(2), entry(3), entry(4)])
    execute(database, "DROP TRIGGER audit_no_update", "DROP TRIGGER audit_no_delete", tampering)
    assert broken(store) == first


def test_a_log_that_was_rewritten_from_the_first_entry_on_does_not_have_the_noted_hash(
    store: SqlTrust, tmp_path: Path
) -> None:
    store.commit_trust([], [entry(1), entry(2), entry(3)])
    noted = store.audit(AuditWish())[1]
    forged = SqlTrust.open(tmp_path / "forged.db")
    forged.commit_trust([], [entry(1), replace(entry(2), who="eve"), entry(3)])
    expected = AuditAnchor(number=noted.number, hash=noted.hash)
    assert (broken(store, expected), broken(forged), broken(forged, expected)) == (None, None, 2)
    forged.close()


def test_entries_that_were_cut_off_at_the_new_end_are_missed_by_the_noted_hash(
    store: SqlTrust, database: Path | str
) -> None:
    store.commit_trust([], [entry(1), entry(2), entry(3)])
    noted = store.audit(AuditWish())[-1]
    execute(database, "DROP TRIGGER audit_no_delete", "DELETE FROM audit WHERE number > 1")
    assert broken(store, AuditAnchor(number=noted.number, hash=noted.hash)) == 3


def test_what_is_old_is_removed_and_the_rest_is_still_a_chain_that_says_so(store: SqlTrust) -> None:
    store.commit_trust([], [entry(number) for number in range(1, 6)])
    last = store.audit(AuditWish())[2]
    assert store.prune_audit(NOW + timedelta(seconds=4), None, NOW) == 3
    found = store.audit(AuditWish())
    assert [each.number for each in found] == [4, 5, 6]
    assert (found[-1].what, found[-1].target) == (PRUNED, "3")
    assert last.hash in found[-1].result
    assert store.audit_anchor() == AuditAnchor(number=3, hash=last.hash)
    assert broken(store) is None
    store.commit_trust([], [entry(7)])
    assert broken(store) is None


def test_nothing_is_removed_that_is_young_or_not_exported_nor_the_newest_entry(store: SqlTrust) -> None:
    store.commit_trust([], [entry(number) for number in range(1, 6)])
    assert store.prune_audit(NOW, None, NOW) == 0
    assert store.prune_audit(NOW + timedelta(days=1), 2, NOW) == 2
    assert [each.number for each in store.audit(AuditWish())] == [3, 4, 5, 6]
    assert store.prune_audit(NOW + timedelta(days=1), None, NOW) == 3
    assert [each.number for each in store.audit(AuditWish())] == [6, 7]
    assert broken(store) is None


def numbers(store: SqlTrust, **wish: Any) -> list[int]:
    return [each.number for each in store.audit(AuditWish(**wish))]


def test_it_is_read_in_pages_from_either_end(store: SqlTrust) -> None:
    store.commit_trust([], [entry(number) for number in range(1, 8)])
    assert numbers(store, limit=3) == [5, 6, 7]
    assert numbers(store, limit=3, beyond=5) == [2, 3, 4]
    assert numbers(store, limit=3, oldest_first=True) == [1, 2, 3]
    assert numbers(store, limit=3, oldest_first=True, beyond=3) == [4, 5, 6]
    until = NOW + timedelta(seconds=4)
    assert numbers(store, until=until, since=NOW + timedelta(seconds=2)) == [2, 3]


def test_room_is_kept_for_the_audit_log_on_a_disk_that_somebody_else_fills(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    if not unshare:
        pytest.skip("needs unshare, for a small file system of its own")
    mount = 'mount -t tmpfs -o size=64m none "$1" || exit 77; exec "$2" -m tests.contract.filling_audit "$1"'
    program = [unshare, "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(tmp_path), sys.executable]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no file system of its own here: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    assert result["held"] == RESERVE_SIZE
    assert result["batches"] >= 10
    assert result["used up"] == 0
    assert "disk is full" in result["message"]
    assert result["kept"] == (result["batches"] + 1) * 100
    assert result["again"] == RESERVE_SIZE
