"""The pieces that one node lacks, and for each the node to ask: its owner, one that has it, or an heir of one gone.

Nodes that see the same nodes gone choose the same heir without a word to each other. A node without a way to the origin
says so with each question, so that the next heir goes there instead. Nobody waits in a circle: each node waits for one
before itself in the order of a piece, but for those without a way to the origin, of which whoever is asked has heard.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from heapq import heappop, heappush

from muster.domain.data.swarm import Swarm


class PieceBoard:
    """The pieces of some contents as one node of a swarm sees them; the node itself stands for the origin."""

    def __init__(self, swarm: Swarm, node: str, count: int, here: Iterable[int] = ()) -> None:
        """`here`: pieces of all `count` that the node has already."""
        self._swarm = swarm
        self._node = node
        self._count = count
        self.here = set(here)
        """Pieces that are here."""
        self._gone: set[str] = set()
        self._cut: set[str] = set()
        self._holders: defaultdict[int, set[str]] = defaultdict(set)
        self._sources: dict[int, str | None] = {}
        self._lost: set[int] = set()
        """Missing pieces for which nobody is left."""
        self._waiting: defaultdict[str, list[int]] = defaultdict(list)
        """A heap of pieces for each source; what is not to come from there any more is passed over."""
        self._stands: set[tuple[str, int]] = set()
        """What stands in these heaps."""
        for piece in self.missing():
            self._place(piece)

    @property
    def is_done(self) -> bool:
        """Whether all pieces are here."""
        return len(self.here) == self._count

    @property
    def is_stuck(self) -> bool:
        """Whether there is a piece for which nobody is left, not even the origin."""
        return bool(self._lost)

    @property
    def cut_off(self) -> frozenset[str]:
        """Nodes that have no way to the origin, as far as is known here."""
        return frozenset(self._cut)

    def missing(self) -> Iterable[int]:
        """Pieces that are not here, in ascending order."""
        return [piece for piece in range(self._count) if piece not in self.here]

    def source(self, piece: int) -> str | None:
        """Whoever is asked for a missing piece; the node itself: the origin; None: nobody is left."""
        return self._sources.get(piece)

    def next_from(self, source: str) -> int | None:
        """The next piece to ask somebody for; it is given once, unless it fails. None: there is none now."""
        waiting = self._waiting[source]
        while waiting:
            piece = heappop(waiting)
            self._stands.discard((source, piece))
            if piece not in self.here and self._sources[piece] == source:
                return piece
        return None

    def arrived(self, piece: int) -> None:
        """Note that a piece is here."""
        self.here.add(piece)
        self._lost.discard(piece)

    def failed(self, piece: int) -> None:
        """Have a piece asked for again that did not come, of the same source if that is still there."""
        if piece not in self.here:
            self._sources.pop(piece, None)
            self._place(piece)

    def gave_up(self, node: str) -> None:
        """Ask a neighbour no more: others stand in for it."""
        self._gone.add(node)
        self._place_all_of(node)

    def cut(self, nodes: Collection[str]) -> None:
        """Note that nodes have no way to the origin: they are asked no more for what they do not have."""
        for node in set(nodes) - self._cut:
            self._cut.add(node)
            self._place_all_of(node)

    def held_by(self, node: str, pieces: Iterable[int]) -> None:
        """Note that a neighbour has pieces, which then come from there and not from the origin."""
        for piece in pieces:
            if 0 <= piece < self._count:
                self._holders[piece].add(node)
                if piece not in self.here:
                    self._place(piece)

    def _place_all_of(self, node: str) -> None:
        for piece in self.missing():
            if self._sources.get(piece) == node:
                self._place(piece)

    def _place(self, piece: int) -> None:
        source = self._chosen(piece)
        if source is not None and source == self._sources.get(piece):
            return
        self._sources[piece] = source
        if source is None:
            self._lost.add(piece)
            return
        self._lost.discard(piece)
        if (source, piece) not in self._stands:
            self._stands.add((source, piece))
            heappush(self._waiting[source], piece)

    def _chosen(self, piece: int) -> str | None:
        owner, holders = self._swarm.owner(piece), self._holders[piece] - self._gone
        if not holders and self._may_fetch(owner):
            return owner  # all others need an order of their own for each piece
        heirs = self._swarm.heirs(piece)
        of_holders = (node for node in heirs if node in holders)
        return next(of_holders, None) or next((node for node in heirs if self._may_fetch(node)), None)

    def _may_fetch(self, node: str) -> bool:
        return node not in self._gone and node not in self._cut
