"""What a node has for others of its attempts, and how much it gives them; loads nothing that idle agents lack."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol

from agent.identity.peers import Shown
from muster.domain.data.sharing.swarm_pass import SwarmPass
from muster.domain.ids import AttemptId, ExecutionId, NodeId

AskForSwarm = Callable[[ExecutionId, str], Awaitable[SwarmPass]]
"""The nodes that fetch the same for the attempt of an execution; raises ExecutionError."""


class NotHereError(Exception):
    """A piece is not here, and does not come now."""


class SharedPieces(Protocol):
    """Contents that a node gathers, or has."""

    @property
    def count(self) -> int:
        """Pieces of all contents."""
        ...

    def held(self) -> Collection[int]:
        """Pieces that are here."""
        ...

    def wanted(self, piece: int, cut_off: Collection[str]) -> AsyncIterator[bytes]:
        """A piece for another node in parts; an empty one each second while it is not here. Raises NotHereError."""
        ...


@dataclass(slots=True)
class Offer:
    """Contents that are shared with the nodes of one attempt."""

    key: bytes = field(repr=False)
    pieces: SharedPieces
    executions: set[ExecutionId]


class PieceShelf:
    """Contents by attempt and name, for as long as an execution here needs them."""

    def __init__(self) -> None:
        self._offers: dict[tuple[AttemptId, str], Offer] = {}

    def offer(self, attempt: AttemptId, name: str, key: bytes, pieces: SharedPieces, execution: ExecutionId) -> None:
        """Have others find some contents here until the execution is over."""
        known = self._offers.get((attempt, name))
        executions = {execution} if known is None else known.executions | {execution}
        self._offers[attempt, name] = Offer(key, pieces, executions)

    def find(self, attempt: AttemptId, name: str) -> Offer | None:
        """What is shared under a name; None: nothing yet, or nothing any more."""
        return self._offers.get((attempt, name))

    def forget(self, execution: ExecutionId) -> None:
        """Note that an execution needs nothing any more."""
        for place, offer in [*self._offers.items()]:
            offer.executions.discard(execution)
            if not offer.executions:
                del self._offers[place]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmAccess:
    """How a node gets into swarms."""

    node: NodeId
    ask: AskForSwarm
    shelf: PieceShelf
    shown: Shown


class PeerRate:
    """So many bytes a second, counted as they are given: who has given too much waits."""

    def __init__(self, bytes_a_second: int | None) -> None:
        """None: there is no limit."""
        self._rate = bytes_a_second
        self._free_at = 0.0

    def pause(self, count: int, now: float) -> float:
        """Seconds to wait before so many bytes may be given; they count as given."""
        if not self._rate:
            return 0.0
        begin = max(now, self._free_at)
        self._free_at = begin + count / self._rate
        return begin - now
