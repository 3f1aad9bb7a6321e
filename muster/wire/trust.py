"""Values of trust.proto: accounts, tokens, projects, nodes that have joined, the audit log."""

from collections.abc import Mapping

from muster.domain.fleet.access import (
    EVERYWHERE,
    Access,
    Account,
    AccountKind,
    AuditAnchor,
    AuditEntry,
    AuditPage,
    AuthorityStatus,
    EnrolledNode,
    IssuedJoinToken,
    IssuedToken,
    KnownAuthority,
    Myself,
)
from muster.domain.ids import NodeId
from muster.rpc.v1 import trust_pb2 as pb
from muster.wire import checks


def grants_from_wire(grants: Mapping[str, str], where: str) -> dict[str, Access]:
    """Access by project; raises WireError."""
    return {
        project if project == EVERYWHERE else checks.label(project, where): checks.word(Access, access, where)
        for project, access in grants.items()
    }


def access_from_wire(access: str, where: str) -> Access | None:
    """The most that a token may; None for an empty text; raises WireError."""
    return checks.word(Access, access, where) if access else None


def account_to_wire(account: Account) -> pb.Account:
    """Somebody whom the coordinator knows."""
    return pb.Account(
        name=account.name,
        kind=account.kind,
        created_at=checks.timestamp(account.created_at),
        grants={project: str(access) for project, access in account.grants.items()},
        identity=account.identity,
    )


def account_from_wire(message: pb.Account) -> Account:
    """Somebody whom the coordinator knows; raises WireError."""
    return Account(
        name=message.name,
        kind=checks.word(AccountKind, message.kind, "Account.kind"),
        created_at=checks.moment(message.created_at, "Account.created_at"),
        grants=grants_from_wire(message.grants, "Account.grants"),
        identity=checks.text(message.identity, "Account.identity"),
    )


def token_to_wire(token: IssuedToken) -> pb.Token:
    """What is known of an API token."""
    return pb.Token(
        id=token.id,
        account=token.account,
        note=token.note,
        created_at=checks.timestamp(token.created_at),
        expires_at=checks.timestamp(token.expires_at),
        revoked_at=checks.timestamp(token.revoked_at),
        access=token.access or "",
        projects=token.projects,
        used_at=checks.timestamp(token.used_at),
    )


def token_from_wire(message: pb.Token) -> IssuedToken:
    """What is known of an API token; raises WireError."""
    return IssuedToken(
        id=message.id,
        account=message.account,
        note=message.note,
        created_at=checks.moment(message.created_at, "Token.created_at"),
        expires_at=checks.optional_moment(message, "expires_at"),
        revoked_at=checks.optional_moment(message, "revoked_at"),
        access=access_from_wire(message.access, "Token.access"),
        projects=tuple(message.projects),
        used_at=checks.optional_moment(message, "used_at"),
    )


def join_token_to_wire(token: IssuedJoinToken) -> pb.JoinToken:
    """What is known of a join token."""
    return pb.JoinToken(
        id=token.id,
        created_by=token.created_by,
        created_at=checks.timestamp(token.created_at),
        expires_at=checks.timestamp(token.expires_at),
        uses_left=token.uses_left,
        labels=token.labels,
        revoked_at=checks.timestamp(token.revoked_at),
    )


def join_token_from_wire(message: pb.JoinToken) -> IssuedJoinToken:
    """What is known of a join token; raises WireError."""
    return IssuedJoinToken(
        id=message.id,
        created_by=message.created_by,
        created_at=checks.moment(message.created_at, "JoinToken.created_at"),
        expires_at=checks.moment(message.expires_at, "JoinToken.expires_at"),
        uses_left=message.uses_left,
        labels=dict(message.labels),
        revoked_at=checks.optional_moment(message, "revoked_at"),
    )


def enrolled_node_to_wire(node: EnrolledNode) -> pb.EnrolledNode:
    """A node that has joined."""
    return pb.EnrolledNode(
        name=node.name,
        key=node.key,
        enrolled_at=checks.timestamp(node.enrolled_at),
        token=node.token,
        labels=node.labels,
        revoked_at=checks.timestamp(node.revoked_at),
    )


