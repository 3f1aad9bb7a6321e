"""The relay as a program: what it joins, what survives it, and whom it turns away."""

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import psutil
import pytest

from coordinator.clock import wall_time
from coordinator.store.directory import StateDirectory
from coordinator.trust.authority import FleetAuthority
from muster.carrying.carrier import ChannelCarrier
from muster.carrying.channel_end import ChannelEnd
from muster.domain.attachments.frame import (
    LARGEST_CHANNEL_DATA,
    AttachmentFrame,
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentOutput,
    AttachmentOutputEnd,
)
from muster.domain.ids import NodeId
from muster.rpc.channel import RELAY_CHANNEL_OPTIONS, Credentials, open_channel
from muster.rpc.relay import ENDING_METADATA, TICKET_METADATA
from muster.rpc.v1.attachments_pb2_grpc import RelayServiceStub
from muster.trust.certificates import make_authority
from muster.trust.tickets import (
    TICKET_LIFE,
    AttachmentTicket,
    TicketPurpose,
    TicketSide,
    make_ticket,
    read_ticket,
    ticket_key,
)
from tests.integration.programs import coordinator_program
from tests.integration.relays import RESTARTED_AT, RawStream, Site, carry, relay, site, site_with_relay, until

CLIENT, AGENT = TicketSide.CLIENT, TicketSide.AGENT
SOON = 1.0
"""Seconds in which streams end whose attachment was closed."""
LIMIT = 60.0
SIZE = 50 * 1000 * 1000


async def end_of(stream: RawStream) -> tuple[grpc.StatusCode, str]:
    """How a stream ends, and the relay's word for it."""
    async with asyncio.timeout(LIMIT):
        code = await stream.code()
        said = dict(await stream.trailing_metadata())
    return code, str(said.get(ENDING_METADATA, ""))


async def read_to_the_end(stream: RawStream) -> list[bytes]:
    read: list[bytes] = []
    try:
        while isinstance(message := await stream.read(), bytes):
            read.append(message)
    except grpc.aio.AioRpcError:
        pass
    return read


async def test_two_sides_are_joined_and_get_each_others_bytes_whatever_these_are(tmp_path: Path) -> None:
    async with site_with_relay(tmp_path) as there:
        client, agent = await there.pair("a")
        for message in (b"\xff\x00 no protobuf", b"", bytes(LARGEST_CHANNEL_DATA + 1000)):
            await client.write(message)
            assert await agent.read() == message
            await agent.write(message)
            assert await client.read() == message


async def test_attachments_do_not_hear_of_each_other(tmp_path: Path) -> None:
    async with site_with_relay(tmp_path) as there:
        (one, its), (other, of_the_other) = await there.pair("a"), await there.pair("b")
        await one.write(b"to a")
        await other.write(b"to b")
        assert (await its.read(), await of_the_other.read()) == (b"to a", b"to b")


async def test_all_that_a_side_has_said_arrives_before_its_end_does(tmp_path: Path) -> None:
    async with site_with_relay(tmp_path) as there:
        client, agent = await there.pair("a")
        said = [b"%d" % number * 500 for number in range(100)]
        for each in said:
            await client.write(each)
        await client.done_writing()
        assert await read_to_the_end(agent) == said
        assert await end_of(agent) == (grpc.StatusCode.UNAVAILABLE, "broken")
        assert await end_of(client) == (grpc.StatusCode.OK, "ended")


async def test_when_one_side_breaks_off_the_other_is_told_to_come_again(tmp_path: Path) -> None:
    async with site_with_relay(tmp_path) as there:
        client, agent = await there.pair("a")
        client.cancel()
        assert await end_of(agent) == (grpc.StatusCode.UNAVAILABLE, "broken")


async def test_a_side_that_comes_anew_ends_its_older_stream_and_both_are_joined_once_the_other_has_come_anew(
    tmp_path: Path,
) -> None:
    async with site_with_relay(tmp_path) as there:
        client, agent = await there.pair("a")
        newer = await there.come("a", CLIENT)
        assert await end_of(client) == (grpc.StatusCode.ABORTED, "replaced")
        assert await end_of(agent) == (grpc.StatusCode.UNAVAILABLE, "broken")
        agent = await there.come("a", AGENT)
        await newer.write(b"again")
        assert await agent.read() == b"again"


