"""The agent's connection to the relay: one for all attachments, open while there are some."""

import logging
from collections.abc import Callable
from typing import Any

import grpc.aio

from agent.attach.relayed.attachments import RelayStream
from muster.rpc.channel import RELAY_CHANNEL_OPTIONS, Credentials, open_channel
from muster.rpc.relay import TICKET_METADATA
from muster.rpc.v1.attachments_pb2_grpc import RelayServiceStub

log = logging.getLogger(__name__)


class RelayConnection:
    """Dials the relay with what the agent knows of its coordinator."""

    def __init__(self, coordinator: Callable[[], str], credentials: Callable[[], Credentials]) -> None:
        """Connect nobody yet; what is given is asked again for each attachment."""
        self._coordinator = coordinator
        self._credentials = credentials
        self._channels: dict[tuple[str, bytes | None], grpc.aio.Channel] = {}

    def dial(self, relay: str, ticket: str) -> RelayStream:
        """Begin a stream."""
        host, _, port = relay.rpartition(":")
        address = f"{host or self._coordinator().rpartition(':')[0]}:{port}"
        authority = self._credentials().authority
        if (address, authority) not in self._channels:
            channel = open_channel(address, Credentials(authority=authority), RELAY_CHANNEL_OPTIONS)
            self._channels[address, authority] = channel
        stub: Any = RelayServiceStub(self._channels[address, authority])
        stream: RelayStream = stub.Carry(metadata=((TICKET_METADATA, ticket),))
        return stream

    async def close(self) -> None:
        """Close all connections."""
        while self._channels:
            await self._channels.popitem()[1].close()
