"""The SDK for accounts of people and programs, and for what they may."""

from collections.abc import Mapping
from typing import Any

from muster.client.calls import Calls
from muster.domain.fleet.access import Access, Account, AccountKind, Myself
from muster.rpc.v1 import trust_pb2 as pb
from muster.rpc.v1.trust_pb2_grpc import TrustServiceStub
from muster.wire import trust


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
