"""Gives pieces to the agents of other nodes that may have them."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection
from enum import Enum

from agent.swarm.requests import PIECE_WORD, piece_signature
from agent.swarm.shelf import NotHereError, Offer, PeerRate, PieceShelf
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.rpc.v1 import agents_pb2 as pb
from muster.trust.attempt_signature import same_signature

MOST_PIECES_SERVED = 64
"""Pieces that are given to other nodes at once; who asks for more waits."""
MOST_PIECES_ASKED = 256
"""Questions for pieces that wait or are answered; further ones are refused."""
MOST_CUT_OFF = 64
"""Nodes without a way to the origin that one question names."""


class PieceFault(Enum):
    """Kinds of reasons why a node gives no piece."""

    NOT_HERE = "not here"  #: not yet, or not any more: ask again, or another node
    UNPROVEN = "unproven"  #: it is not shown that whoever asks may have it
    TOO_MANY = "too many"  #: others are being answered
    WRONG = "wrong"  #: there is no such piece


class PieceRefusedError(Exception):
    """No piece is given; the sentence is for the agent that asks."""

    def __init__(self, fault: PieceFault, text: str) -> None:
        super().__init__(text)
        self.fault = fault


class PiecesForPeers:
    """Checks what other agents want of the shelf of one node, and gives it."""

    def __init__(
        self, node: NodeId, shelf: PieceShelf, rate: PeerRate, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._node = node
        self._shelf = shelf
        self._rate = rate
        self._clock = clock
        self._asked = 0
        self._turns = asyncio.Semaphore(MOST_PIECES_SERVED)

    async def serve(
        self, request: pb.PieceRequest, shows: Callable[[NodeId], bool]
    ) -> AsyncGenerator[pb.PieceData, None]:
        """The answer to one question; `shows` tells whether the other side has proven to be a node.

        Raises PieceRefusedError.
        """
        if self._asked >= MOST_PIECES_ASKED:
            raise PieceRefusedError(PieceFault.TOO_MANY, f"{self._node} answers {MOST_PIECES_ASKED} questions already")
        self._asked += 1
        try:
            offer = self._allowed(request, shows)
            if request.which:
                yield pb.PieceData(held=bits_of(offer.pieces.held(), offer.pieces.count))
                return
            async for data in self._paced(offer, request):
                yield data
        except NotHereError as error:
            raise PieceRefusedError(PieceFault.NOT_HERE, str(error)) from None
        finally:
            self._asked -= 1

    def _allowed(self, request: pb.PieceRequest, shows: Callable[[NodeId], bool]) -> Offer:
        if not shows(NodeId(request.node)):
            raise PieceRefusedError(PieceFault.UNPROVEN, "the question is not that of the node that shows itself")
        if len(request.cut_off) > MOST_CUT_OFF:
            raise PieceRefusedError(PieceFault.WRONG, f"the question names more than {MOST_CUT_OFF} nodes")
        offer = self._shelf.find(AttemptId(JobId(request.job), request.attempt), request.contents)
        if offer is None:
            raise PieceRefusedError(PieceFault.NOT_HERE, f"{self._node} has not begun with it, or is done with it")
        if not same_signature(request.signature, piece_signature(offer.key, request, self._node)):
            raise PieceRefusedError(PieceFault.UNPROVEN, "the question is not signed with the key of the swarm")
        if request.piece >= offer.pieces.count:
            raise PieceRefusedError(PieceFault.WRONG, f"there are {offer.pieces.count} pieces")
        return offer

    async def _paced(self, offer: Offer, request: pb.PieceRequest) -> AsyncGenerator[pb.PieceData, None]:
        """A piece with empty messages while it, a turn or the rate has to be waited for."""
        has_turn = False
        try:
            async for data in offer.pieces.wanted(request.piece, request.cut_off):
                while data and not has_turn:
                    try:
                        async with asyncio.timeout(PIECE_WORD):
                            has_turn = await self._turns.acquire()
                    except TimeoutError:
                        yield pb.PieceData()
                left = self._rate.pause(len(data), self._clock())
                while left > 0:
                    await asyncio.sleep(min(left, PIECE_WORD))
                    left -= PIECE_WORD
                    if left > 0:
                        yield pb.PieceData()
                yield pb.PieceData(data=data)
        finally:
            if has_turn:
                self._turns.release()


def bits_of(pieces: Collection[int], count: int) -> bytes:
    """Pieces of all `count` as bits, the first one the lowest of the first byte."""
    bits = bytearray(-(-count // 8))
    for piece in pieces:
        bits[piece // 8] |= 1 << piece % 8
    return bytes(bits)


def pieces_of(bits: bytes, count: int) -> list[int]:
    """Pieces that are set in bits; what goes beyond `count` counts for nothing."""
    return [piece for piece in range(min(count, 8 * len(bits))) if bits[piece // 8] >> piece % 8 & 1]
