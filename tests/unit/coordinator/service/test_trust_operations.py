"""What callers may do with accounts, tokens, projects, join tokens and the audit log; no transport is involved."""

from dataclasses import replace
from datetime import timedelta

import pytest

from coordinator.service.trust.accounts import AccountOperations
from coordinator.service.trust.audit import AUDIT_PAGE, AuditFilter, AuditOperations
from coordinator.service.trust.enrolment import EnrolmentOperations, JoinTokenWish
from coordinator.service.trust.tokens import NOTE, TokenOperations, TokenWish
from coordinator.trust.caller import Caller
from muster.domain.errors import ConflictError, InvalidJobError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import PERSON_TOKEN_LIFE, Access, Account, AccountKind
from tests.unit.coordinator.service.callers import Trusted, of_all, person
from tests.unit.coordinator.trust.memory_trust import NOW

ADMIN = of_all(Access.ADMIN)


def known(name: str, kind: AccountKind = AccountKind.USER, identity: str = "") -> Trusted:
    """A coordinator that knows this account."""
    trusted = Trusted()
    trusted.registry.accounts[name] = Account(name=name, kind=kind, created_at=NOW, identity=identity)
    return trusted


def tokens(trusted: Trusted) -> TokenOperations:
    return TokenOperations(trusted.operations, trusted.registry)


async def test_a_token_of_a_person_ends_and_one_of_a_program_does_not() -> None:
    person_, program = known("ada"), known("ci", AccountKind.SERVICE)

    _, first = await tokens(person_).create(ADMIN, TokenWish(account="ada"))
    _, second = await tokens(program).create(ADMIN, TokenWish(account="ci"))

    assert first.expires_at == first.created_at + PERSON_TOKEN_LIFE
    assert second.expires_at is None


async def test_a_token_that_ends_makes_none_that_ends_later() -> None:
    ends = NOW + timedelta(hours=1)
    caller = replace(person(red=Access.MEMBER), until=ends)

    _, token = await tokens(known("ada")).create(caller, TokenWish(ttl=timedelta(days=30)))

    assert token.expires_at == ends


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(days=4000)])
async def test_a_token_counts_for_some_time_and_not_for_ever(ttl: timedelta) -> None:
    with pytest.raises(InvalidJobError, match="a token may count for a second up to 3650 days"):
        await tokens(known("ada")).create(ADMIN, TokenWish(account="ada", ttl=ttl))


async def test_a_narrow_token_makes_none_that_may_more_and_is_written_down_with_what_it_may() -> None:
    trusted = known("ada")
    narrow = replace(person(red=Access.MEMBER), access=Access.MEMBER, projects=("red",))

    with pytest.raises(PermissionDeniedError, match="makes none for operator"):
        await tokens(trusted).create(narrow, TokenWish(access=Access.OPERATOR))
    _, token = await tokens(trusted).create(narrow, TokenWish(note="x" * 300))

    assert (token.access, token.projects, len(token.note)) == (Access.MEMBER, ("red",), NOTE)
    assert trusted.store.entries[-1].result == f"ok, token {token.id} (member in red)"


async def test_nobody_makes_or_revokes_a_token_of_somebody_else_but_an_admin() -> None:
    trusted = known("ada")
    _, token = await tokens(trusted).create(ADMIN, TokenWish(account="ada"))
    other = person("bob", red=Access.ADMIN)

    with pytest.raises(PermissionDeniedError, match="tokens of others are made by an admin"):
        await tokens(trusted).create(other, TokenWish(account="ada"))
    for refused in (tokens(trusted).revoke(other, token.id), tokens(trusted).prune(other, [token.id])):
        with pytest.raises(PermissionDeniedError, match="tokens of others are revoked by an admin"):
            await refused
    assert await tokens(trusted).list(other) == []
    assert [each.id for each in await tokens(trusted).list(ADMIN)] == [token.id]
    revoked = await tokens(trusted).revoke(ADMIN, token.id)

    assert revoked.revoked_at is not None
    assert [each for each in await trusted.told() if each[0] == "bob"] == [
        ("bob", "tokens.create", "ada", "tokens of others are made by an admin"),
        ("bob", "tokens.revoke", token.id, "tokens of others are revoked by an admin"),
        ("bob", "tokens.prune", "", "tokens of others are revoked by an admin"),
    ]


async def test_the_token_that_is_shown_is_not_pruned() -> None:
    trusted = known("ada")
    _, token = await tokens(trusted).create(ADMIN, TokenWish(account="ada"))

    with pytest.raises(ConflictError, match="is in use; leave it out"):
        await tokens(trusted).prune(replace(person(), token=token.id), [token.id])


async def test_accounts_are_made_granted_access_and_forgotten_by_admins() -> None:
    trusted = Trusted()
    accounts = AccountOperations(trusted.operations, trusted.registry)

    await accounts.add(ADMIN, "ada", AccountKind.USER, {"red": Access.VIEWER})
    granted = await accounts.grant(ADMIN, "ada", "blue", Access.MEMBER)
    listed = await accounts.list(ADMIN)
    await accounts.remove(ADMIN, "ada", AccountKind.USER)

    assert granted.grants == {"red": Access.VIEWER, "blue": Access.MEMBER}
    assert [each.name for each in listed] == ["ada"]
    assert await trusted.told() == [
        ("root", "accounts.add", "ada", "ok, viewer for red"),
        ("root", "accounts.grant", "ada", "ok, member for blue"),
        ("root", "accounts.remove", "ada", "ok"),
    ]


async def test_an_account_is_granted_no_access_to_a_project_that_is_not_there() -> None:
    trusted = Trusted()
    accounts = AccountOperations(trusted.operations, trusted.registry)

    with pytest.raises(UnknownNameError, match="there is no project 'green'"):
        await accounts.add(ADMIN, "ada", AccountKind.USER, {"green": Access.VIEWER})

    assert await trusted.told() == [("root", "accounts.add", "ada", "not_found")]


async def test_everybody_learns_who_they_are() -> None:
    trusted = known("ada", identity="https://id.example.org 7")
    myself = await AccountOperations(trusted.operations, trusted.registry).whoami(person(red=Access.MEMBER))

    assert (myself.name, myself.kind, myself.grants) == ("ada", "user", {"red": Access.MEMBER})
    assert myself.identity == "https://id.example.org 7"


async def test_a_fleet_of_one_machine_needs_no_join_token() -> None:
    trusted = Trusted()
    enrolment = EnrolmentOperations(trusted.operations, trusted.registry.joined, None)

    with pytest.raises(ConflictError, match="need no join token"):
        await enrolment.create_token(ADMIN, JoinTokenWish(labels={}))


async def test_the_audit_log_is_for_admins_and_in_pages() -> None:
    trusted = Trusted()
    audit = AuditOperations(trusted.operations, trusted.registry, trusted.audit)
    for caller in (ADMIN, person(red=Access.ADMIN)):
        await _look(audit, caller)

    page = await audit.list(ADMIN, AuditFilter(limit=AUDIT_PAGE + 1))
    with pytest.raises(InvalidJobError, match="the page token is none of this audit log"):
        await audit.list(ADMIN, AuditFilter(), page="x")

    assert [(each.who, each.what) for each in page.entries] == [("ada", "audit.list")]


async def _look(audit: AuditOperations, caller: Caller) -> None:
    if caller is ADMIN:
        await audit.list(caller, AuditFilter())
        return
    with pytest.raises(PermissionDeniedError, match="needs admin access to every project"):
        await audit.list(caller, AuditFilter())
