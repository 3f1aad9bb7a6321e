"""The SDK for the audit log: who did what."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from muster.client.calls import Calls
from muster.domain.fleet.access import AuditAnchor, AuditEntry, AuditPage
from muster.domain.fleet.audit_chain import ChainCheck
from muster.rpc.v1 import trust_pb2 as pb
from muster.rpc.v1.trust_pb2_grpc import TrustServiceStub
from muster.wire import trust

_PAGE = 10_000
"""Most entries that a coordinator answers with."""


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
