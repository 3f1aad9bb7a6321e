"""Nodes of a gang that fetch the same file: its server gives it once, whatever the nodes do to each other."""

import asyncio
import random
from collections.abc import AsyncIterator, Collection, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import grpc
import grpc.aio
import pytest

from agent.swarm.requests import piece_signature
from agent.swarm.shelf import Offer
from muster.domain.data.job_input import JobInput
from muster.domain.ids import ExecutionId
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc
from tests.integration.swarms import KEY, GangNode, gang_of
from tests.unit.web_places import WebPlace, web_place

FILE = random.Random(1).randbytes(9 * 1024 * 1024 + 7)


@pytest.fixture
def web() -> Iterator[WebPlace]:
    with web_place() as found:
        found.files["/base.tar"] = FILE
        found.versions["/base.tar"] = '"1"'
        yield found


def wanted(web: WebPlace) -> JobInput:
    return JobInput(name="base", url=f"{web.url}/base.tar")


async def test_three_nodes_cost_the_server_one_download(web: WebPlace, tmp_path: Path) -> None:
    async with gang_of(tmp_path, "a", "b", "c") as nodes:
        held = await asyncio.gather(*(node.fetch(wanted(web)) for node in nodes))
        assert held == [FILE] * 3
        assert web.sent <= 1.05 * len(FILE)
        assert any("from other nodes" in detail for detail in nodes[0].said)


async def test_a_node_that_comes_later_costs_the_server_next_to_nothing(web: WebPlace, tmp_path: Path) -> None:
    async with gang_of(tmp_path, "a", "b", "c", later="c") as nodes:
        await asyncio.gather(*(node.fetch(wanted(web)) for node in nodes[:2]))
        sent = web.sent
        await nodes[2].answer()
        assert await nodes[2].fetch(wanted(web)) == FILE
        assert web.sent - sent <= 0.01 * len(FILE)


async def test_the_others_end_when_a_node_goes_away_half_way(web: WebPlace, tmp_path: Path) -> None:
    async with gang_of(tmp_path, "a", "b", "c") as [first, second, third]:
        leaving = asyncio.Event()
        lost = asyncio.create_task(third.fetch(wanted(web), lambda _: leaving.set()))
        others = [asyncio.create_task(node.fetch(wanted(web))) for node in (first, second)]
        await leaving.wait()
        lost.cancel()
        await third.fall_silent()
        assert await asyncio.gather(*others) == [FILE] * 2
        assert web.sent <= 1.5 * len(FILE)


async def test_pieces_of_a_node_that_lies_are_found_out_and_fetched_from_the_server(
    web: WebPlace, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = replace(wanted(web), sha256=sha256(FILE).hexdigest())
    async with gang_of(tmp_path, "a", "b") as [liar, node]:
        fetching = asyncio.create_task(node.fetch(given, lambda _: lie(liar, node)))
        assert await fetching == FILE
        assert "a node gave another piece than the origin" in caplog.text


async def test_a_node_gives_nothing_to_whoever_does_not_have_the_key(web: WebPlace, tmp_path: Path) -> None:
    async with gang_of(tmp_path, "a", "b") as [first, second]:
        await asyncio.gather(first.fetch(wanted(web)), second.fetch(wanted(web)))
        [(_, name)] = first.shelf._offers  # noqa: SLF001 - there is no other way to the name
        for key, code in ((b"x" * 32, grpc.StatusCode.PERMISSION_DENIED), (KEY, None)):
            request = pb.PieceRequest(job="j", attempt=1, node="b", contents=name, piece=3)
            request.signature = piece_signature(key, request, "a")
            assert await refusal(first, request) == code
        request.contents = "0" * 64
        assert await refusal(first, request) == grpc.StatusCode.NOT_FOUND
        first.shelf.forget(ExecutionId("a"))
        request.contents = name
        assert await refusal(first, request) == grpc.StatusCode.NOT_FOUND


async def refusal(node: GangNode, request: pb.PieceRequest) -> grpc.StatusCode | None:
    """The status with which a node refuses a question; None: it gives the piece."""
    [address] = [each.address for each in node.gang.members if each.node == node.name]
    async with grpc.aio.insecure_channel(address) as channel:
        stub: agents_pb2_grpc.PeerServiceAsyncStub = agents_pb2_grpc.PeerServiceStub(channel)
        try:
            given = b"".join([answer.data async for answer in stub.Pieces(request)])
        except grpc.aio.AioRpcError as error:
            return error.code()
    assert given == FILE[3 * 1024 * 1024 : 4 * 1024 * 1024]
    return None


def lie(liar: GangNode, node: GangNode) -> None:
    """Have a node give bytes of its own as pieces of all that another one gathers."""
    for (attempt, name), offer in node.shelf._offers.items():  # noqa: SLF001 - a liar finds it out otherwise
        liar.shelf.offer(attempt, name, KEY, Lies(offer), ExecutionId("a"))


class Lies:
    """Pieces of the right length."""

    def __init__(self, offer: Offer) -> None:
        self.count = offer.pieces.count

    def held(self) -> Collection[int]:
        return range(self.count)

    async def wanted(self, piece: int, cut_off: Collection[str]) -> AsyncIterator[bytes]:
        del cut_off
        left = min(1024 * 1024, len(FILE) - piece * 1024 * 1024)
        while left:
            part = min(left, 256 * 1024)
            yield b"\0" * part
            left -= part
