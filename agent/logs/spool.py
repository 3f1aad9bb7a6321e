"""The log of one execution in the agent: the file, and who waits for more of it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from agent.logs.file import DEFAULT_LIMIT, LogFile
from muster.domain.gangs.log import LogRecord

FULL_DISK_PAUSE = 1.0
"""Seconds between attempts to say what was lost."""


class LogSpool(LogFile):
    """A log whose growth wakes the task that carries it away."""

    def __init__(self, path: Path, limit: int = DEFAULT_LIMIT) -> None:
        super().__init__(path, limit)
        self.grew = asyncio.Event()
        """Set by every append and by `finish`; who waits for it clears it before reading. Who waits for several logs at
        once puts one event in place of all of theirs."""
        self.finished = False
        """Whether no more records will come."""

    def append_all(self, records: Sequence[LogRecord]) -> None:
        """Store several records with one write."""
        super().append_all(records)
        self.grew.set()

    def append_beside(self, records: Sequence[LogRecord]) -> bool:
        """Store records while another process may append, too; whether there was space for them."""
        if self.finished or not super().append_beside(records):
            return False
        self.look()
        return True

    def look(self) -> bool:
        """Take in what another process has appended; whether there is anything new."""
        grown = super().look()
        if grown:
            self.grew.set()
        return grown

    async def end(self) -> None:
        """Do what `finish` does, once the log says all that was lost of it: on a full disk, when there is space for
        that.
        """
        while not self.settle():  # noqa: ASYNC110 - nobody tells when there is space
            await asyncio.sleep(FULL_DISK_PAUSE)
        self.finish()

    def finish(self) -> None:
        """No more records will come."""
        super().finish()
        self.finished = True
        self.grew.set()
