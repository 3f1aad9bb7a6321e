"""Pieces of a tree's contents, and which node of a swarm fetches each from the origin for all others.

The contents lie one after the other, so many small files are one piece. Every piece has one owner. Pieces are dealt out
in turn, in an order made from the names of tree and nodes, so all nodes know it without asking. Where an owner is gone,
the nodes that take its pieces over are another order for each piece: the share of one is spread over all.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, pairwise

from muster.domain.data.tree import ContentObject

MIB = 1024 * 1024
"""Bytes of a mebibyte."""

PIECE_SIZES = ((1024 * MIB, MIB), (64 * 1024 * MIB, 4 * MIB), (256 * 1024 * MIB, 16 * MIB))
"""Up to how many bytes of contents, pieces have how many bytes; beyond these they have LARGEST_PIECE."""

LARGEST_PIECE = 64 * MIB
"""Bytes of a piece of the largest contents."""

MOST_NEIGHBOURS = 32
"""Nodes that one node asks for pieces; a larger gang is several swarms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSpan:
    """A part of an object that belongs to a piece."""

    digest: str
    offset: int
    length: int


class ContentPieces:
    """The contents of a tree, cut into pieces of one size; the last one may be shorter."""

    def __init__(self, objects: Sequence[ContentObject]) -> None:
        self._objects = tuple(each for each in objects if each.size)
        self._ends = tuple(accumulate(each.size for each in self._objects))
        self.total = self._ends[-1] if self._ends else 0
        """Bytes of all contents."""
        self.size = piece_size(self.total)
        """Bytes of a piece."""
        self.count = -(-self.total // self.size)
        """Pieces."""

    def length(self, piece: int) -> int:
        """Bytes of one piece."""
        return min(self.size, self.total - piece * self.size)

    def spans(self, piece: int) -> Iterator[ContentSpan]:
        """The parts of objects that make up a piece, in order."""
        at, end = piece * self.size, min((piece + 1) * self.size, self.total)
        place = bisect_right(self._ends, at)
        while at < end:
            each = self._objects[place]
            offset = at - (self._ends[place] - each.size)
            length = min(end - at, each.size - offset)
            yield ContentSpan(digest=each.digest, offset=offset, length=length)
            at += length
            place += 1

    def touched_by(self, place: int) -> range:
        """The pieces in which parts of an object lie, by the place of the object among those that are not empty."""
        end = self._ends[place]
        return range((end - self._objects[place].size) // self.size, (end - 1) // self.size + 1)


class Swarm:
    """The nodes that want the same tree at the same time."""

    def __init__(self, tree: str, nodes: Sequence[str]) -> None:
        """`tree` names what is wanted, and `nodes` all that want it, whatever their order."""
        self._tree = tree
        self._dealt = sorted(set(nodes), key=lambda node: _rank(tree, node))

    def owner(self, piece: int) -> str:
        """The node that fetches a piece from the origin."""
        return self._dealt[piece % len(self._dealt)]

    def heirs(self, piece: int) -> tuple[str, ...]:
        """All nodes in the order in which they are asked for a piece, from its owner on."""
        owner = self.owner(piece)
        others = (node for node in self._dealt if node != owner)
        return (owner, *sorted(others, key=lambda node: _rank(f"{self._tree}\0{piece}", node)))

    def owned(self, node: str, pieces: int) -> range:
        """The pieces that a node owns, of so many."""
        return range(self._dealt.index(node), pieces, len(self._dealt))


def piece_size(total: int) -> int:
    """Bytes of a piece of contents with so many bytes in all."""
    return next((size for most, size in PIECE_SIZES if total <= most), LARGEST_PIECE)


def swarms_of(nodes: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The nodes of a gang as swarms of nearly the same size, neighbours by their order; each node is in one."""
    if not nodes:
        return ()
    count = -(-len(nodes) // (MOST_NEIGHBOURS + 1))
    bounds = [len(nodes) * each // count for each in range(count + 1)]
    return tuple(tuple(nodes[start:end]) for start, end in pairwise(bounds))


def _rank(about: str, node: str) -> bytes:
    return blake2b(f"{about}\0{node}".encode(), digest_size=16).digest()
