"""Lines of several commands at once: each with the rank before it that printed it."""

LONGEST_OPEN_LINE = 64 * 1024
"""Bytes of a line without an end that are kept back; then it is ended."""


class RankedLines:
    """Puts `[rank] ` before each line of one output."""

    def __init__(self, rank: int) -> None:
        self._prefix = f"[{rank}] ".encode()
        self._open = b""

    def feed(self, data: bytes) -> bytes:
        """The lines that are whole with these bytes."""
        *lines, self._open = (self._open + data).split(b"\n")
        whole = b"".join(self._prefix + line + b"\n" for line in lines)
        return whole + self.end() if len(self._open) > LONGEST_OPEN_LINE else whole

    def end(self) -> bytes:
        """What is left, as a line."""
        left, self._open = self._open, b""
        return self._prefix + left + b"\n" if left else b""
