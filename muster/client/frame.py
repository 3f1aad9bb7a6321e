"""What the client has beside its services: where the coordinator is, opening and closing."""

from types import TracebackType
from typing import Self

from muster.client.calls import Calls
from muster.client.connection import Connection
from muster.rpc.channel import Credentials


class ClientFrame:
    """A connection to a coordinator; `Client` adds the services, and says what the arguments are."""

    def __init__(
        self,
        address: str | None = None,
        credentials: Credentials | None = None,
        *,
        timeout: float = 10.0,
        connection: Connection | None = None,
    ) -> None:
        self._calls = Calls(connection or Connection(address, credentials), timeout)

    @property
    def address(self) -> str:
        """Where the coordinator is, as `host:port`."""
        return self._calls.connection.address

    async def open(self) -> Self:
        """Begin to connect, and give the client itself; for where a `with` block does not fit, as in notebooks.

        >>> client = await muster.Client().open()
        """
        self._calls.open()
        return self

    async def close(self) -> None:
        """End the connection.

        >>> await client.close()
        """
        await self._calls.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
