"""What the synchronous client has beside its services: where the coordinator is, opening and closing."""

from types import TracebackType
from typing import Self

from muster.client.blocking.loop_thread import LoopThread
from muster.client.client import Client
from muster.client.connection import Connection
from muster.rpc.channel import Credentials


class SyncFrame:
    """A connection to a coordinator for programs without an event loop; `SyncClient` adds the services.

    The arguments are those of `Client`.
    """

    def __init__(
        self,
        address: str | None = None,
        credentials: Credentials | None = None,
        *,
        timeout: float = 10.0,
        connection: Connection | None = None,
    ) -> None:
        self._own = Client(address, credentials, timeout=timeout, connection=connection)
        self._loop = LoopThread.shared()

    @property
    def address(self) -> str:
        """Where the coordinator is, as `host:port`."""
        return self._own.address

    def open(self) -> Self:
        """Begin to connect, and give the client itself; for where a `with` block does not fit, as in notebooks.

        >>> client = muster.SyncClient().open()
        """
        self._loop.open(self._own)
        return self

    def close(self) -> None:
        """End the connection.

        >>> client.close()
        """
        self._loop.close(self._own)

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
