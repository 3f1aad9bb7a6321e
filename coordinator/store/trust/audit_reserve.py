"""Room that is kept for the audit log, so that it goes on for a while when the disk is full."""

import os
from contextlib import suppress
from pathlib import Path

from coordinator.store.held_room import hold_room

RESERVE_SIZE = 8 << 20
"""Bytes kept free for the audit log: about 20,000 entries."""
_SLICE = 512 << 10
"""Bytes given back at a time: whoever else fills the disk takes what is free, too."""


class AuditReserve:
    """A file that takes room on the disk until it is given back, slice by slice."""

    def __init__(self, file: Path, size: int = RESERVE_SIZE) -> None:
        self._file = file
        self._size = size
        self._left = 0
        self.hold()

    def release(self) -> bool:
        """Give a slice back to the disk; False: there is none left."""
        if self._left <= 0:
            return False
        self._left = max(0, self._left - _SLICE)
        with suppress(OSError):
            os.truncate(self._file, self._left)
            return True
        return False

    def hold(self) -> None:
        """Take the room again, if it is not taken and there is plenty."""
        if self._left >= self._size:
            return
        with suppress(OSError):
            if hold_room(self._file, self._size):
                self._left = self._size
