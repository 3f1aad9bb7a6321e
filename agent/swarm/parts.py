"""Contents while they come in pieces, in any order: each object is a file with holes until all of it is there.

PLACE/OBJECT   an object that is not whole yet
PLACE/have     pieces that are there, a line each, below a line that says since which start of the machine they count

What was written may not be on the disk where a machine lost its power. So pieces count only until it is started again.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from muster.domain.data.swarm import ContentPieces, ContentSpan
from muster.domain.data.tree import ContentObject

_READ = 1024 * 1024
_PRIVATE, _OWN = 0o600, 0o700
_SETTLED_AT_ONCE = 8
_WRITTEN = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class ContentParts:
    """The files of some contents below a directory of their own. Every call but `length` may block."""

    def __init__(
        self,
        place: Path,
        objects: Sequence[ContentObject],
        whole: Callable[[str], Path | None],
        hashes: Mapping[str, str] | None = None,
    ) -> None:
        """`whole` tells where an object is that is on the node already; None: it is not. Raises OSError.

        `hashes`: what objects must hold, as far as that is known; None: what their names say.
        """
        self._hashes = hashes
        self.pieces = ContentPieces(objects)
        self.place = place
        """The directory of their own, which is there as long as something is missing."""
        self._objects = [each for each in objects if each.size]
        self._whole: dict[str, Path] = {}
        for each in self._objects:
            if (path := whole(each.digest)) is not None:
                self._whole[each.digest] = path
        self.here = self._noted()
        """Pieces that are there."""

    @property
    def all_kept(self) -> bool:
        """Whether somebody on the node keeps all objects already."""
        return len(self._whole) == len(self._objects)

    def length(self, piece: int) -> int:
        """Bytes of a piece."""
        return self.pieces.length(piece)

    def write(self, piece: int, offset: int, data: bytes) -> None:
        """Take a part of a piece; raises OSError."""
        rest = memoryview(data)
        for span in self._within(piece, offset, len(data)):
            part, rest = rest[: span.length], rest[span.length :]
            if span.digest not in self._whole:
                self._write_at(span, part)

    def note(self, piece: int) -> None:
        """Have a piece count that is there as a whole; raises OSError."""
        with (self.place / "have").open("a", encoding="ascii") as file:
            file.write(f"{piece}\n")
        self.here.add(piece)

    def forget(self, pieces: Iterable[int]) -> None:
        """Have pieces count no more; raises OSError."""
        self.here -= set(pieces)
        self._note_all()

    def read(self, piece: int, offset: int, length: int) -> bytes:
        """A part of a piece that is there; raises OSError."""
        found = bytearray()
        for span in self._within(piece, offset, length):
            with self._file_of(span.digest).open("rb") as file:
                file.seek(span.offset)
                found += file.read(span.length)
        if len(found) != length:
            raise OSError("a file of the contents became shorter")
        return bytes(found)

    def sha256(self, digest: str) -> str:
        """The hash of an object all of which is there; raises OSError."""
        found = sha256()
        with self._file_of(digest).open("rb") as file:
            while data := file.read(_READ):
                found.update(data)
        return found.hexdigest()

    def path(self, digest: str) -> Path:
        """The file of an object that is not on the node otherwise."""
        return self.place / digest

    def wrong(self) -> list[str]:
        """Objects that came and do not hold what they must; raises OSError."""
        came = [each.digest for each in self._objects if each.digest not in self._whole]
        hashes = dict(zip(came, came, strict=True)) if self._hashes is None else self._hashes
        checked = [digest for digest in came if digest in hashes]
        with ThreadPoolExecutor(_SETTLED_AT_ONCE) as beside:
            found = beside.map(self.sha256, checked)
            return [digest for digest, hashed in zip(checked, found, strict=True) if hashed != hashes[digest]]

    def piece_hash(self, piece: int) -> str:
        """The hash of a piece that is there; raises OSError."""
        found, length = sha256(), self.length(piece)
        for offset in range(0, length, _READ):
            found.update(self.read(piece, offset, min(_READ, length - offset)))
        return found.hexdigest()

    def touched_by(self, digest: str) -> range:
        """The pieces in which parts of an object lie."""
        place = next(place for place, each in enumerate(self._objects) if each.digest == digest)
        return self.pieces.touched_by(place)

    def settle(self, keep: Callable[[str, Path], Path]) -> None:
        """Give all objects that came to the one who keeps them, who says where they are then; raises OSError."""
        came = [each.digest for each in self._objects if each.digest not in self._whole]
        with ThreadPoolExecutor(_SETTLED_AT_ONCE) as beside:
            places = beside.map(lambda digest: keep(digest, self.path(digest)), came)
            self._whole |= dict(zip(came, places, strict=True))
        shutil.rmtree(self.place, ignore_errors=True)

    def _within(self, piece: int, offset: int, length: int) -> Iterable[ContentSpan]:
        """The parts of objects that make up a part of a piece."""
        for span in self.pieces.spans(piece):
            begin, end = max(0, offset), min(span.length, offset + length)
            if begin < end:
                yield ContentSpan(digest=span.digest, offset=span.offset + begin, length=end - begin)
            offset -= span.length

    def _write_at(self, span: ContentSpan, data: memoryview) -> None:
        descriptor = os.open(self.path(span.digest), _WRITTEN, _PRIVATE)
        try:
            at = span.offset
            while data:
                written = os.pwrite(descriptor, data, at)
                data, at = data[written:], at + written
        finally:
            os.close(descriptor)

    def _file_of(self, digest: str) -> Path:
        return self._whole.get(digest) or self.path(digest)

    def _noted(self) -> set[int]:
        """Pieces that count: those that are noted since the machine was started, and those of objects that are here."""
        boot = _BOOT.read_text(encoding="ascii").strip()
        lines: list[str] = []
        with suppress(OSError, UnicodeDecodeError):
            lines = (self.place / "have").read_text(encoding="ascii").split("\n")
        noted: set[int] = set()
        if lines and lines[0] == boot:
            # The last line may be torn, and is empty otherwise.
            noted = {int(line) for line in lines[1:-1] if line.isdecimal() and int(line) < self.pieces.count}
        else:
            shutil.rmtree(self.place, ignore_errors=True)
        self.here = noted | {
            piece
            for piece in range(self.pieces.count)
            if all(span.digest in self._whole for span in self.pieces.spans(piece))
        }
        if len(self.here) < self.pieces.count:
            self.place.mkdir(mode=_OWN, parents=True, exist_ok=True)
            self._note_all()
        return self.here

    def _note_all(self) -> None:
        boot = _BOOT.read_text(encoding="ascii").strip()
        text = "".join(f"{piece}\n" for piece in sorted(self.here))
        fresh = self.place / "have.new"
        fresh.write_text(f"{boot}\n{text}", encoding="ascii")
        fresh.replace(self.place / "have")
