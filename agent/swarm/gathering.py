"""Gathers contents on one node of a swarm: its own share from the origin, all else from the other nodes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from typing import Protocol

from agent.swarm.asking import PeerGoneError, PeerLine
from agent.swarm.parts import ContentParts
from agent.swarm.requests import PIECE_MESSAGE, PIECE_WORD
from agent.swarm.shelf import NotHereError
from muster.domain.data.sharing.piece_board import PieceBoard
from muster.domain.data.swarm import ContentSpan, Swarm
from muster.domain.errors import UnavailableError

log = logging.getLogger(__name__)

ORIGIN_LANES = 2
"""Pieces that a node fetches from a server or a depot at the same time."""
HELD_WITHIN = 2.0
"""Seconds in which other nodes say what they have already; who is later is asked for its own share alone."""
ORIGIN_TRIES = 2
"""How often a piece is asked of an origin that has no answer before other nodes are asked."""

Write = Callable[[bytes], Awaitable[None]]


class OriginAwayError(UnavailableError):
    """An origin has no answer now."""


class PieceOrigin(Protocol):
    """Where contents come from."""

    @property
    def lanes(self) -> int:
        """Pieces that one node fetches at the same time."""
        ...

    async def fetch(self, spans: Sequence[ContentSpan], write: Write) -> None:
        """Have parts of objects written, one after the other. Raises OriginAwayError, or what ends all trying."""
        ...


class GatheredContents:
    """Contents on their way to one node, and from there to others."""

    def __init__(self, parts: ContentParts, swarm: Swarm, node: str) -> None:
        self._parts = parts
        self._board = PieceBoard(swarm, node, parts.pieces.count, parts.here)
        self._node = node
        self._began = bool(parts.here)
        """Whether something was here before; nobody knows who gave it."""
        self._there = sum(map(parts.length, parts.here))
        """Bytes that are here."""
        self._changed = asyncio.Event()
        self._comes = False
        """Whether somebody fetches what is missing."""
        self._away: OriginAwayError | None = None
        self._came_from: dict[int, str] = {}
        self.from_peers = 0
        """Bytes that other nodes have given."""

    @property
    def is_believed(self) -> bool:
        """Whether other nodes may have given some of it, whose word alone says what it holds."""
        return self._began or self.from_peers > 0

    @property
    def count(self) -> int:
        """Pieces of all contents."""
        return self._parts.pieces.count

    def held(self) -> Collection[int]:
        """Pieces that are here."""
        return self._board.here

    async def wanted(self, piece: int, cut_off: Collection[str]) -> AsyncIterator[bytes]:
        """A piece for another node in parts; an empty one each second while it is not here. Raises NotHereError."""
        while piece not in self._board.here:
            if not self._comes:
                raise NotHereError(f"{self._node} has nothing of it now, and waits itself")
            self._board.cut([each for each in cut_off if each != self._node])
            self._stir()
            yield b""
            with suppress(TimeoutError):
                async with asyncio.timeout(PIECE_WORD):
                    while piece not in self._board.here and self._comes:
                        await self._changed.wait()
        length = self._parts.length(piece)
        for offset in range(0, length, PIECE_MESSAGE):
            try:
                part = min(PIECE_MESSAGE, length - offset)
                yield await asyncio.to_thread(self._parts.read, piece, offset, part)
            except OSError as error:
                raise NotHereError(f"{self._node} cannot read it: {error.strerror or error}") from None

    async def gather(self, origin: PieceOrigin, lines: Sequence[PeerLine], told: Callable[[int, int], None]) -> None:
        """Have all pieces here. Raises OriginAwayError where nobody is left to ask, OSError, or what the origin raises.

        `told` hears how many bytes are there, and how many of them came from other nodes.
        """
        self._comes = True
        await self._ask_who_has_what(lines)
        work = [
            asyncio.create_task(self._from_origin(origin, told), name="pieces from their origin")
            for _ in range(origin.lanes)
        ]
        work += [asyncio.create_task(self._from_peer(line, told), name="pieces of another node") for line in lines]
        try:
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
            if not self._board.is_done:
                raise self._away or OriginAwayError("no node of the job has it")
        finally:
            self._comes = False
            self._stir()
            for task in work:
                task.cancel()
            await asyncio.wait(work)
            for line in lines:
                await line.close()

    async def repair(self, origin: PieceOrigin) -> bool:
        """Fetch what does not hold what it must from the origin; whether all of it does then.

        Raises as `gather` does.
        """
        while wrong := await asyncio.to_thread(self._parts.wrong):
            touched = sorted({piece for digest in wrong for piece in self._parts.touched_by(digest)})
            suspect = [piece for piece in touched if piece in self._came_from]
            if not suspect:
                return False
            before = {piece: await asyncio.to_thread(self._parts.piece_hash, piece) for piece in suspect}
            self._board.here.difference_update(suspect)
            await asyncio.to_thread(self._parts.forget, suspect)
            for piece in suspect:
                await self._fetch(origin, piece)
                giver = self._came_from.pop(piece)
                if await asyncio.to_thread(self._parts.piece_hash, piece) != before[piece]:
                    about = {"peer": giver, "piece": piece}
                    log.warning("a node gave another piece than the origin, which was asked in its place", extra=about)
        return True

    async def _ask_who_has_what(self, lines: Sequence[PeerLine]) -> None:
        """Hear from the other nodes what they have already, from those that answer at once."""

        async def ask(line: PeerLine) -> None:
            with suppress(PeerGoneError):  # who has not begun may do so
                self._board.held_by(line.member.node, await line.held(self.count))

        asking = [asyncio.create_task(ask(line), name="what another node has") for line in lines]
        if asking:
            try:
                await asyncio.wait(asking, timeout=HELD_WITHIN)
            finally:
                for task in asking:
                    task.cancel()
                await asyncio.wait(asking)

    async def _from_origin(self, origin: PieceOrigin, told: Callable[[int, int], None]) -> None:
        while not self._is_over():
            piece = self._board.next_from(self._node)
            if piece is None:
                await self._changed.wait()
                continue
            for left in reversed(range(ORIGIN_TRIES)):
                try:
                    await self._fetch(origin, piece)
                    self._tell(told)
                    break
                except OriginAwayError as error:
                    self._away = error
                    if not left:
                        self._board.cut([self._node])
                        self._board.failed(piece)
                    self._stir()

    async def _from_peer(self, line: PeerLine, told: Callable[[int, int], None]) -> None:
        peer = line.member.node
        try:
            while not self._is_over():
                piece = self._board.next_from(peer)
                if piece is None:
                    await self._changed.wait()
                    continue
                await self._ask(line, piece)
                self._tell(told)
        except PeerGoneError as error:
            log.info("another node of the job gives nothing", extra={"peer": peer, "cause": str(error)})
            self._board.gave_up(peer)
            self._stir()

    async def _ask(self, line: PeerLine, piece: int) -> None:
        """Have a piece of another node, unless it comes from elsewhere meanwhile."""

        async def take(offset: int, data: bytes) -> None:
            if piece not in self._board.here:
                await asyncio.to_thread(self._parts.write, piece, offset, data)

        length = self._parts.length(piece)
        cut_off = self._board.cut_off
        asking = asyncio.ensure_future(line.piece(piece, length, cut_off, take))
        try:
            while not asking.done() and piece not in self._board.here and self._board.cut_off == cut_off:
                if self._board.source(piece) != line.member.node:
                    return  # somebody else is asked for it
                waiting = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait([asking, waiting], return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
            if not asking.done():
                self._board.failed(piece)  # unless it is here, it is asked for anew, with what is known now
                return
            await asking
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        if piece not in self._board.here:
            self.from_peers += length
            self._came_from[piece] = line.member.node
            await self._arrived(piece)

    async def _fetch(self, origin: PieceOrigin, piece: int) -> None:
        offset = 0

        async def write(data: bytes) -> None:
            nonlocal offset
            await asyncio.to_thread(self._parts.write, piece, offset, data)
            offset += len(data)

        await origin.fetch(list(self._parts.pieces.spans(piece)), write)
        if offset != self._parts.length(piece):
            raise OriginAwayError("the origin gave less than was asked for")
        await self._arrived(piece)

    async def _arrived(self, piece: int) -> None:
        await asyncio.to_thread(self._parts.note, piece)
        self._board.arrived(piece)
        self._there += self._parts.length(piece)
        self._stir()

    def _tell(self, told: Callable[[int, int], None]) -> None:
        told(self._there, self.from_peers)

    def _is_over(self) -> bool:
        return self._board.is_done or self._board.is_stuck

    def _stir(self) -> None:
        """Have everybody look again who waits for something to change."""
        self._changed.set()
        self._changed = asyncio.Event()
