"""The SDK for accounts, for what they may, for the log of what they did, and for the authority of the fleet."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from muster.client.calls import Calls
from muster.domain.fleet.access import (
    Access,
    Account,
    AccountKind,
    AuditAnchor,
    AuditEntry,
    AuditPage,
    AuthorityStatus,
    Myself,
)
from muster.domain.fleet.audit_chain import ChainCheck
from muster.rpc.v1 import trust_pb2 as pb
from muster.rpc.v1.trust_pb2_grpc import TrustServiceStub
from muster.wire import trust

_PAGE = 10_000
"""Most entries that a coordinator answers with."""


class AccountsClient:
    """Accounts, reached as `client.accounts`. What makes something is asked once only."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of TrustService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(TrustServiceStub)

    async def myself(self) -> Myself:
        """What the caller is to the coordinator.

        >>> print((await client.accounts.myself()).name)
        """
        return trust.myself_from_wire(await self._calls.ask(self._stub.WhoAmI, pb.WhoAmIRequest()))

    async def list(self, kind: AccountKind | None = None) -> tuple[Account, ...]:
        """Accounts by name, of one kind or all.

        >>> people = await client.accounts.list(AccountKind.USER)
        """
        answer = await self._calls.ask(self._stub.ListAccounts, pb.ListAccountsRequest(kind=kind or ""))
        return tuple(map(trust.account_from_wire, answer.accounts))

    async def add(self, name: str, kind: AccountKind, grants: Mapping[str, Access]) -> Account:
        """Make an account with this access to projects.

        >>> await client.accounts.add("ada", AccountKind.USER, {"vision": Access.MEMBER})
        """
        request = pb.AddAccountRequest(name=name, kind=kind, grants={key: str(value) for key, value in grants.items()})
        return trust.account_from_wire(await self._calls.ask(self._stub.AddAccount, request, pauses=()))

    async def remove(self, name: str, kind: AccountKind) -> None:
        """Forget an account and its tokens.

        >>> await client.accounts.remove("ada", AccountKind.USER)
        """
        await self._calls.ask(self._stub.RemoveAccount, pb.RemoveAccountRequest(name=name, kind=kind), pauses=())

    async def grant(self, account: str, project: str, access: Access | None) -> Account:
        """Give an account this access to a project, or None of it; the account.

        >>> await client.accounts.grant("ada", "vision", Access.OPERATOR)
        """
        request = pb.GrantRequest(account=account, project=project, access=access or "")
        return trust.account_from_wire(await self._calls.ask(self._stub.Grant, request))


class AuditClient:
    """The audit log, reached as `client.audit`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of TrustService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(TrustServiceStub)

    async def list(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        who: str = "",
        limit: int = 1000,
        oldest_first: bool = False,
    ) -> tuple[AuditEntry, ...]:
        """Entries of the audit log, oldest first: the newest so many that fit, or the oldest.

        >>> for entry in await client.audit.list(who="ada", limit=20):
        ...     print(entry.at, entry.call)
        """
        page = await self.page(since=since, until=until, who=who, limit=limit, oldest_first=oldest_first)
        return page.entries

    async def page(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        who: str = "",
        limit: int = 1000,
        oldest_first: bool = False,
        page: str = "",
    ) -> AuditPage:
        """Entries as `list` gives them, and where the next ones are; `page` is `next_page` of the page before.

        >>> first = await client.audit.page(oldest_first=True)
        >>> second = await client.audit.page(oldest_first=True, page=first.next_page)
        """
        found = AuditPage(next_page=page)
        while len(found.entries) < limit and (found.next_page or not found.entries):
            wanted = min(limit - len(found.entries), _PAGE)
            request = pb.ListAuditRequest(who=who, limit=wanted, oldest_first=oldest_first, page_token=found.next_page)
            if since is not None:
                request.since.FromDatetime(since)
            if until is not None:
                request.until.FromDatetime(until)
            more = trust.audit_page_from_wire(await self._calls.ask(self._stub.ListAudit, request))
            both = (*found.entries, *more.entries) if oldest_first else (*more.entries, *found.entries)
            found = replace(more, entries=both)
            if not more.entries:
                break
        return found

    async def verify(self, expected: AuditAnchor | None = None) -> ChainCheck:
        """Check all of the audit log here: `broken` says where its chain of hashes does not hold first.

        >>> print((await client.audit.verify()).broken or "whole")
        """
        page = await self.page(limit=_PAGE, oldest_first=True)
        check = ChainCheck(page.anchor, expected)
        while all(check.take(entry) is None for entry in page.entries) and page.next_page:
            page = await self.page(limit=_PAGE, oldest_first=True, page=page.next_page)
        check.end()
        return check


class AuthorityClient:
    """The fleet's authority, reached as `client.authority`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of TrustService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(TrustServiceStub)

    async def show(self) -> AuthorityStatus:
        """Which authorities of the fleet count, and which nodes know of them.

        >>> status = await client.authority.show()
        """
        return trust.authority_status_from_wire(
            await self._calls.ask(self._stub.ShowAuthority, pb.ShowAuthorityRequest())
        )

    async def rotate(self) -> AuthorityStatus:
        """Begin to change the fleet's authority; nodes learn the next one and get certificates from it.

        >>> await client.authority.rotate()
        """
        request = pb.RotateAuthorityRequest()
        return trust.authority_status_from_wire(await self._calls.ask(self._stub.RotateAuthority, request, pauses=()))

    async def finish(self, *, force: bool = False) -> AuthorityStatus:
        """Have the former authority count no more; ConflictError while nodes that are there need it, unless `force`.

        >>> await client.authority.finish()
        """
        request = pb.FinishRotationRequest(force=force)
        return trust.authority_status_from_wire(await self._calls.ask(self._stub.FinishRotation, request, pauses=()))