async def test_both_streams_of_a_closed_attachment_end_at_once_and_tickets_are_worth_nothing_then(
    tmp_path: Path,
) -> None:
    async with site_with_relay(tmp_path) as there:
        there.desk.opened("a")
        client, agent = await there.pair("a")
        async with asyncio.timeout(SOON):
            there.desk.close("a", "your token was revoked")
            assert await end_of(client) == await end_of(agent) == (grpc.StatusCode.PERMISSION_DENIED, "closed")
        assert await client.details() == "your token was revoked"
        assert await end_of(await there.come("a", CLIENT)) == (grpc.StatusCode.PERMISSION_DENIED, "closed")


async def test_a_side_that_does_not_read_keeps_no_closed_attachment_open(tmp_path: Path) -> None:
    async with site_with_relay(tmp_path) as there:
        client, agent = await there.pair("a")

        async def fill() -> None:
            while True:
                await client.write(bytes(200_000))

        filling = asyncio.create_task(fill())
        await agent.read()
        async with asyncio.timeout(SOON):
            there.desk.close("a", "closed")
            # The library says INTERNAL where a message was on its way to a call that ends: so who writes asks again.
            assert (await end_of(client))[0] in {grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.INTERNAL}
            assert await end_of(await there.come("a", CLIENT)) == (grpc.StatusCode.PERMISSION_DENIED, "closed")
        assert isinstance((await asyncio.gather(filling, return_exceptions=True))[0], Exception)
        assert len(await read_to_the_end(agent)) < 20  # what was under way
        assert await end_of(agent) == (grpc.StatusCode.PERMISSION_DENIED, "closed")


@pytest.mark.parametrize("kind", ["none", "nonsense", "another fleet's", "too old", "for something else"])
async def test_who_shows_no_good_ticket_is_turned_away(tmp_path: Path, kind: str) -> None:
    async with site_with_relay(tmp_path) as there:
        key = ticket_key(bytes(32), TicketPurpose.ATTACHMENT)
        good = read_ticket(key, there.ticket("a", CLIENT))
        shown = {
            "none": "",
            "nonsense": "v1.e30.e30",
            "another fleet's": make_ticket(ticket_key(b"x" * 32, TicketPurpose.ATTACHMENT), good),
            "too old": make_ticket(key, replace(good, not_after=wall_time() - timedelta(seconds=2))),
            "for something else": make_ticket(bytes(32), good),
        }[kind]
        stream = carry(await there.channel(), shown)
        assert await end_of(stream) == (grpc.StatusCode.UNAUTHENTICATED, "refused")
        assert shown[10:] == "" or shown[10:] not in (await stream.details() or "")


async def test_an_old_ticket_counts_again_while_its_attachment_is_open(tmp_path: Path) -> None:
    async with site_with_relay(tmp_path) as there:
        key = ticket_key(bytes(32), TicketPurpose.ATTACHMENT)
        old = [
            make_ticket(
                key,
                AttachmentTicket(
                    attachment="a", side=side, node=NodeId("gpu-7"), account="anna", not_after=wall_time() - TICKET_LIFE
                ),
            )
            for side in TicketSide
        ]
        there.desk.opened("a")
        # The relay has heard of it once it has heard what was said after that.
        there.desk.close("b", "closed")
        while (await end_of(await there.come("b", CLIENT)))[1] != "closed":
            pass
        client, agent = await there.come("a", CLIENT, old[0]), await there.come("a", AGENT, old[1])
        await client.write(b"still here")
        assert await agent.read() == b"still here"


async def test_a_full_relay_says_so_and_when_to_try_again(tmp_path: Path) -> None:
    async with site(tmp_path) as it, relay(tmp_path, "--relay-streams", "2"):
        await it.pair("a")
        third = await it.come("b", CLIENT)
        assert await end_of(third) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "full")
        assert dict(await third.trailing_metadata())["retry-after"] == "5"


