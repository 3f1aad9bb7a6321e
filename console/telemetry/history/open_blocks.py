"""Blocks of history that are still filled, in memory: what comes next of each node goes to the disk together."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from console.telemetry.history.grain import TEN_SECONDS

BLOCK_ITEMS = 12
"""Samples of one block on the disk."""
BLOCK_SPAN = timedelta(minutes=2)
"""The time after which a block goes to the disk, however few it has; so much is lost when a console is killed."""


class HistoryBlock(NamedTuple):
    """What is told of one thing within a short time."""

    of: str
    """The name of the thing."""
    begin: datetime
    items: Sequence[bytes]


class OpenBlocks:
    """The blocks that are not on the disk yet."""

    def __init__(self) -> None:
        self._open: dict[str, HistoryBlock] = {}
        self._closed: list[HistoryBlock] = []

    def take(self, of: str, at: datetime, item: bytes) -> None:
        """Have what is told of something at a time, which is not before that of the item before."""
        found = self._open.get(of)
        if found is not None and _is_over(found, at):
            self._closed.append(self._open.pop(of))
            found = None
        if found is None:
            found = self._open[of] = HistoryBlock(of, at, [])
        assert isinstance(found.items, list), "it is filled here alone"
        found.items.append(item)

    def closed(self, now: datetime) -> Sequence[HistoryBlock]:
        """The blocks that are complete; from now on they are not here any more."""
        for of in [of for of, block in self._open.items() if _is_over(block, now)]:
            self._closed.append(self._open.pop(of))
        closed, self._closed = self._closed, []
        return closed

    def all(self) -> Sequence[HistoryBlock]:
        """All blocks, complete or not; from now on they are not here any more."""
        closed = [*self._closed, *self._open.values()]
        self._open, self._closed = {}, []
        return closed

    def of(self, name: str) -> Iterator[bytes]:
        """What is here of something."""
        for block in (*self._closed, *(each for each in (self._open.get(name),) if each is not None)):
            if block.of == name:
                yield from block.items


def _is_over(block: HistoryBlock, now: datetime) -> bool:
    name = TEN_SECONDS.file_name
    return len(block.items) >= BLOCK_ITEMS or now - block.begin >= BLOCK_SPAN or name(now) != name(block.begin)
