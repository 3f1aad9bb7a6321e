"""Takes the values of secrets out of what an execution prints, wherever a reading of it happens to be cut.

What counts are values line by line, so that nothing that is looked for has a line end in it, and what `base64` makes
of them. Long ones are looked for in blocks. It needs no event loop: the supervisor of a process uses it, too.
"""

import binascii
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby

from muster.domain.gangs.log import LineSplitter, LogRecord, Stream

MASK = b"***"
"""Stands for what was taken out. Nothing shorter is looked for, so no text grows."""

LEAST = 4
"""Bytes; what is shorter is no secret, and would be found everywhere."""

MASK_BLOCK = 256
"""Bytes that are looked for at once."""

BASE64_LINE = 76
"""Characters in a line of `base64`."""

BASE64_LEAST = 8
"""Bytes of a value that is looked for in this form, too; of shorter ones too little can be told apart."""

BASE64_MOST = 4096
"""Bytes of a value that is looked for in this form, too."""

MOST_MASKED = 5000
"""Lines and blocks that can be looked for without holding up whoever prints."""

FEW = 500
"""Patterns that are quicker looked for one by one, in output that has none of them."""

ALIGNED_MOST = 256
"""Bytes of a value that is looked for in this form also behind something else, as in `user:password`."""


class Mask:
    """What is to be taken out."""

    def __init__(self, patterns: Iterable[bytes], *, everything: bool = False) -> None:
        self.patterns = tuple(sorted({pattern for pattern in patterns if len(pattern) >= LEAST}))
        self._everything = everything
        self._longest = max(map(len, self.patterns), default=0)

    @staticmethod
    def takes(values: Iterable[bytes]) -> bool:
        """Whether these values are not too many or too long."""
        return sum(value.count(b"\n") + len(value) // MASK_BLOCK + 1 for value in values) <= MOST_MASKED

    @classmethod
    def of(cls, values: Iterable[bytes]) -> "Mask":
        """A mask for these values in all their forms."""
        return cls(pattern for value in values for pattern in _patterns(value))

    def __bool__(self) -> bool:
        return self._everything or bool(self.patterns)

    def masked(self, text: bytes) -> bytes:
        """A whole text."""
        if self._everything:
            return MASK if text else text
        found, rest = self.split(text, last=True)
        return found + rest

    def message(self, text: str) -> str:
        """A sentence for people."""
        return self.masked(text.encode(errors="surrogateescape")).decode(errors="replace") if self else text

    def split(self, text: bytes, *, last: bool = False) -> tuple[bytes, bytes]:
        """The masked beginning, and an end as it is that may be the beginning of something; none after the `last`."""
        open_ends = [] if last else self._open_ends(text)
        few = len(self.patterns) <= FEW
        if not open_ends and few and not any(pattern in text for pattern in self.patterns):
            return text, b""
        pieces: list[bytes] = []
        done = 0
        while True:
            open_end = next((end for end in open_ends if end >= done), len(text))
            begin, end = self._find(text, done)
            if begin >= open_end:
                break
            pieces += (text[done:begin], MASK)
            done = end
        pieces.append(text[done:open_end])
        return b"".join(pieces), text[max(done, open_end) :]

    def _find(self, text: bytes, start: int) -> tuple[int, int]:
        """Where the first pattern begins and ends, the longest of several; the end of the text where there is none."""
        beginning, patterns = self._beginnings
        while found := beginning.search(text, start):
            start = found.start()
            for pattern in patterns[found.group()]:
                if text.startswith(pattern, start):
                    return start, start + len(pattern)
            start += 1
        return len(text), len(text)

    @cached_property
    def _beginnings(self) -> tuple[re.Pattern[bytes], Mapping[bytes, Sequence[bytes]]]:
        """Finds how patterns begin, and has those that begin so, the longest first."""
        patterns: dict[bytes, list[bytes]] = {}
        for pattern in sorted(self.patterns, key=len, reverse=True):
            patterns.setdefault(pattern[:LEAST], []).append(pattern)
        return re.compile(_any_of(sorted(patterns)) if patterns else b"(?!)"), patterns

    def _open_ends(self, text: bytes) -> list[int]:
        """Where something may begin that the text does not have whole."""
        first = max(len(text) - self._longest + 1, text.rfind(b"\n", max(0, len(text) - self._longest)) + 1, 0)
        return [start for start in range(first, len(text)) if self._goes_on(text[start:])]

    def _goes_on(self, beginning: bytes) -> bool:
        """Whether a pattern begins so, and is longer. They are sorted, so it comes next or not at all."""
        after = bisect_left(self.patterns, beginning)
        if after < len(self.patterns) and self.patterns[after] == beginning:
            after += 1
        return after < len(self.patterns) and self.patterns[after].startswith(beginning)


MASK_NOTHING = Mask(())
MASK_EVERYTHING = Mask((), everything=True)
"""The mask for output of an execution whose secrets nobody knows any more."""


class MaskedSplitter:
    """A LineSplitter for output that is masked before it is split."""

    def __init__(self, stream: Stream, mask: Mask) -> None:
        self._lines = LineSplitter(stream)
        self._mask = mask
        self._rest = b""

    def feed(self, chunk: bytes, time_ns: int) -> list[LogRecord]:
        """The records that are complete now."""
        masked, self._rest = self._mask.split(self._rest + chunk)
        return self._lines.feed(masked, time_ns)

    @property
    def is_open(self) -> bool:
        """Whether there is something of a line whose end has not come, and that no secret begins with."""
        return self._lines.is_open

    def piece(self, time_ns: int) -> list[LogRecord]:
        """What there is of the last line, without waiting for its end; what may be a secret's beginning stays here."""
        return self._lines.piece(time_ns)

    def flush(self, time_ns: int) -> list[LogRecord]:
        """What is left at the end of the stream."""
        masked, _ = self._mask.split(self._rest, last=True)
        self._rest = b""
        return [*self._lines.feed(masked, time_ns), *self._lines.flush(time_ns)]


class MaskedRecords:
    """Masks the records of one stream: as many as there are, in their order, and none gets longer.

    A piece of a long line whose end may be the beginning of something is held back until the next one is there.
    """

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._held: tuple[LogRecord, bool, int] | None = None
        """A record, whether it is new, and how many bytes its end lacks."""
        self._rest = b""
        """Bytes that wait for the rest of their line."""
        self._begun = False

    def of(self, found: Iterable[tuple[LogRecord, bool]]) -> list[LogRecord]:
        """The records that are known now, of new and old ones: readings begin with some that were read before."""
        masked: list[LogRecord] = []
        for record, new in found:
            self._begun |= new
            if new or not self._begun:
                masked += self.feed(record, new=new)
        return masked

    def feed(self, record: LogRecord, *, new: bool) -> Iterator[LogRecord]:
        """The records that are known now. Those that are not new only tell what comes before those that are."""
        if self._mask is MASK_EVERYTHING:
            masked, rest = self._mask.masked(record.text), b""
        else:
            masked, rest = self._mask.split(self._rest + record.text, last=not record.partial)
        if self._held is not None:
            before, wanted, lacking = self._held
            if wanted:
                yield replace(before, text=before.text + masked[:lacking])
            masked = masked[lacking:]
        self._held, self._rest = None, rest
        if rest:
            self._held = (replace(record, text=masked), new, len(rest))
        elif new:
            yield replace(record, text=masked)

    def flush(self) -> Iterator[LogRecord]:
        """What was held back, after the last record."""
        if self._held is not None and self._held[1]:
            yield replace(self._held[0], text=self._held[0].text + self._mask.masked(self._rest))
        self._held, self._rest = None, b""


def _any_of(texts: Sequence[bytes]) -> bytes:
    """An expression for sorted texts of one length, of which each byte is looked at once, however many they are."""
    if not texts[0]:
        return b""
    ways = [
        re.escape(first) + _any_of([text[1:] for text in same]) for first, same in groupby(texts, lambda text: text[:1])
    ]
    return ways[0] if len(ways) == 1 else b"(?:" + b"|".join(ways) + b")"


def _patterns(value: bytes) -> Iterator[bytes]:
    for line in value.split(b"\n"):
        yield from _blocks(line.strip())
    if BASE64_LEAST <= len(value) <= BASE64_MOST:
        yield from _in_base64(value)
        yield from _in_base64(value.rstrip(b"\r\n"))


def _in_base64(value: bytes) -> Iterator[bytes]:
    """Forms in both alphabets of base64; for small values also as they look in the middle of something."""
    for before in range(3 if len(value) <= ALIGNED_MOST else 1):
        text = binascii.b2a_base64(b"\0" * before + value, newline=False)
        begin = (0, 2, 3)[before]  # the characters before it are not the value's alone
        end = len(text) if (before + len(value)) % 3 == 0 else len(text) - 4 + (before + len(value)) % 3
        for alphabet in (text, text.translate(_URL_SAFE)):
            yield from (alphabet[start : min(end, start + BASE64_LINE)] for start in range(begin, end, BASE64_LINE))


def _blocks(text: bytes) -> Iterator[bytes]:
    """Pieces, a short rest with the last one."""
    while text:
        piece = text if len(text) < MASK_BLOCK + LEAST else text[:MASK_BLOCK]
        text = text[len(piece) :]
        yield piece


_URL_SAFE = bytes.maketrans(b"+/", b"-_")