async def test_the_coordinator_hears_what_is_carried_and_who_is_there(tmp_path: Path) -> None:
    async with site_with_relay(tmp_path) as there:
        client, _ = await there.pair("a")
        await client.write(bytes(1000))
        await until(lambda: there.desk.traffic("a").bytes_in >= 1006)
        traffic = there.desk.traffic("a")
        assert (traffic.bytes_out, traffic.client, traffic.agent) == (5, True, True)
        client.cancel()
        await until(lambda: not there.desk.traffic("a").client)


async def test_an_attachment_whose_reader_sleeps_takes_little_of_the_relays_memory(tmp_path: Path) -> None:
    async with site(tmp_path) as it, relay(tmp_path) as program, asyncio.TaskGroup() as tasks:
        await it.pair("warm")
        at_rest = psutil.Process(program.pid).memory_info().rss
        assert at_rest < 60 << 20
        clients = [(await it.pair(f"a{number}"))[0] for number in range(20)]
        filling = [tasks.create_task(_fill(each)) for each in clients]
        await until(lambda: min(it.desk.traffic(f"a{number}").bytes_in for number in range(20)) >= LARGEST_CHANNEL_DATA)
        assert (psutil.Process(program.pid).memory_info().rss - at_rest) / 20 < 2.5 * (1 << 20)
        for each in filling:
            each.cancel()


async def _fill(stream: RawStream) -> None:
    while True:
        await stream.write(bytes(LARGEST_CHANNEL_DATA))


async def test_a_relay_that_is_stopped_tells_both_sides_to_come_again(tmp_path: Path) -> None:
    async with site(tmp_path) as it, relay(tmp_path) as program:
        client, agent = await it.pair("a")
        program.terminate()
        assert await end_of(client) == await end_of(agent) == (grpc.StatusCode.UNAVAILABLE, "stopping")
        assert await program.wait() == 0


async def test_a_relay_that_finds_its_address_taken_says_so_in_a_line(tmp_path: Path) -> None:
    async with site_with_relay(tmp_path) as there:
        taken = await there.address()
        async with relay(tmp_path, "--listen-relay", taken) as second:
            assert await second.wait() == 1
        assert f"muster-relay: cannot listen on {taken}: is something else listening there?" in _log(tmp_path)


async def test_without_tls_no_other_machine_is_served(tmp_path: Path) -> None:
    async with site(tmp_path), relay(tmp_path, "--listen-relay", "0.0.0.0:0") as program:
        assert await program.wait() == 1
    assert "muster-relay: will not speak unencrypted on 0.0.0.0:0" in _log(tmp_path)


def _log(state: Path) -> str:
    return (state / "relay.log").read_text()


async def test_the_relay_shows_the_fleets_certificate_and_the_next_one_once_there_is_one(tmp_path: Path) -> None:
    now = wall_time()
    first, second = (FleetAuthority(make_authority(now), [RESTARTED_AT], now) for _ in range(2))
    shown = [first.server]
    async with site(tmp_path, first.server, Credentials(authority=first.certificate)) as it, relay(tmp_path):
        await it.pair("a")
        it.desk._identity = lambda: shown[0]  # noqa: SLF001 - the authority that the desk asks is another one from here on
        shown[0] = second.server
        it.desk.look_again()
        it.credentials = Credentials(authority=second.certificate)
        async with asyncio.timeout(LIMIT):
            while (await (stream := await it.come("c", CLIENT, "none")).code()) is grpc.StatusCode.UNAVAILABLE:
                pass
        assert await end_of(stream) == (grpc.StatusCode.UNAUTHENTICATED, "refused")
        await it.pair("b")


# what outlives breaks


