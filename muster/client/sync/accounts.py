"""The synchronous form of `muster.client.services.accounts`, made from it by `make sync`; change that one."""

from collections.abc import Mapping
from datetime import datetime

from muster.client.blocking.loop_thread import LoopThread
from muster.client.services.accounts import AccountsClient, AuditClient, AuthorityClient
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


class SyncAccountsClient:
    """Accounts, reached as `client.accounts`. What makes something is asked once only."""

    def __init__(self, own: AccountsClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def myself(self) -> Myself:
        """What the caller is to the coordinator.

        >>> print((client.accounts.myself()).name)
        """
        return self._loop.run(self._own.myself())

    def list(self, kind: AccountKind | None = None) -> tuple[Account, ...]:
        """Accounts by name, of one kind or all.

        >>> people = client.accounts.list(AccountKind.USER)
        """
        return self._loop.run(self._own.list(kind))

    def add(self, name: str, kind: AccountKind, grants: Mapping[str, Access]) -> Account:
        """Make an account with this access to projects.

        >>> client.accounts.add("ada", AccountKind.USER, {"vision": Access.MEMBER})
        """
        return self._loop.run(self._own.add(name, kind, grants))

    def remove(self, name: str, kind: AccountKind) -> None:
        """Forget an account and its tokens.

        >>> client.accounts.remove("ada", AccountKind.USER)
        """
        self._loop.run(self._own.remove(name, kind))

    def grant(self, account: str, project: str, access: Access | None) -> Account:
        """Give an account this access to a project, or None of it; the account.

        >>> client.accounts.grant("ada", "vision", Access.OPERATOR)
        """
        return self._loop.run(self._own.grant(account, project, access))


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


class SyncAuthorityClient:
    """The fleet's authority, reached as `client.authority`."""

    def __init__(self, own: AuthorityClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def show(self) -> AuthorityStatus:
        """Which authorities of the fleet count, and which nodes know of them.

        >>> status = client.authority.show()
        """
        return self._loop.run(self._own.show())

    def rotate(self) -> AuthorityStatus:
        """Begin to change the fleet's authority; nodes learn the next one and get certificates from it.

        >>> client.authority.rotate()
        """
        return self._loop.run(self._own.rotate())

    def finish(self, *, force: bool = False) -> AuthorityStatus:
        """Have the former authority count no more; ConflictError while nodes that are there need it, unless `force`.

        >>> client.authority.finish()
        """
        return self._loop.run(self._own.finish(force=force))
