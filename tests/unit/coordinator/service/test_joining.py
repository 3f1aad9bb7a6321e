"""How nodes join, and what is written down of those that do not; no transport is involved."""

from dataclasses import replace

import pytest

from coordinator.service.trust.enrolment import EnrolmentOperations, JoinOperations, JoinTokenWish
from coordinator.trust.authority import FleetAuthority
from coordinator.trust.caller import STRANGER, RefusedError
from coordinator.trust.records import StoredJoinToken
from muster.domain.errors import InvalidJobError, PermissionDeniedError
from muster.domain.fleet.access import Access, AuditEntry, EnrolledNode, IssuedJoinToken
from muster.domain.ids import NodeId
from muster.trust.certificates import facts, make_authority, new_key, request_certificate
from muster.trust.tokens import TokenFormError, new_join_token
from tests.unit.coordinator.service.callers import HERE, Trusted, of_all
from tests.unit.coordinator.trust.memory_trust import NOW, MemoryTrust

A = NodeId("a")
NODE = replace(STRANGER, origin=HERE)
OPERATOR = of_all(Access.OPERATOR)


class JoinableTrust(MemoryTrust):
    """A store that counts the uses of join tokens."""

    def enrol(self, token: str, node: EnrolledNode, entry: AuditEntry) -> IssuedJoinToken | None:
        del node
        self.entries.append(entry)
        tokens = [each.token for each in self.changes if isinstance(each, StoredJoinToken)]
        (stored,) = [each for each in tokens if each.id == token]
        return replace(stored, uses_left=stored.uses_left - 1)


class Joined:
    """A fleet with an authority, and what callers may do with it."""

    def __init__(self) -> None:
        self.trusted = Trusted(JoinableTrust())
        self.authority = FleetAuthority(make_authority(NOW), ["127.0.0.1"], NOW)
        registry, operations = self.trusted.registry, self.trusted.operations
        self.enrolment = EnrolmentOperations(operations, registry.joined, self.authority)
        self.joining = JoinOperations(operations, registry.joined, self.authority)


async def test_a_node_joins_on_a_token_and_carries_its_labels() -> None:
    fleet = Joined()
    secret, token = await fleet.enrolment.create_token(OPERATOR, JoinTokenWish(labels={"rack": "7"}))

    joined = await fleet.joining.join(NODE, A, secret, request_certificate(new_key(), A))
    (node,) = await fleet.enrolment.nodes(OPERATOR)

    assert facts(joined.certificate).node == A
    assert (node.name, node.labels, node.token) == (A, {"rack": "7"}, token.id)
    assert await fleet.trusted.told() == [
        ("root", "join_tokens.create", token.id, "ok"),
        ("", "nodes.join", "a", f"ok, join token {token.id}"),
    ]


async def test_the_audit_log_knows_why_a_node_was_refused_and_the_node_does_not() -> None:
    fleet = Joined()
    wrong = new_join_token(fleet.authority.fingerprint)

    with pytest.raises(RefusedError) as refused:
        await fleet.joining.join(NODE, A, str(wrong), request_certificate(new_key(), A))
    with pytest.raises(TokenFormError):
        await fleet.joining.join(NODE, A, "rubbish", b"")

    assert "wrong join token" not in str(refused.value)
    assert await fleet.trusted.told() == [
        ("", "nodes.join", "a", "wrong join token"),
        ("", "nodes.join", "a", "TokenFormError"),
    ]


async def test_a_request_that_cannot_be_read_is_written_down() -> None:
    fleet = Joined()

    await fleet.joining.note_unreadable(NODE, "-", InvalidJobError("no name"))

    assert await fleet.trusted.told() == [("", "nodes.join", "-", "InvalidJobError")]


async def test_operators_let_nodes_in_and_send_them_away_and_members_do_not() -> None:
    fleet, member = Joined(), of_all(Access.MEMBER, "member")
    secret, token = await fleet.enrolment.create_token(OPERATOR, JoinTokenWish(labels={}))
    await fleet.joining.join(NODE, A, secret, request_certificate(new_key(), A))

    for asked in (
        fleet.enrolment.create_token(member, JoinTokenWish(labels={})),
        fleet.enrolment.list_tokens(member),
        fleet.enrolment.revoke_token(member, token.id),
        fleet.enrolment.nodes(member),
        fleet.enrolment.revoke_node(member, A),
    ):
        with pytest.raises(PermissionDeniedError, match="needs operator access to every project"):
            await asked
    gone = await fleet.enrolment.revoke_node(OPERATOR, A)
    closed = await fleet.enrolment.revoke_token(OPERATOR, token.id)

    assert None not in {gone.revoked_at, closed.revoked_at}
    assert [each.id for each in await fleet.enrolment.list_tokens(OPERATOR)] == [token.id]
