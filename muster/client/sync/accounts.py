"""The synchronous form of `muster.client.services.accounts`, made from it by `make sync`; change that one."""

from collections.abc import Mapping

from muster.client.services.accounts import AccountsClient
from muster.client.sync.loop_thread import LoopThread
from muster.domain.fleet.access import Access, Account, AccountKind, Myself


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
