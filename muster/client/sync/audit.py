"""The synchronous form of `muster.client.services.audit`, made from it by `make sync`; change that one."""

from datetime import datetime

from muster.client.services.audit import AuditClient
from muster.client.sync.loop_thread import LoopThread
from muster.domain.fleet.access import AuditAnchor, AuditEntry, AuditPage
from muster.domain.fleet.audit_chain import ChainCheck


class SyncAuditClient:
    """The audit log, reached as `client.audit`."""

    def __init__(self, own: AuditClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def list(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        who: str = "",
        limit: int = 1000,
        oldest_first: bool = False,
    ) -> tuple[AuditEntry, ...]:
        """Entries of the audit log, oldest first: the newest so many that fit, or the oldest.

        >>> for entry in client.audit.list(who="ada", limit=20):
        ...     print(entry.at, entry.call)
        """
        return self._loop.run(self._own.list(since=since, until=until, who=who, limit=limit, oldest_first=oldest_first))

    def page(
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

        >>> first = client.audit.page(oldest_first=True)
        >>> second = client.audit.page(oldest_first=True, page=first.next_page)
        """
        return self._loop.run(
            self._own.page(since=since, until=until, who=who, limit=limit, oldest_first=oldest_first, page=page)
        )

    def verify(self, expected: AuditAnchor | None = None) -> ChainCheck:
        """Check all of the audit log here: `broken` says where its chain of hashes does not hold first.

        >>> print((client.audit.verify()).broken or "whole")
        """
        return self._loop.run(self._own.verify(expected))
