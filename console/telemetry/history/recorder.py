"""The recorder of history: hears what nodes use, keeps it on the disk within its limits, and reads it again."""

import asyncio
import fcntl
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from console.telemetry.history.bands import GangBands, bands_from_item, bands_to_item, joined_bands
from console.telemetry.history.grain import Grain, grain_for, width_for
from console.telemetry.history.open_blocks import HistoryBlock, OpenBlocks
from console.telemetry.history.rolling import rolled
from console.telemetry.history.store import HistoryStore
from muster.domain.errors import ConflictError, MusterError
from muster.domain.ids import AttemptId, NodeId
from muster.domain.telemetry.sample import NodeSample, Sample
from muster.wire.telemetry.samples import sample_from_bytes, sample_to_wire

log = logging.getLogger(__name__)

HISTORY_WRITTEN_EVERY = 10.0
"""Seconds between two looks for blocks that are complete."""
LONGEST_SAMPLE = timedelta(minutes=1)
"""The longest time that a sample is believed to tell of."""
HISTORY_READERS = 2
"""Questions about history that are read from the disk at once; others wait."""


_OF_GANGS = "gang/"
Told = TypeVar("Told")


@contextmanager
def held_history(state: Path, limit: int) -> Iterator[HistoryStore]:
    """The history in a state directory, of so many bytes, which no other console keeps; raises MusterError."""
    directory = state / "history"
    store = HistoryStore(directory, limit)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConflictError(f"another console keeps history in {directory}") from None
        yield store


class HistoryRecorder:
    """What nodes used, as long as it is kept."""

    def __init__(self, store: HistoryStore, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._store = store
        self._now = now
        self._open = OpenBlocks()
        self._writing: Sequence[HistoryBlock] = ()
        self._last: dict[NodeId, datetime] = {}
        """When the newest sample of a node ended, by the node's own clock."""
        self._readers = asyncio.Semaphore(HISTORY_READERS)
        self._said = ""
        self.dropped = 0
        """Samples and bands that the disk did not take."""

    async def run(self) -> None:
        """Keep what is heard until cancelled, whatever becomes of the disk."""
        try:
            while True:
                await asyncio.sleep(HISTORY_WRITTEN_EVERY)
                await self.write_now()
        finally:
            self._keep([*self._writing, *self._open.all()])

    def hear(self, batch: Sequence[NodeSample]) -> None:
        """Take in samples that are new; each counts at the time when it came, as clocks of nodes may be wrong."""
        now = self._now()
        for node, sample in batch:
            if self._last.get(node) != sample.at:
                self._last[node] = sample.at
                kept = replace(sample, at=now, span=min(sample.span, LONGEST_SAMPLE))
                self._open.take(_name_of(node), now, _item(kept))

    def hear_bands(self, attempt: AttemptId, bands: GangBands) -> None:
        """Take in what the ranks of a gang used."""
        self._open.take(_name_of_gang(attempt), bands.at, bands_to_item(bands))

    @property
    def size(self) -> int:
        """Bytes on the disk; it looks at every file."""
        return self._store.size

    async def samples(self, node: NodeId, since: datetime, until: datetime, most: int) -> Sequence[Sample]:
        """What a node used from a time to another, in the order of time, as at most so many samples."""
        width = width_for(until - since, most, grain_for(until - since, most))
        return await self._read(_name_of(node), since, until, most, lambda items: _within(items, since, until, width))

    async def bands(self, attempt: AttemptId, since: datetime, until: datetime, most: int) -> Sequence[GangBands]:
        """What the ranks of a gang used from a time to another, in the order of time, as at most so many bands."""
        width = width_for(until - since, most, grain_for(until - since, most))
        return await self._read(
            _name_of_gang(attempt), since, until, most, lambda items: _bands_within(items, since, until, width)
        )

    async def _read(
        self, name: str, since: datetime, until: datetime, most: int, made: Callable[[Sequence[bytes]], Sequence[Told]]
    ) -> Sequence[Told]:
        async with self._readers:
            stored = await asyncio.to_thread(self._store.read, name, since, until, grain_for(until - since, most))
            fresh = [item for block in self._writing if block.of == name for item in block.items]
            return await asyncio.to_thread(made, [*stored, *fresh, *self._open.of(name)])

    async def write_now(self) -> None:
        """Write what is complete, roll up what is, and remove what is too old or too much."""
        now = self._now()
        self._writing = self._open.closed(now)
        await asyncio.to_thread(self._keep, self._writing)
        self._writing = ()
        await asyncio.to_thread(self._tidy, now)

    def _keep(self, blocks: Sequence[HistoryBlock]) -> None:
        if not blocks:
            return
        try:
            self._store.write(blocks)
        except MusterError as error:
            self.dropped += sum(len(block.items) for block in blocks)
            self._complain(error)
        else:
            self._said = ""

    def _tidy(self, now: datetime) -> None:
        try:
            self._store.expire(now)  # first, as a full disk is to have room again
            self._store.roll_up(now, rolled_items)
        except MusterError as error:
            self._complain(error)

    def _complain(self, error: MusterError) -> None:
        if str(error) != self._said:
            log.error("the history loses samples", extra={"cause": str(error), "lost": self.dropped})
        self._said = str(error)


def rolled_items(of: str, items: Sequence[bytes], grain: Grain) -> Sequence[bytes]:
    """What the samples of a node, or the bands of a gang, come to in a coarser grain."""
    if of.startswith(_OF_GANGS):
        return [bands_to_item(each) for each in joined_bands(_bands(items), grain.span)]
    return [_item(sample) for sample in rolled(_samples(items), grain.span)]


def _within(items: Sequence[bytes], since: datetime, until: datetime, width: timedelta) -> Sequence[Sample]:
    found = {(sample.at, sample.span): sample for sample in _samples(items) if since <= sample.at <= until}
    return rolled(found.values(), width)


def _bands_within(items: Sequence[bytes], since: datetime, until: datetime, width: timedelta) -> Sequence[GangBands]:
    found = {(each.at, each.span): each for each in _bands(items) if since <= each.at <= until}
    return joined_bands(found.values(), width)


def _bands(items: Sequence[bytes]) -> Iterator[GangBands]:
    """Bands as they are kept; what is none is left out."""
    return (each for each in map(bands_from_item, items) if each is not None)


def _item(sample: Sample) -> bytes:
    return sample_to_wire(sample).SerializeToString()


def _samples(items: Sequence[bytes]) -> Iterator[Sample]:
    """Samples as they are kept; what is none is left out."""
    for item in items:
        try:
            yield sample_from_bytes(item)
        except MusterError:
            log.debug("something in the history is no sample")


def _name_of(node: NodeId) -> str:
    return f"node/{node}"


def _name_of_gang(attempt: AttemptId) -> str:
    return f"{_OF_GANGS}{attempt.job}/{attempt.number}"
