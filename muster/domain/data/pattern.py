"""Names with wildcards: what they match, where a match lies below the directory of an input, and whose it is.

`*` and `?` stand for characters within a segment, `**` for any number of whole segments, also for none, but at the end
for at least one. A trailing `/` is `/**`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from muster.domain.errors import MusterError

LONGEST_PATTERN = 4096
"""Characters of a name with wildcards."""

_WHOLE_NAMES = "use `layout: full`, or two inputs with a directory of their own"
_TWO_INPUTS = "take two inputs with a directory of their own"
_WILDCARD = re.compile(r"[*?]")


class InputLayout(StrEnum):
    """Where files that a wildcard has found lie below the directory of their input."""

    TAIL = "tail"  #: what stands after the part of the name that has no wildcard
    FULL = "full"  #: the whole name
    FLAT = "flat"  #: the last segment alone


class NamePatternError(MusterError):
    """A name with wildcards cannot be used, or two files that it finds would lie in one place; says why."""


@dataclass(frozen=True, slots=True)
class NamePattern:
    """A name that may have wildcards; made by `name_pattern`."""

    text: str

    @property
    def has_wildcards(self) -> bool:
        """Whether it may stand for more than one name."""
        return _WILDCARD.search(self.text) is not None

    @property
    def fixed(self) -> str:
        """The part that all matches begin with, up to the last `/` before a wildcard, or the whole name."""
        wild = _WILDCARD.search(self.text)
        return self.text if wild is None else self.text[: self.text.rfind("/", 0, wild.start()) + 1]

    def matches(self, name: str) -> bool:
        """Whether a name is one that it stands for."""
        return _matches_segments(self.text, name)

    def place(self, name: str, layout: InputLayout) -> str:
        """Where a match lies, as a path below the directory of the input."""
        if layout is InputLayout.FULL:
            return name
        if layout is InputLayout.FLAT or not self.has_wildcards:
            return name.rpartition("/")[2]
        return name[len(self.fixed) :]


def name_pattern(text: str) -> NamePattern:
    """The pattern that a text writes down. Raises NamePatternError."""
    whole = f"{text}**" if text.endswith("/") else text
    if not whole or len(whole) > LONGEST_PATTERN:
        raise NamePatternError(f"a name has from 1 to {LONGEST_PATTERN} characters: {text[:80]!r}")
    for segment in whole.split("/"):
        if "**" in segment and segment != "**":
            raise NamePatternError(f"{text!r}: `**` stands for whole segments; write `**/*.pt` instead of `**.pt`")
    return NamePattern(whole)


def placed(found: Iterable[tuple[NamePattern, str]], layout: InputLayout) -> dict[str, str]:
    """Names by the path at which each lies, in the order of these paths.

    Raises NamePatternError where two of them would lie at one path, or one inside another.
    """
    return in_one_place(((pattern.place(name, layout), name) for pattern, name in found), _WHOLE_NAMES)


def in_one_place(found: Iterable[tuple[str, str]], remedy: str = _TWO_INPUTS) -> dict[str, str]:
    """Names by the path that stands beside each, in the order of these paths.

    Raises NamePatternError where two of them would lie at one path, or one inside another.
    """
    places: dict[str, str] = {}
    for place, name in found:
        if places.setdefault(place, name) != name:
            raise NamePatternError(_collision(places[place], name, place, remedy))
    for place, name in places.items():
        above = place.rpartition("/")[0]
        while above:
            if above in places:
                raise NamePatternError(_collision(places[above], name, above, _TWO_INPUTS))
            above = above.rpartition("/")[0]
    return {place: places[place] for place in sorted(places, key=str.encode)}


def split_among(names: Sequence[str], rank: int, ranks: int) -> tuple[str, ...]:
    """The names that one rank gets: the one at place i goes to rank i mod `ranks`, counted within the role."""
    return tuple(names[rank::ranks])


def _collision(first: str, second: str, place: str, remedy: str) -> str:
    return f"{first!r} and {second!r} would both lie at {place!r}; {remedy}"


def _matches_segments(pattern: str, name: str) -> bool:
    segments = pattern.split("/")
    if segments[-1] == "**":
        segments.append("*")  # at the end it stands for what lies below, which is at least one segment
    return _matches(segments, name.split("/"), "**", _matches_segment)


def _matches_segment(pattern: str, name: str) -> bool:
    return _matches(pattern, name, "*", lambda expected, found: expected in {"?", found})


def _matches(pattern: Sequence[str], found: Sequence[str], many: str, one: Callable[[str, str], bool]) -> bool:
    """Whether a sequence is what a pattern says, in which one element stands for any number of elements.

    Only the last such element is ever given more, as more for an earlier one finds nothing new. So the time is that of
    the product of both lengths, whatever the pattern.
    """
    at = place = 0
    again: tuple[int, int] | None = None
    while place < len(found):
        if at < len(pattern) and pattern[at] == many:
            at, again = at + 1, (at + 1, place)
        elif at < len(pattern) and one(pattern[at], found[place]):
            at, place = at + 1, place + 1
        elif again is not None:
            at, place = again[0], again[1] + 1
            again = (at, place)
        else:
            return False
    return all(each == many for each in pattern[at:])
