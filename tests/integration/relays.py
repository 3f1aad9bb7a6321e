"""Relays as programs, and both sides of attachments."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import grpc.aio

from coordinator.clock import wall_time
from coordinator.companions.relay_desk import RelayDesk
from coordinator.companions.socket import serving_companion
from coordinator.relay.messages import RELAY_DESK_TALK
from muster.domain.ids import NodeId
from muster.rpc.channel import NOTHING, RELAY_CHANNEL_OPTIONS, Credentials, open_channel
from muster.rpc.relay import CARRY_METHOD, TICKET_METADATA
from muster.trust.identity import Identity
from muster.trust.tickets import TICKET_SECRET_BYTES, TicketSide
from tests.integration.programs import ROOT

RESTARTED_AT = "127.0.0.7"
"""Where programs listen that are killed and listen again at the same port. No connection goes out from there. From
127.0.0.1 any may, and takes the port while nobody listens at it.
"""

RELAY_READY_WITHIN = 60.0

RawStream = grpc.aio.StreamStreamCall[bytes, bytes]
"""A stream whose messages are any bytes."""


@dataclass(kw_only=True)
class Site:
    """The coordinator's desk, and the way to the relay that comes to it."""

    desk: RelayDesk
    state: Path
    credentials: Credentials = NOTHING
    channels: list[grpc.aio.Channel] = field(default_factory=list)

    async def address(self) -> str:
        """Where the relay serves, once it does."""
        await until(lambda: self.desk.address is not None)
        return f"{RESTARTED_AT}{self.desk.address}"

    def ticket(self, attachment: str, side: TicketSide, account: str = "anna") -> str:
        return self.desk.ticket(attachment, side, account=account, node=NodeId("gpu-7"), now=wall_time())

    async def channel(self) -> grpc.aio.Channel:
        """A connection of its own."""
        channel = open_channel(await self.address(), self.credentials, RELAY_CHANNEL_OPTIONS)
        self.channels.append(channel)
        return channel

    async def come(self, attachment: str, side: TicketSide, ticket: str = "") -> RawStream:
        """A side of an attachment comes, with a ticket of its own."""
        return carry(await self.channel(), ticket or self.ticket(attachment, side))

    async def pair(self, attachment: str, account: str = "anna") -> tuple[RawStream, RawStream]:
        """Client and agent, who have heard of each other."""
        tickets = {side: self.ticket(attachment, side, account) for side in TicketSide}
        client = await self.come(attachment, TicketSide.CLIENT, tickets[TicketSide.CLIENT])
        agent = await self.come(attachment, TicketSide.AGENT, tickets[TicketSide.AGENT])
        await client.write(b"client")
        await agent.write(b"agent")
        assert (await agent.read(), await client.read()) == (b"client", b"agent")
        return client, agent


async def until(reached: Callable[[], bool]) -> None:
    """Wait for what nobody tells of by itself."""
    async with asyncio.timeout(RELAY_READY_WITHIN):
        while not reached():  # noqa: ASYNC110 - it lies in another program, or in a part that has no listeners
            await asyncio.sleep(0.005)


def carry(channel: grpc.aio.Channel, ticket: str) -> RawStream:
    """A stream to the relay; an empty ticket is not shown."""
    stream: RawStream = channel.stream_stream(CARRY_METHOD)(metadata=((TICKET_METADATA, ticket),) if ticket else ())
    return stream


@asynccontextmanager
async def site(
    directory: Path, identity: Identity | None = None, credentials: Credentials = NOTHING
) -> AsyncIterator[Site]:
    """A desk that is served in a state directory; no relay yet."""
    listen = f"{RESTARTED_AT}:0"
    desk = RelayDesk(bytes(TICKET_SECRET_BYTES), "fleet", listen, None if identity is None else lambda: identity)
    it = Site(desk=desk, state=directory, credentials=credentials)
    async with serving_companion(desk, RELAY_DESK_TALK, directory):
        try:
            yield it
        finally:
            for channel in it.channels:
                await channel.close()


@asynccontextmanager
async def site_with_relay(directory: Path, *options: str) -> AsyncIterator[Site]:
    """A desk with a relay that is there."""
    async with site(directory) as it, relay(directory, *options):
        await it.address()
        yield it


@asynccontextmanager
async def relay(state: Path, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A relay that comes to the coordinator of this state directory, ended in order if nobody has killed it."""
    with (state / "relay.log").open("ab") as output:
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "coordinator.relay", "--state", str(state), *options),
            cwd=ROOT,
            stdout=output,
            stderr=output,
        )
    try:
        yield program
    finally:
        if program.returncode is None:
            program.terminate()
        await program.wait()
