"""The last of what a terminal has shown, for whoever comes back to it."""

KEPT_OUTPUT = 256 * 1024
"""Bytes that are kept of a terminal."""

_SLACK = 64 * 1024
"""Bytes beyond that before anything is dropped, so that not every piece moves all of them."""

_ESCAPE = b"\x1b"

_CONTINUATION = range(0x80, 0xC0)
"""Bytes of UTF-8 that begin no character."""


class KeptOutput:
    """Keeps the end of a stream of bytes."""

    def __init__(self, most: int = KEPT_OUTPUT) -> None:
        self._most = most
        self._data = bytearray()
        self._cut = False
        """Whether anything was dropped."""

    def add(self, data: bytes) -> None:
        """Take in what was shown."""
        self._data += data
        if len(self._data) > self._most + _SLACK:
            self._drop()

    def replay(self) -> bytes:
        """What to show again, beginning where a line or at least an escape sequence or a character does."""
        if len(self._data) > self._most:
            self._drop()
        return bytes(self._data[_beginning(self._data) :]) if self._cut else bytes(self._data)

    def _drop(self) -> None:
        self._cut = True
        del self._data[: -self._most]


def _beginning(data: bytearray) -> int:
    """Where the first line begins that is whole; without one where an escape sequence does, or else a character."""
    line = data.find(b"\n")
    if line >= 0:
        return line + 1
    sequence = data.find(_ESCAPE)
    if sequence >= 0:
        return sequence
    at = 0
    while at < len(data) and data[at] in _CONTINUATION:  # the rest of a character of UTF-8
        at += 1
    return at
