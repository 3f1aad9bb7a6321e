"""Where the lines of a log begin that may be points: a file beside the log, `<attempt>-<rank>.points`.

Who asks for points has it brought up to date; nothing is done for it while logs come in, and nothing depends on it: a
file that is missing, damaged or of another log is made again from the log. Its head says how far the log was looked
through, so what was looked through is not looked at again. Then come 8 bytes for each line, in the order of the log.
"""

import fcntl
import os
import struct
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from sys import byteorder
from zlib import crc32

from coordinator.store.logs.file import MAX_BATCH, StoredLogFile
from muster.domain.telemetry.point import MAX_POINT

_MAGIC = b"MUPOINT1"
_FACTS = struct.Struct("<8sQQQ")  # magic, bytes looked through, entries, whether a line of stdout has only begun there
_HEAD = struct.Struct(f"<{_FACTS.size}sI")  # with a checksum
_ENTRY = 8
_DENSE = 4
"""One read of all entries between the first and the last costs less than one for each, where every fourth is wanted."""

_TIME = len("2026-11-21T08:48:50.123456789Z")
_WHOLE, _PIECE = b" stdout F ", b" stdout P"
_OBJECT = _WHOLE + b"{"
_TEXT = _TIME + len(_WHOLE)
"""Where the text of a whole line begins."""


class DamagedIndexError(Exception):
    """The index names a place where no line begins that may be a point."""


class PointIndex:
    """An open index of one log; nobody else changes it meanwhile."""

    def __init__(self, fd: int, log: StoredLogFile) -> None:
        self._fd = fd
        self._log = log
        self._looked_through, self._count, self._is_begun = self._head()

    def __len__(self) -> int:
        """Lines that may be points, as far as the log was looked through."""
        return self._count

    def update(self) -> None:
        """Look through what has come to the log since."""
        while self._looked_through < self._log.end:
            block = os.pread(self._log.fd, min(MAX_BATCH, self._log.end - self._looked_through), self._looked_through)
            block = block[: block.rfind(b"\n") + 1] or block  # a megabyte without a line end is damage
            begins, self._is_begun = _points_of(block, begun=self._is_begun)
            found = array("Q", [self._looked_through + begin for begin in begins])
            if byteorder == "big":
                found.byteswap()
            os.pwrite(self._fd, found.tobytes(), _HEAD.size + _ENTRY * self._count)
            self._count += len(found)
            self._looked_through += len(block)
        facts = _FACTS.pack(_MAGIC, self._looked_through, self._count, self._is_begun)
        os.pwrite(self._fd, _HEAD.pack(facts, crc32(facts)), 0)

    def offsets(self, places: Sequence[int]) -> Sequence[int]:
        """Where the lines at these places begin; the places must rise. Raises DamagedIndexError where these do not."""
        if not places:
            return ()
        first, last = places[0], places[-1]
        if last - first < _DENSE * len(places):
            every = self._entries(first, last + 1 - first)
            begins = [every[place - first] for place in places]
        else:
            begins = [self._entries(place, 1)[0] for place in places]
        if any(before >= after for before, after in pairwise(begins)):
            raise DamagedIndexError
        return begins

    def after(self, offset: int) -> int:
        """The place of the first line that begins behind an offset."""
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if self._entries(middle, 1)[0] > offset:
                high = middle
            else:
                low = middle + 1
        return low

    def line(self, offset: int) -> tuple[bytes, bytes]:
        """Time and text of the line that begins there; raises DamagedIndexError where none does that may be a point."""
        read = os.pread(self._log.fd, 512, offset)
        if (end := read.find(b"\n")) < 0:
            read = os.pread(self._log.fd, _TEXT + MAX_POINT + 1, offset)
            end = read.find(b"\n")
        if end < 0 or read[_TIME : _TEXT + 1] != _OBJECT:
            raise DamagedIndexError
        return read[:_TIME], read[_TEXT:end]

    def clear(self) -> None:
        """Forget everything, so that the log is looked through from its beginning."""
        os.ftruncate(self._fd, 0)
        self._looked_through, self._count, self._is_begun = 0, 0, False

    def _entries(self, first: int, count: int) -> Sequence[int]:
        read = os.pread(self._fd, _ENTRY * count, _HEAD.size + _ENTRY * first)
        if len(read) < _ENTRY * count:
            raise DamagedIndexError
        found = array("Q", read)
        if byteorder == "big":
            found.byteswap()
        return found

    def _head(self) -> tuple[int, int, bool]:
        head = os.pread(self._fd, _HEAD.size, 0)
        if len(head) == _HEAD.size:
            facts, checksum = _HEAD.unpack(head)
            magic, looked_through, count, begun = _FACTS.unpack(facts)
            if checksum == crc32(facts) and magic == _MAGIC and looked_through <= self._log.end:
                return looked_through, count, bool(begun)
        return 0, 0, False


@contextmanager
def open_index(path: Path, log: StoredLogFile) -> Iterator[PointIndex]:
    """The index of a log, up to date; raises FileNotFoundError where its job was dropped.

    Blocks while somebody else looks through the same log.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        index = PointIndex(fd, log)
        index.update()
        yield index
    finally:
        os.close(fd)


def _points_of(block: bytes, *, begun: bool) -> tuple[Sequence[int], bool]:
    """Where the lines of a block begin that may be points, and whether a line of stdout has only begun at its end."""
    if begun or _PIECE in block:
        return _among_pieces(block, begun=begun)
    begins: list[int] = []
    at = block.find(_OBJECT)
    while at >= 0:
        end = block.find(b"\n", at)
        if (at == _TIME or block[at - _TIME - 1 : at - _TIME] == b"\n") and _may_be_point(block[at:end]):
            begins.append(at - _TIME)
        at = block.find(_OBJECT, end)
    return begins, False


def _among_pieces(block: bytes, *, begun: bool) -> tuple[Sequence[int], bool]:
    """The same, where lines came in pieces: the end of a longer line is no line."""
    begins: list[int] = []
    at = 0
    for line in block.split(b"\n"):
        record = line[_TIME:]
        if record.startswith(_PIECE):
            begun = True
        elif record.startswith(_WHOLE) or record == _WHOLE[:-1]:
            if not begun and record.startswith(_OBJECT) and _may_be_point(record):
                begins.append(at)
            begun = False
        at += len(line) + 1
    return begins, begun


def _may_be_point(record: bytes) -> bool:
    """Whether a line ends like an object; `record` is what comes behind its time."""
    return len(record) <= len(_WHOLE) + MAX_POINT and record.rstrip().endswith(b"}")
