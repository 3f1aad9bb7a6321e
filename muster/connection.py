"""How a coordinator is reached: who it is, what one shows there, and when connecting begins."""

import os
from collections.abc import Callable, Iterable

import grpc.aio

from muster.endpoint import login_of
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.notices import TOKEN_ENDS


class Connection:
    """A way to the coordinator at `address`; None finds it as the command line does, and so do `credentials`."""

    def __init__(self, address: str | None = None, credentials: Credentials | None = None) -> None:
        login = login_of(os.environ, address)
        self.address = login.address
        self.credentials = credentials or Credentials(
            authority=login.authority.encode() if login.authority else None, token=login.token
        )
        self._dialled: grpc.aio.Channel | None = None
        self.on_token_ends: Callable[[str], None] = lambda _: None
        """Called with the time at which the token ends, whenever an answer says that it soon does."""

    def dial(self) -> None:
        """Begin to connect, which threads of gRPC do; raises PermissionDeniedError for who must not be spoken to."""
        self._dialled = open_channel(self.address, self.credentials)
        self._dialled.get_state(try_to_connect=True)

    def hear(self, beside: Iterable[tuple[str, str | bytes]]) -> None:
        """Take what the coordinator told beside an answer: its trailing metadata."""
        for name, value in beside:
            if name == TOKEN_ENDS:
                self.on_token_ends(str(value))

    def open(self) -> grpc.aio.Channel:
        """The channel that was dialled, else another one; as `dial` otherwise."""
        channel, self._dialled = self._dialled, None
        return channel or open_channel(self.address, self.credentials)
