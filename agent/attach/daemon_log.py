"""What Muster writes into the log of an execution about commands that others run there, and what daemons print."""

import time
from collections.abc import Sequence
from dataclasses import replace

from agent.logs.file import muster_note
from agent.logs.mask import Mask, MaskedSplitter
from agent.logs.spool import LogSpool
from muster.domain.gangs.log import LineSplitter, LogRecord, Stream
from muster.domain.visible_text import visible

LONGEST_WORDS_SHOWN = 200
"""Characters of a command that the log of an execution repeats."""


def tell_started(spool: LogSpool | None, mask: Mask, from_rank: int, words: Sequence[str]) -> None:
    """Say in the log of an execution that another one runs a command there."""
    shown = visible(mask.message(" ".join(words)))
    cut = shown if len(shown) <= LONGEST_WORDS_SHOWN else shown[:LONGEST_WORDS_SHOWN] + "…"
    if spool is not None:
        spool.append_beside((muster_note(f"rank {from_rank} started: {cut}"),))


class DaemonLog:
    """Takes what a command prints that goes on without its caller.

    Its lines are marked as not from user code's own program, as the runtime counts that program's lines.
    """

    def __init__(self, spool: LogSpool | None, mask: Mask) -> None:
        self._spool = spool
        self._splitters = {stream: MaskedSplitter(stream, mask) if mask else LineSplitter(stream) for stream in Stream}

    def take(self, stream: Stream, data: bytes) -> None:
        """Store the lines that are complete with these bytes."""
        self._store(self._splitters[stream].feed(data, time.time_ns()))

    def end(self) -> None:
        """Store what is left without a line end."""
        for splitter in self._splitters.values():
            self._store(splitter.flush(time.time_ns()))

    def _store(self, records: Sequence[LogRecord]) -> None:
        if records and self._spool is not None:
            self._spool.append_beside([replace(record, marker=True) for record in records])
