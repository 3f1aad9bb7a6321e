"""Hashes of contents, XXH64 as the server of files has it; the only module that knows the library.

They find what was damaged or changed on the way; they are no proof against whoever wants to deceive.
"""

from dataclasses import dataclass

import xxhash

CHECKED_RANGE = 64 * 1024 * 1024
"""Bytes of a file that are compared at once, so that the end of a large one is not waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedRange:
    """What a part of a file holds."""

    size: int
    value: int


class ContentHash:
    """Takes a content in pieces."""

    def __init__(self) -> None:
        self._hash = xxhash.xxh64()
        self._size = 0

    def update(self, piece: bytes | memoryview) -> None:
        """Take the next piece."""
        self._hash.update(piece)
        self._size += len(piece)

    @property
    def size(self) -> int:
        """Bytes that were taken."""
        return self._size

    @property
    def so_far(self) -> HashedRange:
        """All that was taken."""
        return HashedRange(size=self._size, value=self._hash.intdigest())


class RangeHashes:
    """Hashes of a content, a range after the other."""

    def __init__(self) -> None:
        self._hash = ContentHash()
        self._start = 0

    def update(self, piece: bytes) -> list[tuple[int, HashedRange]]:
        """Take the next piece; ranges that are whole now, each with its place."""
        whole, rest = [], memoryview(piece)
        while rest:
            part = rest[: CHECKED_RANGE - self._hash.size]
            self._hash.update(part)
            rest = rest[len(part) :]
            if self._hash.size == CHECKED_RANGE:
                whole += self.last()
        return whole

    def last(self) -> list[tuple[int, HashedRange]]:
        """The range that is not whole, if there is one."""
        found = self._hash.so_far
        if not found.size:
            return []
        at, self._start, self._hash = self._start, self._start + found.size, ContentHash()
        return [(at, found)]
