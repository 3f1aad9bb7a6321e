"""What a program prints, as records: whole lines at once, and the begun part of a line that stays open for a while."""

from collections.abc import Mapping, Sequence

from agent.logs.mask import MaskedSplitter
from muster.domain.gangs.log import LineSplitter, LogRecord

OPEN_LINE_PAUSE = 0.2
"""Seconds for which the begun part of a line waits for its end before it is stored as a piece, as for progress bars."""


class Outputs:
    """The open outputs of one program, by the descriptor at which they are read."""

    def __init__(self, splitters: Mapping[int, LineSplitter | MaskedSplitter]) -> None:
        self._splitters = dict(splitters)
        self._due: dict[int, float] = {}
        """When the begun part of a line is stored as a piece."""

    def __bool__(self) -> bool:
        return bool(self._splitters)

    @property
    def readers(self) -> tuple[int, ...]:
        """Descriptors of the outputs that are open."""
        return tuple(self._splitters)

    @property
    def due(self) -> float | None:
        """When `pieces` has something to give; None as long as nothing is printed."""
        return min(self._due.values(), default=None)

    def pause(self, now: float) -> float | None:
        """Milliseconds until then; None as long as nothing is printed."""
        return None if self.due is None else max(0.0, self.due - now) * 1000

    def feed(self, reader: int, data: bytes, time_ns: int, now: float) -> Sequence[LogRecord]:
        """The records that are complete with these bytes."""
        splitter = self._splitters[reader]
        records = splitter.feed(data, time_ns)
        if not splitter.is_open:
            self._due.pop(reader, None)
        elif records or reader not in self._due:
            self._due[reader] = now + OPEN_LINE_PAUSE
        return records

    def pieces(self, time_ns: int, now: float) -> Sequence[LogRecord]:
        """The begun parts of lines that have waited long enough for their ends."""
        ripe = [reader for reader, due in self._due.items() if due <= now]
        return [record for reader in ripe for record in self._piece(reader, time_ns)]

    def close(self, reader: int, time_ns: int) -> Sequence[LogRecord]:
        """What is left of an output that has ended."""
        self._due.pop(reader, None)
        return self._splitters.pop(reader).flush(time_ns)

    def _piece(self, reader: int, time_ns: int) -> Sequence[LogRecord]:
        del self._due[reader]
        return self._splitters[reader].piece(time_ns)
