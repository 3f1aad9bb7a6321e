"""The clients' side: accounts, tokens, projects, nodes that have joined, the audit log."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration

from coordinator.clock import wall_time
from coordinator.rpc.callers import Context, caller, entry
from coordinator.rpc.clients.authority import AuthorityCalls, Rotations
from coordinator.rpc.refusals import translated
from coordinator.trust.audit.log import AuditLog, shortened
from coordinator.trust.authority import FleetAuthority
from coordinator.trust.narrowing import within
from coordinator.trust.policy import changes
from coordinator.trust.records import AuditWish
from coordinator.trust.registry import LONGEST_TTL, Registry
from muster.domain.errors import ConflictError, InvalidJobError, PermissionDeniedError
from muster.domain.fleet.access import (
    EVERYWHERE,
    OPEN,
    PERSON_TOKEN_LIFE,
    Access,
    Account,
    AccountKind,
    AuditEntry,
    IssuedJoinToken,
    IssuedToken,
    Policy,
)
from muster.domain.ids import NodeId
from muster.rpc.v1 import trust_pb2 as pb
from muster.rpc.v1 import trust_pb2_grpc
from muster.trust.tokens import new_api_token, new_join_token
from muster.wire import checks, trust
from muster.wire.nodes import given_labels
from muster.wire.policies import policy_from_wire

JOIN_TTL = timedelta(hours=1)
MOST_USES = 10_000
AUDIT_PAGE = 10_000
"""Most entries of the audit log in one answer."""
NOTE = 200
"""Longest note on a token."""


class TrustService(AuthorityCalls, trust_pb2_grpc.TrustServiceServicer):
    """Look at trust and change it; the gate has asked already whether the caller may."""

    def __init__(
        self, registry: Registry, authority: FleetAuthority | None, audit: AuditLog, rotations: Rotations
    ) -> None:
        super().__init__(rotations)
        self._registry = registry
        self._authority = authority
        self._audit = audit

    @translated
    async def WhoAmI(self, request: pb.WhoAmIRequest, context: Any) -> pb.WhoAmIResponse:  # noqa: ANN401, ARG002, N802
        """The caller as the coordinator knows him."""
        who = caller()
        return pb.WhoAmIResponse(
            name=who.name,
            kind=who.kind,
            grants={project: str(access) for project, access in who.grants.items()},
            token=who.token,
            expires_at=checks.timestamp(who.until),
            identity=self._identity(who.name),
        )

    @translated
    async def ListAccounts(self, request: pb.ListAccountsRequest, context: Any) -> pb.ListAccountsResponse:  # noqa: ANN401, ARG002, N802
        """Accounts by name."""
        found = [each for _, each in sorted(self._registry.accounts.items()) if request.kind in {"", each.kind}]
        return pb.ListAccountsResponse(accounts=map(trust.account_to_wire, found))

    @translated
    async def AddAccount(self, request: pb.AddAccountRequest, context: Context) -> pb.Account:  # noqa: N802
        """A new account."""
        grants = trust.grants_from_wire(request.grants, "AddAccountRequest.grants")
        self._registry.require_projects(grants)
        account = Account(
            name=request.name,
            kind=checks.word(AccountKind, request.kind, "AddAccountRequest.kind"),
            created_at=wall_time(),
            grants=grants,
        )
        done = _done(context, "AddAccount", account.name, _grants_text(grants))
        return trust.account_to_wire(await self._registry.add_account(account, done))

    @translated
    async def RemoveAccount(self, request: pb.RemoveAccountRequest, context: Context) -> pb.RemoveAccountResponse:  # noqa: N802
        """An account less."""
        kind = checks.word(AccountKind, request.kind, "RemoveAccountRequest.kind")
        await self._registry.remove_account(request.name, kind, _done(context, "RemoveAccount", request.name))
        return pb.RemoveAccountResponse()

    @translated
    async def CreateToken(self, request: pb.CreateTokenRequest, context: Context) -> pb.CreateTokenResponse:  # noqa: N802
        """A new API token; for oneself, or as an admin for anybody."""
        note = checks.plain(request.note, "CreateTokenRequest.note")
        who, now, secret = caller(), wall_time(), new_api_token()
        account = request.account or who.name
        _require_own(account, "tokens of others are made by an admin")
        access = trust.access_from_wire(request.access, "CreateTokenRequest.access")
        projects = tuple(sorted(set(request.projects)))
        if account == who.name:
            access, projects = within(who, access, projects)
        self._registry.require_projects(dict.fromkeys(projects, Access.VIEWER))
        ends = now + _ttl(request.ttl) if request.HasField("ttl") else self._default_end(account, now)
        if account == who.name and who.until is not None and (self._identity(account) or not who.may(Access.ADMIN)):
            # Whoever finds a token that is about to end must not make one of it that never does; and whoever is closed
            # out at the identity provider is out when his login ends.
            ends = who.until if ends is None else min(ends, who.until)
        token = IssuedToken(
            id=secret.id,
            account=account,
            note=note[:NOTE],
            created_at=now,
            expires_at=ends,
            access=access,
            projects=projects,
        )
        scope = f" ({access or 'all access'} in {', '.join(projects) or 'every project'})" if token.narrowed else ""
        done = _done(context, "CreateToken", account, f"token {token.id}{scope}")
        await self._registry.add_token(secret, token, done)
        return pb.CreateTokenResponse(secret=str(secret), token=trust.token_to_wire(token))

    @translated
    async def SetPolicy(self, request: pb.SetPolicyRequest, context: Context) -> pb.Project:  # noqa: N802
        """The project, opened for this and nothing else; jobs that were accepted are what they were."""
        if self._authority is None:
            raise ConflictError("the projects of `muster up` are open for everything; there is nothing to allow")
        policy = policy_from_wire(request.policy)

        def done(before: Policy) -> AuditEntry:
            return _done(context, "SetPolicy", request.project, changes(before, policy))

        return trust.project_to_wire(await self._registry.set_policy(request.project, policy, done))

    @translated
    async def ListTokens(self, request: pb.ListTokensRequest, context: Any) -> pb.ListTokensResponse:  # noqa: ANN401, ARG002, N802
        """API tokens, oldest first; one's own, or as an admin all."""
        who = caller()
        every = self._registry.issued_tokens()
        seen = [token for token in every if who.may(Access.ADMIN) or token.account == who.name]
        return pb.ListTokensResponse(tokens=map(trust.token_to_wire, seen))

    @translated
    async def RevokeToken(self, request: pb.RevokeTokenRequest, context: Context) -> pb.Token:  # noqa: N802
        """A token that counts no more; one's own, or as an admin anybody's."""
        self._require_own_token(request.id)
        done = _done(context, "RevokeToken", request.id)
        return trust.token_to_wire(await self._registry.revoke_token(request.id, wall_time(), done))

    @translated
    async def PruneTokens(self, request: pb.PruneTokensRequest, context: Context) -> pb.PruneTokensResponse:  # noqa: N802
        """Tokens that are cleared away; one's own, or as an admin anybody's."""
        checks.few(request.ids, "PruneTokensRequest.ids")
        wanted = set(request.ids)
        for id_ in wanted:
            self._require_own_token(id_)
        if caller().token in wanted:
            raise ConflictError("the token that you show now is in use; leave it out")
        done = _done(context, "PruneTokens", "", f"{len(wanted)} tokens: {' '.join(sorted(wanted))}")
        revoked = await self._registry.prune_tokens(wanted, wall_time(), done)
        return pb.PruneTokensResponse(revoked=map(trust.token_to_wire, revoked))

    def _require_own_token(self, id_: str) -> None:
        stored, who = self._registry.tokens.get(id_), caller()
        if stored is None:
            return
        _require_own(stored.token.account, "tokens of others are revoked by an admin")
        if who.narrowed and id_ != who.token and not who.may(Access.ADMIN):
            raise PermissionDeniedError("this token may less than its account, so it revokes itself and no other")

    def _default_end(self, account: str, now: datetime) -> datetime | None:
        """When a token ends whose maker has not said it; None: never."""
        known = self._registry.accounts.get(account)
        return now + PERSON_TOKEN_LIFE if known is not None and known.kind is AccountKind.USER else None

    def _identity(self, name: str) -> str:
        account = self._registry.accounts.get(name)
        return "" if account is None else account.identity

    @translated
    async def ListProjects(self, request: pb.ListProjectsRequest, context: Any) -> pb.ListProjectsResponse:  # noqa: ANN401, ARG002, N802
        """Projects that the caller may look at, by name."""
        who = caller()
        found = [each for name, each in sorted(self._registry.projects.items()) if who.may(Access.VIEWER, name)]
        if self._authority is None:
            found = [replace(each, policy=OPEN) for each in found]
        return pb.ListProjectsResponse(projects=map(trust.project_to_wire, found))

    @translated
    async def AddProject(self, request: pb.AddProjectRequest, context: Context) -> pb.Project:  # noqa: N802
        """A new project."""
        done = _done(context, "AddProject", request.name)
        return trust.project_to_wire(await self._registry.add_project(request.name, wall_time(), done))

    @translated
    async def Grant(self, request: pb.GrantRequest, context: Context) -> pb.Account:  # noqa: N802
        """The account with other access."""
        access = checks.word(Access, request.access, "GrantRequest.access") if request.access else None
        done = _done(context, "Grant", request.account, f"{access or 'none'} for {request.project}")
        changed = await self._registry.grant(request.account, request.project or EVERYWHERE, access, done)
        return trust.account_to_wire(changed)

    @translated
    async def CreateJoinToken(self, request: pb.CreateJoinTokenRequest, context: Context) -> pb.CreateJoinTokenResponse:  # noqa: N802
        """A new join token."""
        if self._authority is None:
            raise ConflictError("the nodes of `muster up` need no join token; start `muster-coordinator` for others")
        secret, now = new_join_token(self._authority.fingerprint), wall_time()
        token = IssuedJoinToken(
            id=secret.id,
            created_by=caller().name,
            created_at=now,
            expires_at=now + (_ttl(request.ttl) if request.HasField("ttl") else JOIN_TTL),
            uses_left=checks.between(request.uses or 1, 1, MOST_USES, "CreateJoinTokenRequest.uses"),
            labels=given_labels(request.labels, "CreateJoinTokenRequest.labels"),
        )
        await self._registry.add_join_token(secret, token, _done(context, "CreateJoinToken", token.id))
        return pb.CreateJoinTokenResponse(secret=str(secret), token=trust.join_token_to_wire(token))

    @translated
    async def ListJoinTokens(self, request: pb.ListJoinTokensRequest, context: Any) -> pb.ListJoinTokensResponse:  # noqa: ANN401, ARG002, N802
        """Join tokens, oldest first."""
        every = [stored.token for stored in self._registry.join_tokens.values()]
        return pb.ListJoinTokensResponse(tokens=map(trust.join_token_to_wire, sorted(every, key=_age)))

    @translated
    async def RevokeJoinToken(self, request: pb.RevokeJoinTokenRequest, context: Context) -> pb.JoinToken:  # noqa: N802
        """A join token that counts no more."""
        done = _done(context, "RevokeJoinToken", request.id)
        return trust.join_token_to_wire(await self._registry.revoke_join_token(request.id, wall_time(), done))

    @translated
    async def ListEnrolledNodes(  # noqa: N802
        self,
        request: pb.ListEnrolledNodesRequest,  # noqa: ARG002
        context: Any,  # noqa: ANN401, ARG002
    ) -> pb.ListEnrolledNodesResponse:
        """Nodes that have joined, by name."""
        nodes = [node for _, node in sorted(self._registry.nodes.items())]
        return pb.ListEnrolledNodesResponse(nodes=map(trust.enrolled_node_to_wire, nodes))

    @translated
    async def RevokeNode(self, request: pb.RevokeNodeRequest, context: Context) -> pb.EnrolledNode:  # noqa: N802
        """A node that is sent away."""
        done = _done(context, "RevokeNode", request.node)
        revoked = await self._registry.revoke_node(NodeId(request.node), wall_time(), done)
        return trust.enrolled_node_to_wire(revoked)

    @translated
    async def ListAudit(self, request: pb.ListAuditRequest, context: Any) -> pb.ListAuditResponse:  # noqa: ANN401, ARG002, N802
        """Entries of the audit log, oldest first."""
        await self._audit.flush()
        limit = min(request.limit or AuditWish().limit, AUDIT_PAGE)
        wish = AuditWish(
            since=checks.optional_moment(request, "since"),
            until=checks.optional_moment(request, "until"),
            who=request.who or None,
            limit=limit + 1,
            oldest_first=request.oldest_first,
            beyond=_page(request.page_token),
        )
        found, anchor = await self._registry.audit(wish), await self._registry.audit_anchor()
        more = len(found) > limit
        shown = found[:limit] if request.oldest_first else found[-limit:]
        last = shown[-1 if request.oldest_first else 0].number if more else 0
        return pb.ListAuditResponse(
            entries=map(trust.audit_entry_to_wire, shown),
            next_page_token=str(last) if more else "",
            anchor_number=anchor.number,
            anchor_hash=anchor.hash,
        )


def _page(token: str) -> int | None:
    if token and not (token.isascii() and token.isdecimal() and len(token) < len(str(1 << 63))):
        raise InvalidJobError("the page token is none of this audit log; begin with the first page")
    return int(token) if token else None


def _done(context: Context, call: str, target: str, how: str = "") -> AuditEntry:
    """What is written together with a change."""
    method = f"/muster.rpc.v1.TrustService/{call}"
    return shortened(entry(context, method, target, f"ok, {how}" if how else "ok", wall_time()))


def _require_own(account: str, otherwise: str) -> None:
    if account != caller().name and not caller().may(Access.ADMIN):
        raise PermissionDeniedError(otherwise)


def _ttl(message: Duration) -> timedelta:
    ttl = checks.span(message, "ttl")
    if not timedelta(0) < ttl <= LONGEST_TTL:
        raise InvalidJobError(f"a token may count for a second up to {LONGEST_TTL.days} days")
    return ttl


def _age(token: IssuedToken | IssuedJoinToken) -> datetime:
    return token.created_at


def _grants_text(grants: "dict[str, Access]") -> str:
    return ", ".join(f"{access} for {project}" for project, access in grants.items())
