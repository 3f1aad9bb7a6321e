"""The secrets of the executions of one node: asked for when they are needed, in memory until they are handed over."""

from collections.abc import Awaitable, Callable

from agent.core.handover import Login, login
from agent.secret_rooms import SecretRooms
from muster.domain.failure import ExecutionError, FailureKind
from muster.domain.ids import ExecutionId
from muster.domain.secret import DeliveredSecret

Ask = Callable[[ExecutionId], Awaitable[tuple[DeliveredSecret, ...]]]
"""Gets the secrets of an execution from the coordinator; raises ExecutionError with what it says against that."""


async def nobody(execution: ExecutionId) -> tuple[DeliveredSecret, ...]:
    """For agents that know no coordinator."""
    raise ExecutionError(FailureKind.RUNTIME, f"there is nobody to be asked for the secrets of {execution}")


class SecretStore:
    """Asks once for each execution."""

    def __init__(self, rooms: SecretRooms | None = None, ask: Ask = nobody) -> None:
        self.rooms = rooms or SecretRooms(None)
        self.ask = ask
        self._delivered: dict[ExecutionId, tuple[DeliveredSecret, ...]] = {}

    async def delivered(self, execution: ExecutionId) -> tuple[DeliveredSecret, ...]:
        """Those that the role of an execution names, and the credentials for the registry of its image."""
        if execution not in self._delivered:
            self._delivered[execution] = await self.ask(execution)
        return self._delivered[execution]

    async def login(self, execution: ExecutionId, image: str) -> Login | None:
        """With what the image of an execution is pulled; None: without credentials."""
        return login(image, await self.delivered(execution))

    def forget(self, execution: ExecutionId) -> None:
        """They are handed over, or not needed any more."""
        self._delivered.pop(execution, None)
