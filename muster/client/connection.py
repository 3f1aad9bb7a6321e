"""How a coordinator is reached: who it is, what one shows there, and when connecting begins."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

import grpc.aio

from muster.client.endpoint import keep_authorities, login_of, parse_address
from muster.domain.errors import MusterError
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.notices import AUTHORITIES, TOKEN_ENDS, digest_of

_PATIENCE = 5.0
"""Seconds for the question for authorities, with which a command ends once in a while."""


class Connection:
    """A way to the coordinator at `address`; None finds it as the command line does, and so do `credentials`."""

    def __init__(self, address: str | None = None, credentials: Credentials | None = None) -> None:
        if address is None or credentials is None:
            login = login_of(os.environ, address)
            address = login.address
            authority = login.authority.encode() if login.authority else None
            credentials = credentials or Credentials(authority=authority, token=login.token)
        self.address = parse_address(address)
        self.credentials = credentials
        self._dialled: grpc.aio.Channel | None = None
        self._outdated = False
        """Whether other authorities count than those that are trusted here."""
        self.on_token_ends: Callable[[str], None] = lambda _: None
        """Called with the time at which the token ends, whenever an answer says that it soon does."""

    def dial(self) -> None:
        """Begin to connect, which threads of gRPC do; raises PermissionDeniedError for who must not be spoken to."""
        self._dialled = open_channel(self.address, self.credentials)
        self._dialled.get_state(try_to_connect=True)

    async def close(self, channel: grpc.aio.Channel) -> None:
        """Close a channel; if other authorities count than are kept, ask the coordinator, who is believed, for them."""
        try:
            if self._outdated:
                await _learn_authorities(channel, self.address, self.credentials.authority)
        finally:
            await channel.close()

    def hear(self, beside: Iterable[tuple[str, str | bytes]]) -> None:
        """Take what the coordinator told beside an answer: its trailing metadata."""
        for name, value in beside:
            if name == TOKEN_ENDS:
                self.on_token_ends(str(value))
            elif name == AUTHORITIES and self.credentials.authority is not None:
                self._outdated = digest_of(self.credentials.authority) != value

    def open(self) -> grpc.aio.Channel:
        """The channel that was dialled, else another one; as `dial` otherwise."""
        channel, self._dialled = self._dialled, None
        return channel or open_channel(self.address, self.credentials)


async def _learn_authorities(channel: grpc.aio.Channel, address: str, known: bytes | None) -> None:
    """Keep the authorities that count now with the login that has others; who gave them otherwise keeps them so."""
    from muster.rpc.v1.trust_pb2 import AuthorityRequest  # noqa: PLC0415 - seldom
    from muster.rpc.v1.trust_pb2_grpc import JoinServiceStub  # noqa: PLC0415 - seldom

    with suppress(grpc.aio.AioRpcError, MusterError):  # the next command asks again
        answer = await JoinServiceStub(channel).Authority(AuthorityRequest(), timeout=_PATIENCE)
        if answer.authorities and known is not None:
            keep_authorities(os.environ, address, known.decode(), answer.authorities.decode())
