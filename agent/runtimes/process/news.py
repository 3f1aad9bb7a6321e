"""What a supervisor makes known of its program: the record, and the bell that wakes the agent.

Used by supervisors: needs no event loop, and nothing but the standard library.
"""

import os
import time
from contextlib import suppress

from agent.executions.layout import BELL, GRACE
from agent.runtimes.process.record import RecordFile

NEWS_PAUSE = 1.0
"""Seconds between attempts to write down how a program ended, and what of its output was lost."""

LONGEST_GRACE = 64
"""Bytes of the file that says until when a stop lets the processes go on."""


class News:
    """What becomes known of a program: written down in its directory, and the agent woken."""

    def __init__(self, directory: str) -> None:
        self._grace = f"{directory}/{GRACE}"
        self._bell = Bell(directory)
        self.record = RecordFile(directory)

    def grace(self) -> float:
        """Seconds that are left of the grace of a stop."""
        try:
            descriptor = os.open(self._grace, os.O_RDONLY | os.O_CLOEXEC)
            try:
                return float(os.read(descriptor, LONGEST_GRACE)) - time.clock_gettime(time.CLOCK_BOOTTIME)
            finally:
                os.close(descriptor)
        except (OSError, ValueError):
            return 0.0

    def tell(self, **facts: object) -> None:
        """Write it down. Nobody else knows how a program ended, so a full disk only delays it."""
        while True:
            try:
                self.record.add(**facts)
            except FileNotFoundError:
                break  # the directory is gone
            except OSError:
                time.sleep(NEWS_PAUSE)
            else:
                break
        self.ring()

    def ring(self) -> None:
        """There is more in the log."""
        self._bell.ring()

    def close(self) -> None:
        """No more will become known."""
        self.record.close()
        self._bell.close()


class Bell:
    """Rung when there is something new for the agent; that nobody listens does no harm."""

    _BOTH = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC
    """Flags for opening the pipe, for reading too: one without a reader could neither be opened nor be written to."""

    def __init__(self, directory: str) -> None:
        path = f"{directory}/{BELL}"
        try:
            self._pipe = os.open(path, self._BOTH)
        except FileNotFoundError:  # it is there as a rule: directories are made before they are needed
            os.mkfifo(path, 0o600)
            self._pipe = os.open(path, self._BOTH)

    def ring(self) -> None:
        """Wake the agent. A full pipe will wake it as well."""
        with suppress(BlockingIOError):
            os.write(self._pipe, b".")

    def close(self) -> None:
        """Close the bell; listeners hear the end."""
        os.close(self._pipe)
