"""Slurm's short form of a list of names: `gpu-[0-2,5],login` for `gpu-0`, `gpu-1`, `gpu-2`, `gpu-5` and `login`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, product

_NUMBERED = re.compile(r"(?P<stem>[^][,]*?)(?P<digits>[0-9]{1,9})\Z", re.DOTALL)
"""A name that ends in a number; Slurm counts no further than nine digits."""


def compressed(names: Sequence[str]) -> str:
    """The short form of the names, in their order; neighbours that count up become one range."""
    return ",".join(_group(stem, list(digits)) for stem, digits in _by_stem(names))


def expanded(text: str) -> list[str]:
    """The names of a short form, in its order; raises ValueError for brackets that do not close."""
    return [name for item in _items(text) for name in _names(item)]


def _by_stem(names: Iterable[str]) -> Iterator[tuple[str, Iterable[str]]]:
    """Names that follow each other and differ in their numbers alone; a name without a number has no digits."""
    parts = (_NUMBERED.fullmatch(name) or name for name in names)
    pairs = ((part, "") if isinstance(part, str) else (part["stem"], part["digits"]) for part in parts)
    for (stem, numbered), group in groupby(pairs, lambda pair: (pair[0], bool(pair[1]))):
        if numbered:
            yield stem, (digits for _, digits in group)
        else:
            yield from ((stem, ("",)) for _ in group)


def _group(stem: str, digits: Sequence[str]) -> str:
    if len(digits) == 1:
        return f"{stem}{digits[0]}"
    runs: list[tuple[str, str]] = []
    for each in digits:
        first, last = runs[-1] if runs else ("", "")
        if last and _next(last, len(first)) == each:
            runs[-1] = (first, each)
        else:
            runs.append((each, each))
    return f"{stem}[{','.join(first if first == last else f'{first}-{last}' for first, last in runs)}]"


def _next(digits: str, width: int) -> str:
    """The number after this one in a range whose first number has so many digits."""
    return f"{int(digits) + 1:0{width}d}"


def _items(text: str) -> Iterator[str]:
    """The parts between commas that stand in no brackets."""
    item, inside = "", False
    for character in text:
        if character == "," and not inside:
            yield item
            item = ""
            continue
        if character in "[]":
            if inside is (character == "["):
                raise ValueError(f"brackets do not close in {text!r}")
            inside = not inside
        item += character
    if inside:
        raise ValueError(f"brackets do not close in {text!r}")
    if item:
        yield item


def _names(item: str) -> Iterator[str]:
    pieces = re.split(r"\[([^][]*)\]", item)
    choices = ([piece] if place % 2 == 0 else list(_numbers(piece)) for place, piece in enumerate(pieces))
    return map("".join, product(*choices))


def _numbers(ranges: str) -> Iterator[str]:
    for each in ranges.split(","):
        first, _, last = each.partition("-")
        for number in range(int(first), int(last or first) + 1):
            yield f"{number:0{len(first)}d}"
