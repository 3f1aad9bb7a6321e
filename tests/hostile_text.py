"""Text that acts on a terminal or hides there, in every field of a value; and what may never reach a terminal."""

import unicodedata
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

HOSTILE = (
    "[red]a[/red][link=http://x]b[/link]:bomb:"
    "\x1b]0;title\x07\x1b[2J\x1b]52;c;aGk=\x1b\\\x9b31m\x90q\x9c\r\b\x7f\x00"
    "\u202eturned\u2066\u2069\u200e\u200f\u061c\u200b\u2060\ufeff\u3164\u2028\x85\udc9b\ud800\U000e0041"
)
"""Titles, erasures, the clipboard, turned directions, nothing to see, half a character."""
FORGED = "\nerror: forged\n\tid  name\n"
"""Lines that look like another's."""

_ACTING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BLANK = frozenset("\u3164\u115f\u1160\uffa0")

Value = TypeVar("Value")


def made_hostile(value: Value, text: str = HOSTILE + FORGED) -> Value:
    """The value with this in every text that it holds, however deep; what is told by an enumeration stays."""
    result: Any = value
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        result = value + text
    elif is_dataclass(value) and not isinstance(value, type):
        result = replace(value, **{each.name: made_hostile(getattr(value, each.name), text) for each in fields(value)})
    elif isinstance(value, tuple) and not hasattr(value, "_fields"):
        result = tuple(made_hostile(each, text) for each in value)
    elif isinstance(value, frozenset):
        result = frozenset(made_hostile(each, text) for each in value)
    elif isinstance(value, Mapping):
        result = {made_hostile(key, text): made_hostile(each, text) for key, each in value.items()}
    return result  # type: ignore[no-any-return]  # of the type of the value


def harm_in(shown: str) -> list[str]:
    """The characters of an output that act or hide; ends of lines do neither."""
    return [repr(each) for each in shown if each != "\n" and (unicodedata.category(each) in _ACTING or each in _BLANK)]
