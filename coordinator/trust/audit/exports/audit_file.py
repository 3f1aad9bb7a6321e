"""The audit log as a file of JSON lines, whole lines only, each entry once."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from muster.domain.fleet.access import AuditEntry
from muster.domain.fleet.audit_chain import AuditLineError, entry_of, line_of

_TAIL = 64 << 10
"""Bytes at the end of the file that are looked at for the last line; no line is longer."""


class AuditFile:
    """A file that is added to; one that was moved away, as by logrotate, is made anew."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    @property
    def name(self) -> str:
        """What it is called in messages and in the note on how far it is."""
        return str(self._path)

    def written(self) -> int | None:
        """The number of the last entry in it; None: it has none. A line that a crash cut short is removed."""
        handle = self._opened()
        size = os.fstat(handle).st_size
        start = max(0, size - _TAIL)
        lines = os.pread(handle, size - start, start).splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            os.ftruncate(handle, size - len(lines.pop()))
        with suppress(AuditLineError, UnicodeDecodeError):
            return entry_of(lines[-1].decode()).number if lines else None
        return None

    def write(self, entries: Sequence[AuditEntry]) -> None:
        """Add entries, all or none, and have them on the disk; raises OSError."""
        handle, data = self._opened(), "".join(f"{line_of(entry)}\n" for entry in entries).encode("ascii")
        size = os.fstat(handle).st_size
        try:
            done = 0
            while done < len(data):
                done += os.write(handle, data[done:])
            os.fdatasync(handle)
        except OSError:
            with suppress(OSError):
                os.ftruncate(handle, size)
            raise

    def close(self) -> None:
        """Let go of the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _opened(self) -> int:
        """The file of that name as it is now."""
        if self._handle is not None and not self._is_there(self._handle):
            self.close()
        if self._handle is None:
            self._handle = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._handle

    def _is_there(self, handle: int) -> bool:
        mine = os.fstat(handle)
        try:
            named = self._path.stat()
        except FileNotFoundError:
            return False
        return (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino)
