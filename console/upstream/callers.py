"""One connection to the coordinator for all who ask, each with a token of its own."""

from collections import OrderedDict
from types import TracebackType
from typing import Self

import grpc.aio

from muster.client.client import Client
from muster.client.connection import Connection
from muster.rpc.channel import Credentials

KEPT_CLIENTS = 500
"""Callers whose clients are kept for their next question; each takes about 10 kB."""
CHANGED_LATELY = 5.0
"""Seconds for which a caller who has changed something is answered by the coordinator itself, not from the mirror."""
ANSWER_PATIENCE = 30.0
"""Seconds in which the coordinator answers one question."""


class Callers:
    """The clients of those who ask; open between `async with` and its end."""

    def __init__(self, address: str, authority: bytes | None) -> None:
        self._shared = Connection(address, Credentials(authority=authority))
        self._authority = authority
        self._channel: grpc.aio.Channel | None = None
        self._clients: OrderedDict[str, Client] = OrderedDict()
        """Clients by token, the one that asked last at the end."""
        self._counted: set[str] = set()
        """Tokens among these that the coordinator has taken."""
        self._changed_at: OrderedDict[str, float] = OrderedDict()
        """When a token was last shown to change something."""

    async def client(self, token: str) -> Client:
        """The client that asks with a token; whether the token counts, the coordinator says with each answer."""
        found = self._clients.pop(token, None)
        if found is None:
            assert self._channel is not None, "it is used while it is open"
            connection = _BorrowedConnection(self._shared.address, self._authority, token, self._channel)
            found = await Client(connection=connection, timeout=ANSWER_PATIENCE).open()
        self._clients[token] = found
        if len(self._clients) > KEPT_CLIENTS:
            forgotten, _ = self._clients.popitem(last=False)  # its streams that are under way hold it until they end
            self._counted.discard(forgotten)
        return found

    def has_counted(self, token: str) -> bool:
        """Whether the coordinator took a token when it was shown last; False where nobody remembers."""
        return token in self._counted

    def note(self, token: str, *, counts: bool) -> None:
        """Remember whether the coordinator has taken a token."""
        if counts and token in self._clients:
            self._counted.add(token)
        elif not counts:
            self._counted.discard(token)
            self._clients.pop(token, None)

    def note_change(self, token: str, now: float) -> None:
        """Remember that something was changed with a token, at this time of the loop."""
        self._changed_at[token] = now
        self._changed_at.move_to_end(token)
        if len(self._changed_at) > KEPT_CLIENTS:
            self._changed_at.popitem(last=False)

    def changed_lately(self, token: str, now: float) -> bool:
        """Whether something was changed with a token a moment ago."""
        return now - self._changed_at.get(token, float("-inf")) < CHANGED_LATELY

    async def reaches_coordinator(self) -> bool:
        """Whether there is a connection now; begins to make one where there is none."""
        assert self._channel is not None, "it is used while it is open"
        return self._channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY

    async def __aenter__(self) -> Self:
        self._channel = self._shared.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._clients.clear()
        self._counted.clear()
        assert self._channel is not None, "it was entered"
        await self._shared.close(self._channel)


class _BorrowedConnection(Connection):
    """The way of one caller, over the channel of all."""

    def __init__(self, address: str, authority: bytes | None, token: str, channel: grpc.aio.Channel) -> None:
        super().__init__(address, Credentials(authority=authority, token=token))
        self._lent = channel

    def open(self) -> grpc.aio.Channel:
        """The channel of all."""
        return self._lent

    async def close(self, channel: grpc.aio.Channel) -> None:
        """Leave the channel open for the others."""
