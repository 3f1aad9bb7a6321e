"""Trust on disk: what is kept is read back, join tokens are counted, and the audit log is only added to."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from coordinator.store.records.sql import SqlStore
from coordinator.store.trust.sql import SqlTrust
from coordinator.trust.records import (
    AuditWish,
    RemovedAccount,
    RemovedToken,
    StoredJoinToken,
    StoredToken,
    TokensUsed,
    TrustSnapshot,
)
from muster.domain.fleet.access import (
    EVERYWHERE,
    Access,
    Account,
    AccountKind,
    AuditEntry,
    EnrolledNode,
    IssuedJoinToken,
    IssuedToken,
)
from muster.domain.ids import NodeId

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
ADA = Account(
    name="ada", kind=AccountKind.USER, created_at=NOW, grants={EVERYWHERE: Access.VIEWER, "vision": Access.ADMIN}
)
TOKEN = StoredToken(token=IssuedToken(id="t1", account="ada", note="laptop", created_at=NOW), digest="d1")
JOIN = StoredJoinToken(
    token=IssuedJoinToken(
        id="j1",
        created_by="ada",
        created_at=NOW,
        expires_at=NOW + timedelta(hours=1),
        uses_left=2,
        labels={"pool": "a"},
    ),
    digest="d2",
)


def node(name: str) -> EnrolledNode:
    return EnrolledNode(name=NodeId(name), key=f"key of {name}", enrolled_at=NOW, token="j1", labels={"pool": "a"})


def entry(number: int = 0, who: str = "ada") -> AuditEntry:
    at = NOW + timedelta(seconds=number)
    return AuditEntry(at=at, who=who, what="jobs.submit", target=f"j{number}", origin="ipv4:1.2.3.4:5", result="ok")


def unplaced(entry: AuditEntry) -> AuditEntry:
    """The entry as it was before it was written."""
    return replace(entry, number=0, previous="", hash="")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "coordinator.db"


@pytest.fixture
def store(database: Path) -> Iterator[SqlTrust]:
    opened = SqlTrust.open(database)
    yield opened
    opened.close()


def test_everything_is_read_back_as_it_was_kept(store: SqlTrust, database: Path) -> None:
    store.commit_trust([ADA, TOKEN, JOIN, node("a")], [entry()])
    again = SqlTrust.open(database)
    assert again.load_trust() == TrustSnapshot(
        accounts=(ADA,), tokens=(TOKEN,), join_tokens=(JOIN,), nodes=(node("a"),)
    )
    assert list(map(unplaced, again.audit(AuditWish()))) == [entry()]
    again.close()


def test_it_lives_beside_the_records(store: SqlTrust, database: Path) -> None:
    records = SqlStore.open(database)
    store.commit_trust([ADA], [])
    assert records.load().jobs == ()
    records.close()


def test_an_account_with_other_grants_keeps_its_tokens(store: SqlTrust) -> None:
    store.commit_trust([ADA, TOKEN])
    less = replace(ADA, grants={"vision": Access.VIEWER})
    store.commit_trust([less])
    assert (store.load_trust().accounts, store.load_trust().tokens) == ((less,), (TOKEN,))


def test_a_removed_account_takes_its_tokens_along(store: SqlTrust) -> None:
    store.commit_trust([ADA, TOKEN])
    store.commit_trust([RemovedAccount(name="ada")])
    assert store.load_trust() == TrustSnapshot()


def test_a_removed_token_goes_alone(store: SqlTrust) -> None:
    other = replace(TOKEN, token=replace(TOKEN.token, id="t2"))
    store.commit_trust([ADA, TOKEN, other])
    store.commit_trust([RemovedToken(id="t1")])
    assert store.load_trust() == TrustSnapshot(accounts=(ADA,), tokens=(other,))


def test_a_token_is_read_back_with_its_scope_and_its_last_use(store: SqlTrust) -> None:
    narrow = replace(TOKEN, token=replace(TOKEN.token, access=Access.MEMBER, projects=("red", "blue")))
    store.commit_trust([ADA, narrow])
    used = NOW + timedelta(hours=2)
    store.commit_trust([TokensUsed(times={"t1": used, "gone meanwhile": used})])
    store.commit_trust([TokensUsed(times={})])
    assert store.load_trust().tokens == (replace(narrow, token=replace(narrow.token, used_at=used)),)


def test_an_account_is_read_back_with_its_identity(store: SqlTrust) -> None:
    known = replace(ADA, identity="https://login.example.org|248289761001")
    store.commit_trust([known])
    assert store.load_trust().accounts == (known,)


def test_a_join_token_is_used_as_often_as_it_may_also_by_many_at_once(store: SqlTrust) -> None:
    store.commit_trust([JOIN])
    with ThreadPoolExecutor(8) as pool:
        used = list(pool.map(lambda number: store.enrol("j1", node(f"n{number}"), entry(number)), range(8)))
    assert sorted(token.uses_left for token in used if token is not None) == [0, 1]
    assert len(store.load_trust().nodes) == 2
    assert len(store.audit(AuditWish())) == 2


@pytest.mark.parametrize(
    "token",
    [
        replace(JOIN, token=replace(JOIN.token, uses_left=0)),
        replace(JOIN, token=replace(JOIN.token, expires_at=NOW)),
        replace(JOIN, token=replace(JOIN.token, revoked_at=NOW)),
    ],
)
def test_a_join_token_that_does_not_count_lets_nobody_in(store: SqlTrust, token: StoredJoinToken) -> None:
    store.commit_trust([token])
    assert store.enrol("j1", node("a"), entry()) is None
    assert (store.load_trust().nodes, store.audit(AuditWish())) == ((), [])


def test_the_audit_log_is_found_by_time_and_account_the_newest_last(store: SqlTrust) -> None:
    store.commit_trust([], [entry(0), entry(1, "bob"), entry(2)])
    assert [each.target for each in store.audit(AuditWish(since=NOW + timedelta(seconds=1)))] == ["j1", "j2"]
    assert [each.target for each in store.audit(AuditWish(who="ada"))] == ["j0", "j2"]
    assert [each.target for each in store.audit(AuditWish(limit=2))] == ["j1", "j2"]
