"""What becomes of changes of trust that meet each other."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import pytest

from coordinator.trust.caller import RefusedError
from coordinator.trust.records import TokensUsed
from coordinator.trust.registry import Registry
from coordinator.trust.secrets.secrets import Secrets
from muster.domain.errors import UnknownNameError
from muster.domain.fleet.access import Access, Account, AccountKind, AuditEntry, EnrolledNode, IssuedToken
from muster.domain.fleet.project_use import UseKind
from muster.domain.fleet.secret import Secret, SecretKind
from muster.domain.ids import NodeId
from muster.trust.sealing import new_sealing_key
from muster.trust.tokens import new_api_token
from tests.unit.coordinator.trust.memory_trust import NOW, PROJECTS, MemoryTrust, TrustThatWaits

ENTRY = AuditEntry(at=NOW, who="admin", what="", target="", origin="", result="ok")


async def test_an_account_that_is_being_removed_gets_no_token_any_more() -> None:
    registry = Registry(MemoryTrust(), PROJECTS)
    await registry.add_account(Account(name="ada", kind=AccountKind.USER, created_at=NOW, grants={}), ENTRY)
    secret = new_api_token()
    token = IssuedToken(id=secret.id, account="ada", note="", created_at=NOW)
    _, outcome = await asyncio.gather(
        registry.remove_account("ada", AccountKind.USER, ENTRY),
        registry.add_token(secret, token, ENTRY),
        return_exceptions=True,
    )
    assert isinstance(outcome, UnknownNameError)
    assert registry.tokens == {}


async def test_the_use_of_a_token_is_noted_in_memory_and_written_once_for_all_calls() -> None:
    store = MemoryTrust()
    registry = Registry(store, PROJECTS)
    await registry.add_account(Account(name="ada", kind=AccountKind.USER, created_at=NOW, grants={}), ENTRY)
    secret = new_api_token()
    await registry.add_token(secret, IssuedToken(id=secret.id, account="ada", note="", created_at=NOW), ENTRY)
    before = len(store.changes)
    for second in range(100):
        registry.caller_with(str(secret), NOW + timedelta(seconds=second))
    last = NOW + timedelta(seconds=99)
    assert ([token.used_at for token in registry.issued_tokens()], len(store.changes)) == ([last], before)
    await registry.keep_uses()
    await registry.keep_uses()
    assert store.changes[before:] == [TokensUsed(times={secret.id: last})]


async def test_a_token_that_is_narrowed_counts_as_long_as_its_account_has_the_same_access() -> None:
    registry = Registry(MemoryTrust(), PROJECTS)
    grants = {"red": Access.ADMIN, "blue": Access.ADMIN}
    await registry.add_account(Account(name="ada", kind=AccountKind.USER, created_at=NOW, grants=grants), ENTRY)
    secret = new_api_token()
    token = IssuedToken(id=secret.id, account="ada", note="", created_at=NOW, access=Access.MEMBER, projects=("red",))
    await registry.add_token(secret, token, ENTRY)
    who = registry.caller_with(str(secret), NOW)
    assert who.grants == {"red": Access.MEMBER}
    await registry.grant("ada", "blue", None, ENTRY)
    assert registry.still_counts(who, NOW)
    await registry.grant("ada", "red", Access.VIEWER, ENTRY)
    assert not registry.still_counts(who, NOW)


async def test_two_keys_of_a_node_count_until_it_shows_the_newer_one() -> None:
    registry, name = Registry(MemoryTrust(), PROJECTS), NodeId("a")
    registry.joined.by_name[name] = EnrolledNode(name=name, key="old", enrolled_at=NOW, token="t")
    before = registry.joined.caller_with(name, "old", NOW)
    await registry.joined.offer_key(name, "lost", 1, ENTRY)
    await registry.joined.offer_key(name, "new", 1, ENTRY)
    with pytest.raises(RefusedError):
        registry.joined.caller_with(name, "lost", NOW)
    assert (registry.still_counts(before, NOW), registry.joined.by_name[name].epoch) == (True, 0)
    await registry.joined.settle_key(name, "old", ENTRY)
    assert registry.still_counts(before, NOW)
    after = registry.joined.caller_with(name, "new", NOW)
    less: list[NodeId | None] = []
    registry.changes.on_less = less.append
    await registry.joined.settle_key(name, "new", ENTRY)
    assert less == [name]  # whose streams alone are looked at again
    assert (registry.still_counts(before, NOW), registry.still_counts(after, NOW)) == (False, True)
    assert registry.joined.by_name[name].epoch == 1
    with pytest.raises(RefusedError):
        registry.joined.caller_with(name, "", NOW)


async def test_certificates_of_a_former_authority_count_no_more_and_those_of_the_next_go_on() -> None:
    registry, name = Registry(MemoryTrust(), PROJECTS), NodeId("a")
    registry.joined.by_name[name] = EnrolledNode(name=name, key="key", enrolled_at=NOW, token="t")
    registry.joined.count_authorities(frozenset({"former", "next"}))
    streams = [registry.joined.caller_with(name, "key", NOW, authority) for authority in ("former", "next")]
    ended: list[str] = []
    registry.changes.on_less = lambda _: ended.extend(
        who.authority for who in streams if not registry.still_counts(who, NOW)
    )
    registry.joined.count_authorities(frozenset({"next"}))
    assert ended == ["former"]
    assert registry.joined.caller_with(name, "key", NOW, "next") == streams[1]
    with pytest.raises(RefusedError, match="of an authority that counts no more: make a token"):
        registry.joined.caller_with(name, "key", NOW, "former")


async def let_go_after_cancelling(store: TrustThatWaits, change: Coroutine[Any, Any, object]) -> None:
    """Have the caller of a change go away while the change is being stored."""
    calling = asyncio.create_task(change)
    await asyncio.to_thread(store.entered.wait, 60)
    calling.cancel()
    await asyncio.sleep(0)
    store.let_go.set()
    await asyncio.wait([calling])
    assert calling.cancelled()


async def test_a_token_that_is_revoked_counts_no_more_although_its_revoker_goes_away_meanwhile() -> None:
    store = TrustThatWaits()
    store.let_go.set()
    registry, less = Registry(store, PROJECTS), list[NodeId | None]()
    await registry.add_account(Account(name="ada", kind=AccountKind.USER, created_at=NOW, grants={}), ENTRY)
    secret = new_api_token()
    await registry.add_token(secret, IssuedToken(id=secret.id, account="ada", note="", created_at=NOW), ENTRY)
    store.entered.clear()
    store.let_go.clear()
    registry.changes.on_less = less.append

    await let_go_after_cancelling(store, registry.revoke_token(secret.id, NOW, ENTRY))

    with pytest.raises(RefusedError):
        registry.caller_with(str(secret), NOW)
    assert less == [None]


async def test_what_is_stored_is_known_although_its_giver_goes_away_meanwhile() -> None:
    for_accounts, for_secrets = TrustThatWaits(), TrustThatWaits()
    registry, secrets = Registry(for_accounts, PROJECTS), Secrets(for_secrets, [new_sealing_key()], PROJECTS)
    ada = Account(name="ada", kind=AccountKind.USER, created_at=NOW, grants={"red": Access.MEMBER})
    db = Secret(
        project="red",
        name="db",
        kind=SecretKind.GENERIC,
        keys=("user",),
        created_at=NOW,
        updated_at=NOW,
        updated_by="ada",
    )

    await let_go_after_cancelling(for_accounts, registry.add_account(ada, ENTRY))
    await let_go_after_cancelling(for_secrets, secrets.put(db, {"user": b"u"}, ENTRY, again=False))

    assert registry.accounts == {"ada": ada}
    assert [use.kind for use in registry.uses_of("red", NOW)] == [UseKind.GRANT]
    assert dict(secrets.of_project("red")) == {"db": db}
