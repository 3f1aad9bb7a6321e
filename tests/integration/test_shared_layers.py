"""Nodes of a gang that pull one image over TLS: each layer leaves its registry once."""

import asyncio
import base64
import http.client
import urllib.request
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path

import pytest

from agent.data.layers.messages import ImageSource, PullWanted
from agent.data.layers.mover import LayerMover, OpenedPull
from agent.data.layers.sharing import SharedLayers
from agent.fencing.peer_server import GivenToPeers, answering
from agent.swarm.serving import PiecesForPeers
from agent.swarm.shelf import Offer, PeerRate, PieceShelf, SwarmAccess
from muster.domain.data.sharing.swarm_pass import SwarmMember, SwarmPass
from muster.domain.ids import AttemptId, ExecutionId, NodeId
from muster.domain.jobs.job import Role
from tests.image_registry import Registry, registry
from tests.integration.peer_certificates import shown_by
from tests.integration.swarms import KEY, LOCALHOST, Gang, GangNode, NoFence

MIB = 1 << 20
LIMIT = 60.0
ENGINES = ThreadPoolExecutor(16)
"""Apart from the threads of the agents, as real engines are."""


@pytest.fixture
def images() -> Iterator[Registry]:
    with registry() as served:
        yield served


class PullingNode:
    """One node of a gang whose engine is this test."""

    def __init__(self, name: str, directory: Path, members: list[SwarmMember], digest: str, images: Registry) -> None:
        self.name = NodeId(name)
        self._members = members
        self._shown = shown_by(self.name)
        self.shelf = PieceShelf()
        self._mover = LayerMover(directory / name, 0)
        access = SwarmAccess(node=self.name, ask=self._swarm, shelf=self.shelf, shown=lambda: self._shown)
        self._shared = SharedLayers(access, self._mover)
        source = ImageSource(host=images.address, path="team/app")
        self._wanted = PullWanted(source=source, reference=digest, architecture="amd64", project="")
        self._assignment = GangNode(name, directory / "gang", Gang()).assignment(
            Role(image=f"{images.address}/team/app")
        )
        self.asked_for: list[str] = []
        self.from_peers = 0
        self.broke_off = 0
        """How often a blob broke off."""

    @asynccontextmanager
    async def answering(self, *, lies: bool) -> AsyncIterator[None]:
        """Answer the others, perhaps with bytes of its own whatever they ask for."""
        shelf = LyingShelf(Offer(KEY, Lies(), set())) if lies else self.shelf
        given = GivenToPeers(pieces=PiecesForPeers(self.name, shelf, PeerRate(None)))
        async with answering(self.name, NoFence(), LOCALHOST, 0, lambda: self._shown, given) as port:
            self._members.append(SwarmMember(node=self.name, address=f"{LOCALHOST}:{port}"))
            yield

    async def pull(self, leaves_out: int = 0) -> list[bytes]:
        """All blobs of the image but some that the engine has, as an engine pulls them: three at the same time."""
        async with (
            self._mover.opened(self._wanted) as pull,
            self._shared.sharing(pull, self._assignment, self._told),
        ):
            turns = asyncio.Semaphore(3)

            async def blob(digest: str) -> bytes:
                async with turns:
                    while True:  # as engines do, though they wait longer between two tries
                        with suppress(http.client.IncompleteRead):
                            return await asyncio.get_running_loop().run_in_executor(ENGINES, _given, pull, digest)
                        self.broke_off += 1

            return await asyncio.gather(*(blob(each.digest) for each in pull.blobs[leaves_out:]))

    async def _swarm(self, execution: ExecutionId, wanted: str) -> SwarmPass:
        del execution
        self.asked_for.append(wanted)
        return SwarmPass(key=KEY, members=tuple(self._members))

    def _told(self, from_peers: int) -> None:
        self.from_peers = from_peers


def _given(pull: OpenedPull, digest: str) -> bytes:
    shown = base64.b64encode(f"{pull.user}:{pull.password}".encode()).decode()
    host, _, rest = pull.name.partition("/")
    url = f"http://{host}/v2/{rest.partition('@')[0]}/blobs/sha256:{digest}"
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Authorization": f"Basic {shown}"})) as answer:
        content = bytes(answer.read())
    assert sha256(content).hexdigest() == digest
    return content


@asynccontextmanager
async def gang(
    directory: Path, images: Registry, digest: str, *names: str, liar: str = ""
) -> AsyncIterator[Sequence[PullingNode]]:
    members: list[SwarmMember] = []
    nodes = [PullingNode(name, directory, members, digest, images) for name in names]
    async with asyncio.timeout(LIMIT), AsyncExitStack() as stack:
        for node in nodes:
            await stack.enter_async_context(node.answering(lies=node.name == liar))
        yield nodes


async def test_each_layer_leaves_the_registry_once_for_three_nodes(tmp_path: Path, images: Registry) -> None:
    digest = images.offer_layers(5 * MIB + 7, 3 * MIB, 4 * MIB + 1, 1000)
    async with gang(tmp_path, images, digest, "a", "b", "c") as nodes:
        pulled = await asyncio.gather(*(node.pull() for node in nodes))
    assert pulled[0] == pulled[1] == pulled[2]
    assert (len(pulled[0]), [node.broke_off for node in nodes]) == (5, [0, 0, 0])
    sizes = {name: len(content) for name, content in images.blobs.items()}
    assert {name: images.given[name] for name, size in sizes.items() if size >= MIB} == {
        name: size for name, size in sizes.items() if size >= MIB
    }
    assert all(images.given[name] == 3 * size for name, size in sizes.items() if size < MIB)
    assert nodes[0].asked_for == [f"image {images.address}/team/app"]
    assert sum(node.from_peers for node in nodes) == 2 * sum(size for size in sizes.values() if size >= MIB)


async def test_layers_that_a_node_keeps_or_whose_engine_has_them_cost_the_others_at_most_one_download(
    tmp_path: Path, images: Registry
) -> None:
    digest = images.offer_layers(2 * MIB, 3 * MIB)
    sizes = {name: len(content) for name, content in images.blobs.items() if len(content) >= MIB}
    async with gang(tmp_path, images, digest, "a", "b", "c") as [a, b, c]:
        await asyncio.gather(a.pull(), b.pull(leaves_out=2))
        assert {name: images.given[name] for name in sizes} == sizes
        await c.pull()
    assert c.from_peers == sum(sizes.values())
    assert {name: images.given[name] for name in sizes} == sizes


async def test_pieces_of_a_node_that_lies_reach_no_engine_whole(
    tmp_path: Path, images: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    digest = images.offer_layers(4 * MIB)
    async with gang(tmp_path, images, digest, "a", "b", liar="a") as [_, b]:
        assert sum(map(len, await b.pull())) == sum(map(len, images.blobs.values()))
    assert "a node gave another piece than the origin" in caplog.text


class LyingShelf(PieceShelf):
    """The shelf of a node that has something under any name."""

    def __init__(self, lies: Offer) -> None:
        super().__init__()
        self._lies = lies

    def find(self, attempt: AttemptId, name: str) -> Offer:
        del attempt, name
        return self._lies


class Lies:
    """Pieces of nothing but zeros."""

    count = 5

    def held(self) -> range:
        return range(self.count)

    async def wanted(self, piece: int, cut_off: Collection[str]) -> AsyncIterator[bytes]:
        del cut_off
        for _ in range(4 if piece < self.count - 1 else 0):
            yield bytes(MIB // 4)
