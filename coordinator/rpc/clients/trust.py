"""The clients' calls about accounts, tokens, nodes that have joined and the audit log, as gRPC has them."""

from dataclasses import dataclass

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.clients.authority import AuthorityCalls
from coordinator.rpc.refusals import translated
from coordinator.service.trust.accounts import AccountOperations
from coordinator.service.trust.audit import AuditFilter, AuditOperations
from coordinator.service.trust.authority import AuthorityOperations
from coordinator.service.trust.enrolment import EnrolmentOperations, JoinTokenWish
from coordinator.service.trust.tokens import TokenOperations, TokenWish
from muster.domain.fleet.access import Access, AccountKind
from muster.domain.ids import NodeId
from muster.rpc.v1 import trust_pb2 as pb
from muster.rpc.v1 import trust_pb2_grpc
from muster.wire import checks, trust
from muster.wire.nodes import given_labels

MOST_USES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustOperations:
    """The operations behind the calls of this service."""

    accounts: AccountOperations
    tokens: TokenOperations
    enrolment: EnrolmentOperations
    authority: AuthorityOperations
    audit: AuditOperations


class TrustService(AuthorityCalls, trust_pb2_grpc.TrustServiceServicer):
    """Translates calls about trust."""

    def __init__(self, operations: TrustOperations) -> None:
        super().__init__(operations.authority)
        self._of = operations

    @translated
    async def WhoAmI(self, request: pb.WhoAmIRequest, context: Context) -> pb.WhoAmIResponse:
        """The caller as the coordinator knows it."""
        return trust.myself_to_wire(await self._of.accounts.whoami(caller()))

    @translated
    async def ListAccounts(self, request: pb.ListAccountsRequest, context: Context) -> pb.ListAccountsResponse:
        """Accounts by name."""
        found = await self._of.accounts.list(caller(), request.kind)
        return pb.ListAccountsResponse(accounts=map(trust.account_to_wire, found))

    @translated
    async def AddAccount(self, request: pb.AddAccountRequest, context: Context) -> pb.Account:
        """Make an account."""
        kind = checks.word(AccountKind, request.kind, "AddAccountRequest.kind")
        grants = trust.grants_from_wire(request.grants, "AddAccountRequest.grants")
        return trust.account_to_wire(await self._of.accounts.add(caller(), request.name, kind, grants))

    @translated
    async def RemoveAccount(self, request: pb.RemoveAccountRequest, context: Context) -> pb.RemoveAccountResponse:
        """Forget an account."""
        kind = checks.word(AccountKind, request.kind, "RemoveAccountRequest.kind")
        await self._of.accounts.remove(caller(), request.name, kind)
        return pb.RemoveAccountResponse()

    @translated
    async def Grant(self, request: pb.GrantRequest, context: Context) -> pb.Account:
        """The account with other access."""
        access = checks.word(Access, request.access, "GrantRequest.access") if request.access else None
        return trust.account_to_wire(await self._of.accounts.grant(caller(), request.account, request.project, access))

    @translated
    async def CreateToken(self, request: pb.CreateTokenRequest, context: Context) -> pb.CreateTokenResponse:
        """Make an API token; for oneself, or as an admin for anybody."""
        wish = TokenWish(
            account=request.account,
            note=checks.plain(request.note, "CreateTokenRequest.note"),
            ttl=checks.span(request.ttl, "ttl") if request.HasField("ttl") else None,
            access=trust.access_from_wire(request.access, "CreateTokenRequest.access"),
            projects=tuple(request.projects),
        )
        secret, token = await self._of.tokens.create(caller(), wish)
        return pb.CreateTokenResponse(secret=secret, token=trust.token_to_wire(token))

    @translated
    async def ListTokens(self, request: pb.ListTokensRequest, context: Context) -> pb.ListTokensResponse:
        """API tokens, oldest first; one's own, or as an admin all."""
        return pb.ListTokensResponse(tokens=map(trust.token_to_wire, await self._of.tokens.list(caller())))

    @translated
    async def RevokeToken(self, request: pb.RevokeTokenRequest, context: Context) -> pb.Token:
        """Have a token count no more; one's own, or as an admin anybody's."""
        return trust.token_to_wire(await self._of.tokens.revoke(caller(), request.id))

    @translated
    async def PruneTokens(self, request: pb.PruneTokensRequest, context: Context) -> pb.PruneTokensResponse:
        """Clear tokens away; one's own, or as an admin anybody's."""
        checks.few(request.ids, "PruneTokensRequest.ids")
        revoked = await self._of.tokens.prune(caller(), request.ids)
        return pb.PruneTokensResponse(revoked=map(trust.token_to_wire, revoked))

    @translated
    async def CreateJoinToken(self, request: pb.CreateJoinTokenRequest, context: Context) -> pb.CreateJoinTokenResponse:
        """Make a join token."""
        wish = JoinTokenWish(
            ttl=checks.span(request.ttl, "ttl") if request.HasField("ttl") else None,
            uses=checks.between(request.uses or 1, 1, MOST_USES, "CreateJoinTokenRequest.uses"),
            labels=given_labels(request.labels, "CreateJoinTokenRequest.labels"),
        )
        secret, token = await self._of.enrolment.create_token(caller(), wish)
        return pb.CreateJoinTokenResponse(secret=secret, token=trust.join_token_to_wire(token))

    @translated
    async def ListJoinTokens(self, request: pb.ListJoinTokensRequest, context: Context) -> pb.ListJoinTokensResponse:
        """Join tokens, oldest first."""
        found = await self._of.enrolment.list_tokens(caller())
        return pb.ListJoinTokensResponse(tokens=map(trust.join_token_to_wire, found))

    @translated
    async def RevokeJoinToken(self, request: pb.RevokeJoinTokenRequest, context: Context) -> pb.JoinToken:
        """Have a join token count no more."""
        return trust.join_token_to_wire(await self._of.enrolment.revoke_token(caller(), request.id))

    @translated
    async def ListEnrolledNodes(
        self,
        request: pb.ListEnrolledNodesRequest,
        context: Context,
    ) -> pb.ListEnrolledNodesResponse:
        """Nodes that have joined, by name."""
        found = await self._of.enrolment.nodes(caller())
        return pb.ListEnrolledNodesResponse(nodes=map(trust.enrolled_node_to_wire, found))

    @translated
    async def RevokeNode(self, request: pb.RevokeNodeRequest, context: Context) -> pb.EnrolledNode:
        """Send a node away."""
        return trust.enrolled_node_to_wire(await self._of.enrolment.revoke_node(caller(), NodeId(request.node)))

    @translated
    async def ListAudit(self, request: pb.ListAuditRequest, context: Context) -> pb.ListAuditResponse:
        """Entries of the audit log, oldest first."""
        wanted = AuditFilter(
            since=checks.optional_moment(request, "since"),
            until=checks.optional_moment(request, "until"),
            who=request.who,
            limit=request.limit,
            oldest_first=request.oldest_first,
        )
        return trust.audit_page_to_wire(await self._of.audit.list(caller(), wanted, page=request.page_token))