class Side:
    """One side of an attachment, which sends many bytes and digests what it gets."""

    def __init__(self, where: Site, side: TicketSide, content: bytes) -> None:
        self.end = ChannelEnd()
        self.got = sha256()
        self.received = 0
        self.breaks = 0
        self._where = where
        self._side = side
        self._content = content
        self._ticket = where.ticket("a", side)
        self._address = ""

    def has_received(self, size: int) -> bool:
        return self.received >= size

    async def run(self) -> None:
        """Send all, and receive all of the other side."""
        self._address = await self._where.address()
        carrier = ChannelCarrier(self.end, self._dial, LIMIT, on_break=self._note)
        carrying = asyncio.create_task(carrier.run())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send())
            tasks.create_task(self._receive())
        self.end.tell()  # the other side waits until its last frame is dealt with
        await carrier.leave()
        carrying.cancel()
        await asyncio.wait({carrying})

    def _note(self, cause: str) -> None:
        self.breaks += bool(cause)

    def _dial(self) -> Any:
        channel = open_channel(self._address, self._where.credentials, RELAY_CHANNEL_OPTIONS)
        self._where.channels.append(channel)
        return RelayServiceStub(channel).Carry(metadata=((TICKET_METADATA, self._ticket),))

    async def _send(self) -> None:
        for at in range(0, len(self._content), LARGEST_CHANNEL_DATA):
            piece = self._content[at : at + LARGEST_CHANNEL_DATA]
            await self.end.send(AttachmentInput(data=piece) if self._side is CLIENT else AttachmentOutput(data=piece))
        last: AttachmentFrame = AttachmentInputEnd() if self._side is CLIENT else AttachmentOutputEnd()
        await self.end.send(last)
        await self.end.settled()

    async def _receive(self) -> None:
        while not isinstance(frame := await self.end.receive(), AttachmentInputEnd | AttachmentOutputEnd):
            assert isinstance(frame, AttachmentInput | AttachmentOutput)
            self.got.update(frame.data)
            self.received += len(frame.data)
        self.end.dealt()


async def test_50_mb_in_both_directions_outlive_a_relay_that_is_killed_twice(tmp_path: Path) -> None:
    chance = random.Random(1)
    there, back = chance.randbytes(SIZE), chance.randbytes(SIZE)
    async with site(tmp_path) as it, AsyncExitStack() as stack:
        it.desk.opened("a")
        program = await stack.enter_async_context(relay(tmp_path))
        client, agent = Side(it, CLIENT, there), Side(it, AGENT, back)
        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as tasks:
            tasks.create_task(client.run())
            tasks.create_task(agent.run())
            for part in (0.3, 0.6):
                await until(partial(client.has_received, int(part * SIZE)))
                program.kill()
                await program.wait()
                program = await stack.enter_async_context(relay(tmp_path))
        assert (agent.received, client.received) == (SIZE, SIZE)
        assert agent.got.digest() == sha256(there).digest()
        assert client.got.digest() == sha256(back).digest()
        assert client.breaks >= 2
        assert agent.breaks >= 2


async def test_streams_go_on_while_the_coordinator_is_killed_and_started_and_old_tickets_still_count(
    tmp_path: Path,
) -> None:
    state = tmp_path / "coordinator"
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(coordinator_program(tmp_path))
        await stack.enter_async_context(relay(state))
        served = (await first.says(b"relay is there")).decode()
        assert "version=" in served
        key = ticket_key(StateDirectory(state).ticket_secret(), TicketPurpose.ATTACHMENT)
        tickets = {
            side: make_ticket(
                key,
                AttachmentTicket(
                    attachment="a", side=side, node=NodeId("gpu-7"), account="anna", not_after=wall_time() + TICKET_LIFE
                ),
            )
            for side in TicketSide
        }
        address = await _address(state)
        channel = open_channel(address, options=RELAY_CHANNEL_OPTIONS)
        stack.push_async_callback(channel.close)
        client, agent = carry(channel, tickets[CLIENT]), carry(channel, tickets[AGENT])
        await client.write(b"before")
        assert await agent.read() == b"before"

        await first.killed()
        await client.write(b"meanwhile")
        assert await agent.read() == b"meanwhile"

        second = await stack.enter_async_context(coordinator_program(tmp_path))
        await second.says(b"relay is there")
        await client.write(b"after")
        assert await agent.read() == b"after"
        client = carry(channel, tickets[CLIENT])
        assert await end_of(agent) == (grpc.StatusCode.UNAVAILABLE, "broken")
        agent = carry(channel, tickets[AGENT])
        await client.write(b"anew")
        assert await agent.read() == b"anew"


async def _address(state: Path) -> str:
    await until(lambda: "relay serves" in _log(state))
    return _log(state).rpartition("address=")[2].split()[0]
