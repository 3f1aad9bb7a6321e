"""The SDK for those who let others in: accounts, tokens, projects, nodes that have joined, the audit log."""

from collections.abc import Awaitable, Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from muster.domain.fleet.access import (
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
    Myself,
    Policy,
    Project,
)
from muster.domain.fleet.audit_chain import ChainCheck
from muster.rpc.v1 import trust_pb2 as pb
from muster.wire import trust
from muster.wire.policies import policy_to_wire

_AUDIT_PAGE = 10_000
"""Most entries that a coordinator answers with."""


class TrustCall(Protocol):
    """How a question reaches the coordinator."""

    def __call__(self, call: Any, request: Any, *, pauses: tuple[float, ...] = ...) -> Awaitable[Any]:  # noqa: ANN401
        """The answer."""
        ...


class TrustClient:
    """Reached as `client.trust`. What makes something is asked once only: a second answer would be a second token."""

    def __init__(self, ask: TrustCall, stub: Any) -> None:  # noqa: ANN401 - the stub of TrustService
        self._ask = ask
        self._stub = stub

    async def myself(self) -> Myself:
        """Who one is to the coordinator."""
        return trust.myself_from_wire(await self._ask(self._stub.WhoAmI, pb.WhoAmIRequest()))

    async def accounts(self, kind: AccountKind | None = None) -> tuple[Account, ...]:
        """Accounts by name."""
        answer = await self._ask(self._stub.ListAccounts, pb.ListAccountsRequest(kind=kind or ""))
        return tuple(map(trust.account_from_wire, answer.accounts))

    async def add_account(self, name: str, kind: AccountKind, grants: Mapping[str, Access]) -> Account:
        """A new account."""
        request = pb.AddAccountRequest(name=name, kind=kind, grants={key: str(value) for key, value in grants.items()})
        return trust.account_from_wire(await self._ask(self._stub.AddAccount, request, pauses=()))

    async def remove_account(self, name: str, kind: AccountKind) -> None:
        """Forget an account and its tokens."""
        await self._ask(self._stub.RemoveAccount, pb.RemoveAccountRequest(name=name, kind=kind), pauses=())

    async def create_token(
        self,
        account: str = "",
        *,
        note: str = "",
        ttl: timedelta | None = None,
        access: Access | None = None,
        projects: Collection[str] = (),
    ) -> tuple[str, IssuedToken]:
        """A new API token: the text that is shown this once, and what is kept of it.

        It may all that its account may, unless `access` says the most, or `projects` where alone it counts. Without
        `ttl` a person's token ends after 90 days, that of a program when it is revoked.
        """
        request = pb.CreateTokenRequest(account=account, note=note, access=access or "", projects=projects)
        if ttl is not None:
            request.ttl.FromTimedelta(ttl)
        answer = await self._ask(self._stub.CreateToken, request, pauses=())
        return answer.secret, trust.token_from_wire(answer.token)

    async def tokens(self) -> tuple[IssuedToken, ...]:
        """API tokens, oldest first."""
        answer = await self._ask(self._stub.ListTokens, pb.ListTokensRequest())
        return tuple(map(trust.token_from_wire, answer.tokens))

    async def revoke_token(self, token: str) -> IssuedToken:
        """An API token that counts no more."""
        return trust.token_from_wire(await self._ask(self._stub.RevokeToken, pb.RevokeTokenRequest(id=token)))

    async def prune_tokens(self, tokens: Collection[str]) -> tuple[IssuedToken, ...]:
        """Clear API tokens away: those that counted are revoked and given, the others are forgotten."""
        answer = await self._ask(self._stub.PruneTokens, pb.PruneTokensRequest(ids=tokens), pauses=())
        return tuple(map(trust.token_from_wire, answer.revoked))

    async def projects(self) -> tuple[Project, ...]:
        """Projects that one may look at, by name."""
        answer = await self._ask(self._stub.ListProjects, pb.ListProjectsRequest())
        return tuple(map(trust.project_from_wire, answer.projects))

    async def add_project(self, name: str) -> Project:
        """A new project."""
        request = pb.AddProjectRequest(name=name)
        return trust.project_from_wire(await self._ask(self._stub.AddProject, request, pauses=()))

    async def set_policy(self, project: str, policy: Policy) -> Project:
        """The project, opened for this and nothing else."""
        request = pb.SetPolicyRequest(project=project, policy=policy_to_wire(policy))
        return trust.project_from_wire(await self._ask(self._stub.SetPolicy, request))

    async def grant(self, account: str, project: str, access: Access | None) -> Account:
        """The account with this access to a project, or with none."""
        request = pb.GrantRequest(account=account, project=project, access=access or "")
        return trust.account_from_wire(await self._ask(self._stub.Grant, request))

    async def create_join_token(
        self, *, ttl: timedelta | None = None, uses: int = 1, labels: Mapping[str, str] | None = None
    ) -> tuple[str, IssuedJoinToken]:
        """A new join token: the text that is shown this once, and what is kept of it."""
        request = pb.CreateJoinTokenRequest(uses=uses, labels=labels or {})
        if ttl is not None:
            request.ttl.FromTimedelta(ttl)
        answer = await self._ask(self._stub.CreateJoinToken, request, pauses=())
        return answer.secret, trust.join_token_from_wire(answer.token)

    async def join_tokens(self) -> tuple[IssuedJoinToken, ...]:
        """Join tokens, oldest first."""
        answer = await self._ask(self._stub.ListJoinTokens, pb.ListJoinTokensRequest())
        return tuple(map(trust.join_token_from_wire, answer.tokens))

    async def revoke_join_token(self, token: str) -> IssuedJoinToken:
        """A join token that counts no more."""
        request = pb.RevokeJoinTokenRequest(id=token)
        return trust.join_token_from_wire(await self._ask(self._stub.RevokeJoinToken, request))

    async def enrolled_nodes(self) -> tuple[EnrolledNode, ...]:
        """Nodes that have joined, by name."""
        answer = await self._ask(self._stub.ListEnrolledNodes, pb.ListEnrolledNodesRequest())
        return tuple(map(trust.enrolled_node_from_wire, answer.nodes))

    async def revoke_node(self, node: str) -> EnrolledNode:
        """A node that was sent away."""
        return trust.enrolled_node_from_wire(await self._ask(self._stub.RevokeNode, pb.RevokeNodeRequest(node=node)))

    async def authority(self) -> AuthorityStatus:
        """Which authorities of the fleet count, and which nodes know of them."""
        return trust.authority_status_from_wire(await self._ask(self._stub.ShowAuthority, pb.ShowAuthorityRequest()))

    async def rotate_authority(self) -> AuthorityStatus:
        """Begin to change the fleet's authority; nodes learn the next one and get certificates from it."""
        request = pb.RotateAuthorityRequest()
        return trust.authority_status_from_wire(await self._ask(self._stub.RotateAuthority, request, pauses=()))

    async def finish_rotation(self, *, force: bool = False) -> AuthorityStatus:
        """Have the former authority count no more; ConflictError while nodes that are there need it, unless `force`."""
        request = pb.FinishRotationRequest(force=force)
        return trust.authority_status_from_wire(await self._ask(self._stub.FinishRotation, request, pauses=()))

    async def audit(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        who: str = "",
        limit: int = 1000,
        oldest_first: bool = False,
    ) -> tuple[AuditEntry, ...]:
        """Entries of the audit log, oldest first: the newest so many that fit, or the oldest."""
        page = await self.audit_page(since=since, until=until, who=who, limit=limit, oldest_first=oldest_first)
        return page.entries

    async def audit_page(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        who: str = "",
        limit: int = 1000,
        oldest_first: bool = False,
        page: str = "",
    ) -> AuditPage:
        """Entries as `audit` gives them, and where the next ones are; `page` is `next_page` of the page before."""
        found = AuditPage(next_page=page)
        while len(found.entries) < limit and (found.next_page or not found.entries):
            wanted = min(limit - len(found.entries), _AUDIT_PAGE)
            request = pb.ListAuditRequest(who=who, limit=wanted, oldest_first=oldest_first, page_token=found.next_page)
            if since is not None:
                request.since.FromDatetime(since)
            if until is not None:
                request.until.FromDatetime(until)
            more = trust.audit_page_from_wire(await self._ask(self._stub.ListAudit, request))
            both = (*found.entries, *more.entries) if oldest_first else (*more.entries, *found.entries)
            found = replace(more, entries=both)
            if not more.entries:
                break
        return found

    async def verify_audit(self, expected: AuditAnchor | None = None) -> ChainCheck:
        """All of the audit log, checked here: `broken` says where its chain of hashes does not hold first."""
        page = await self.audit_page(limit=_AUDIT_PAGE, oldest_first=True)
        check = ChainCheck(page.anchor, expected)
        while all(check.take(entry) is None for entry in page.entries) and page.next_page:
            page = await self.audit_page(limit=_AUDIT_PAGE, oldest_first=True, page=page.next_page)
        check.end()
        return check
