"""Operations on the fleet's authority: which ones count, and how one gives way to the next."""

from coordinator.service.operations import Operations
from coordinator.service.trust.rotations import Rotations
from coordinator.trust.caller import Caller
from muster.domain.fleet.access import AuthorityStatus


class AuthorityOperations:
    """What callers may do with the fleet's authority."""

    def __init__(self, operations: Operations, rotations: Rotations) -> None:
        self._operations = operations
        self._rotations = rotations

    async def show(self, caller: Caller) -> AuthorityStatus:
        """Which authorities count, and which nodes know of them."""
        async with self._operations.begin(caller, "authority.show"):
            return await self._rotations.status()

    async def rotate(self, caller: Caller) -> AuthorityStatus:
        """Begin a change of the authority."""
        async with self._operations.begin(caller, "authority.rotate") as operation:
            return await self._rotations.begin(operation.cause)

    async def finish(self, caller: Caller, *, force: bool = False) -> AuthorityStatus:
        """Have the former authority count no more; with `force` although nodes that are there still need it."""
        async with self._operations.begin(caller, "authority.finish") as operation:
            return await self._rotations.finish(operation.cause, force=force)
