"""Asks the agents of other nodes for pieces: gives up on silence, never on slowness."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass, field

import grpc
import grpc.aio

from agent.identity.peers import Shown, open_peer_channel
from agent.swarm.requests import PIECE_MESSAGE, piece_signature
from agent.swarm.serving import pieces_of
from muster.domain.data.sharing.swarm_pass import SwarmMember
from muster.domain.errors import PermissionDeniedError
from muster.domain.ids import AttemptId, NodeId
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc

PEER_SILENCE = 10.0
"""Seconds without a word of another node after which it is asked no more, and others stand in for it."""
PEER_BEGINS = 10.0
"""Seconds in which another node must have begun with the same contents."""
PEER_PAUSE = 1.0
"""Seconds until a node is asked again that has not begun, or answers too many others."""

PIECE_OPTIONS = (
    ("grpc.max_receive_message_length", 2 * PIECE_MESSAGE),
    ("grpc.max_send_message_length", 64 * 1024),
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 200),
    # Despite its name: how long one attempt to connect may take.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.use_local_subchannel_pool", 1),
    # Bytes that may be under way to a side that does not read them.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 1024 * 1024),
)
"""Options of a connection for pieces."""

_LATER = frozenset({grpc.StatusCode.NOT_FOUND, grpc.StatusCode.RESOURCE_EXHAUSTED})
Taken = Callable[[int, bytes], Awaitable[None]]


class PeerGoneError(Exception):
    """Another node gives nothing; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedSwarm:
    """What the nodes of a swarm ask each other for."""

    attempt: AttemptId
    contents: str
    key: bytes = field(repr=False)
    begins: float = PEER_BEGINS
    """Seconds in which another node must have begun with the contents."""


class PeerLine:
    """One other node, and the contents that are wanted of it."""

    def __init__(self, node: NodeId, member: SwarmMember, shown: Shown, swarm: AskedSwarm) -> None:
        """Connect to nobody yet; `node` is the one that asks."""
        self._node = node
        self.member = member
        self._shown = shown
        self._swarm = swarm
        self._channel: grpc.aio.Channel | None = None

    async def held(self, count: int) -> list[int]:
        """Pieces of all `count` that the other node has now; raises PeerGoneError."""
        try:
            async with aclosing(self._answers(self._request(which=True))) as answers:
                async for answer in answers:
                    return pieces_of(answer.held, count)
        except grpc.aio.AioRpcError as error:
            raise PeerGoneError(_words(error)) from None
        return []

    async def piece(self, piece: int, length: int, cut_off: Collection[str], take: Taken) -> None:
        """Have a piece of such a length taken as it comes; raises PeerGoneError.

        A node that has not begun with the contents is asked again until it must have.
        """
        request = self._request(piece=piece, cut_off=sorted(cut_off))
        try:
            async with asyncio.timeout(self._swarm.begins) as beginning:
                while True:
                    if await self._came(request, length, take, beginning):
                        return
                    await asyncio.sleep(PEER_PAUSE)
        except TimeoutError:
            raise PeerGoneError(f"it has not begun after {self._swarm.begins:.0f} s") from None

    async def close(self) -> None:
        """Let go of the connection; another question opens it again."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def _came(self, request: pb.PieceRequest, length: int, take: Taken, beginning: asyncio.Timeout) -> bool:
        """Whether a piece came; False: it is to be asked for again."""
        offset = 0
        try:
            async with aclosing(self._answers(request)) as answers:
                async for answer in answers:
                    beginning.reschedule(None)
                    if offset + len(answer.data) > length:
                        raise PeerGoneError("it gave more than the piece has")
                    if answer.data:
                        await take(offset, answer.data)
                        offset += len(answer.data)
        except grpc.aio.AioRpcError as error:
            if error.code() in _LATER and beginning.when() is not None:
                return False
            raise PeerGoneError(_words(error)) from None
        if offset < length:
            raise PeerGoneError("it gave less than the piece has")
        return True

    async def _answers(self, request: pb.PieceRequest) -> AsyncGenerator[pb.PieceData, None]:
        stub: agents_pb2_grpc.PeerServiceAsyncStub = agents_pb2_grpc.PeerServiceStub(self._opened())
        call = stub.Pieces(request)
        try:
            while True:
                async with asyncio.timeout(PEER_SILENCE):
                    answer = await call.read()
                if not isinstance(answer, pb.PieceData):
                    return
                yield answer
        except TimeoutError:
            raise PeerGoneError(f"it said nothing for {PEER_SILENCE:.0f} s") from None
        finally:
            call.cancel()

    def _opened(self) -> grpc.aio.Channel:
        if self._channel is None:
            try:
                self._channel = open_peer_channel(
                    self.member.address, NodeId(self.member.node), self._shown(), PIECE_OPTIONS
                )
            except PermissionDeniedError as error:
                raise PeerGoneError(str(error)) from None
        return self._channel

    def _request(self, *, piece: int = 0, which: bool = False, cut_off: Collection[str] = ()) -> pb.PieceRequest:
        job, attempt = self._swarm.attempt
        request = pb.PieceRequest(
            job=job,
            attempt=attempt,
            node=self._node,
            contents=self._swarm.contents,
            piece=piece,
            which=which,
            cut_off=cut_off,
        )
        request.signature = piece_signature(self._swarm.key, request, self.member.node)
        return request


def _words(error: grpc.aio.AioRpcError) -> str:
    return f"{error.code().name}: {(error.details() or '')[:200]}"