def enrolled_node_from_wire(message: pb.EnrolledNode) -> EnrolledNode:
    """A node that has joined; raises WireError."""
    return EnrolledNode(
        name=NodeId(checks.identifier(message.name, "EnrolledNode.name")),
        key=message.key,
        enrolled_at=checks.moment(message.enrolled_at, "EnrolledNode.enrolled_at"),
        token=message.token,
        labels=dict(message.labels),
        revoked_at=checks.optional_moment(message, "revoked_at"),
    )


def audit_entry_to_wire(entry: AuditEntry) -> pb.AuditEntry:
    """Somebody did something, or was refused."""
    return pb.AuditEntry(
        at=checks.timestamp(entry.at),
        who=entry.who,
        what=entry.what,
        target=entry.target,
        origin=entry.origin,
        result=entry.result,
        number=entry.number,
        previous=entry.previous,
        hash=entry.hash,
    )


def audit_entry_from_wire(message: pb.AuditEntry) -> AuditEntry:
    """Somebody did something, or was refused; raises WireError."""
    return AuditEntry(
        at=checks.moment(message.at, "AuditEntry.at"),
        who=message.who,
        what=message.what,
        target=message.target,
        origin=message.origin,
        result=message.result,
        number=message.number,
        previous=message.previous,
        hash=message.hash,
    )


def audit_page_to_wire(page: AuditPage) -> pb.ListAuditResponse:
    """Some entries of the audit log."""
    return pb.ListAuditResponse(
        entries=map(audit_entry_to_wire, page.entries),
        next_page_token=page.next_page,
        anchor_number=page.anchor.number,
        anchor_hash=page.anchor.hash,
    )


def audit_page_from_wire(message: pb.ListAuditResponse) -> AuditPage:
    """Some entries of the audit log; raises WireError."""
    return AuditPage(
        entries=tuple(map(audit_entry_from_wire, message.entries)),
        next_page=message.next_page_token,
        anchor=AuditAnchor(number=message.anchor_number, hash=message.anchor_hash),
    )


def myself_to_wire(myself: Myself) -> pb.WhoAmIResponse:
    """What the caller is."""
    return pb.WhoAmIResponse(
        name=myself.name,
        kind=myself.kind,
        grants={project: str(access) for project, access in myself.grants.items()},
        token=myself.token,
        expires_at=checks.timestamp(myself.expires_at),
        identity=myself.identity,
    )


def myself_from_wire(message: pb.WhoAmIResponse) -> Myself:
    """What the caller is; raises WireError."""
    return Myself(
        name=message.name,
        kind=message.kind,
        grants=grants_from_wire(message.grants, "WhoAmIResponse.grants"),
        token=message.token,
        expires_at=checks.optional_moment(message, "expires_at"),
        identity=checks.text(message.identity, "WhoAmIResponse.identity"),
    )


def authority_status_to_wire(status: AuthorityStatus) -> pb.AuthorityStatus:
    """How far a change of the authority is."""
    return pb.AuthorityStatus(
        stage=status.stage,
        authorities=[
            pb.KnownAuthority(
                fingerprint=each.fingerprint, signs=each.signs, not_after=checks.timestamp(each.not_after)
            )
            for each in status.authorities
        ],
        begun_at=checks.timestamp(status.begun_at),
        moved=status.moved,
        waiting=status.waiting,
        away=status.away,
    )


def authority_status_from_wire(message: pb.AuthorityStatus) -> AuthorityStatus:
    """How far a change of the authority is; raises WireError."""
    return AuthorityStatus(
        stage=checks.text(message.stage, "AuthorityStatus.stage"),
        authorities=tuple(
            KnownAuthority(
                fingerprint=each.fingerprint,
                signs=each.signs,
                not_after=checks.moment(each.not_after, "KnownAuthority.not_after"),
            )
            for each in message.authorities
        ),
        begun_at=checks.optional_moment(message, "begun_at"),
        moved=message.moved,
        waiting=tuple(NodeId(checks.identifier(each, "AuthorityStatus.waiting")) for each in message.waiting),
        away=tuple(NodeId(checks.identifier(each, "AuthorityStatus.away")) for each in message.away),
    )
