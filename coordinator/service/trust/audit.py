"""Operations on the audit log."""

from dataclasses import dataclass
from datetime import datetime

from coordinator.service.operations import Operations
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.caller import Caller
from coordinator.trust.records import AuditWish
from coordinator.trust.registry import Registry
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.access import AuditPage

AUDIT_PAGE = 10_000
"""Most entries of the audit log in one answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries of the audit log are wanted."""

    since: datetime | None = None
    until: datetime | None = None
    """Only from before this time."""
    who: str = ""
    """Empty: of everybody."""
    limit: int = 0
    """Most entries of one page; 0: as many as usual."""
    oldest_first: bool = False
    """Whether the oldest entries that fit are wanted, not the newest."""


class AuditOperations:
    """What callers may do with the audit log: look at it."""

    def __init__(self, operations: Operations, registry: Registry, audit: AuditLog) -> None:
        self._operations = operations
        self._registry = registry
        self._audit = audit

    async def list(self, caller: Caller, wanted: AuditFilter, *, page: str = "") -> AuditPage:
        """Entries of the audit log, oldest first, and where the next ones are."""
        async with self._operations.begin(caller, "audit.list"):
            await self._audit.flush()
            limit, oldest_first = min(wanted.limit or AuditWish().limit, AUDIT_PAGE), wanted.oldest_first
            wish = AuditWish(
                since=wanted.since,
                until=wanted.until,
                who=wanted.who or None,
                limit=limit + 1,
                oldest_first=oldest_first,
                beyond=_number(page),
            )
            found = await self._registry.audit(wish)
            more = len(found) > limit
            shown = found[:limit] if oldest_first else found[-limit:]
            last = shown[-1 if oldest_first else 0].number if more else 0
            return AuditPage(
                entries=tuple(shown),
                next_page=str(last) if more else "",
                anchor=await self._registry.audit_anchor(),
            )


def _number(page: str) -> int | None:
    if page and not (page.isascii() and page.isdecimal() and len(page) < len(str(1 << 63))):
        raise InvalidJobError("the page token is none of this audit log; begin with the first page")
    return int(page) if page else None
