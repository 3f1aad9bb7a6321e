"""Operations on accounts: who is known, and what each may in which project."""

from collections.abc import Mapping, Sequence

from coordinator.clock import wall_time
from coordinator.service.operations import Operations
from coordinator.trust.caller import Caller
from coordinator.trust.registry import Registry
from muster.domain.fleet.access import EVERYWHERE, Access, Account, AccountKind, Myself


class AccountOperations:
    """What callers may do with accounts."""

    def __init__(self, operations: Operations, registry: Registry) -> None:
        self._operations = operations
        self._registry = registry

    async def whoami(self, caller: Caller) -> Myself:
        """The caller as the coordinator knows it."""
        async with self._operations.begin(caller, "accounts.whoami"):
            return Myself(
                name=caller.name,
                kind=caller.kind,
                grants=caller.grants,
                token=caller.token,
                expires_at=caller.until,
                identity=self._registry.identity_of(caller.name),
            )

    async def list(self, caller: Caller, kind: str = "") -> Sequence[Account]:
        """Accounts of this kind, or all, by name."""
        async with self._operations.begin(caller, "accounts.list"):
            return [each for _, each in sorted(self._registry.accounts.items()) if kind in {"", each.kind}]

    async def add(self, caller: Caller, name: str, kind: AccountKind, grants: Mapping[str, Access]) -> Account:
        """Make an account with this access; raises ConflictError where there is one of that name."""
        async with self._operations.begin(caller, "accounts.add", name) as operation:
            account = Account(name=name, kind=kind, created_at=wall_time(), grants=grants)
            how = ", ".join(f"{access} for {project}" for project, access in grants.items())
            return await self._registry.add_account(account, operation.done(how))

    async def remove(self, caller: Caller, name: str, kind: AccountKind) -> None:
        """Forget an account and its tokens."""
        async with self._operations.begin(caller, "accounts.remove", name) as operation:
            await self._registry.remove_account(name, kind, operation.done())

    async def grant(self, caller: Caller, name: str, project: str, access: Access | None) -> Account:
        """The account with this access to a project, or to all where it is empty; None takes access away."""
        async with self._operations.begin(caller, "accounts.grant", name) as operation:
            done = operation.done(f"{access or 'none'} for {project}")
            return await self._registry.grant(name, project or EVERYWHERE, access, done)
