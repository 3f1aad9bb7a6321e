"""Text from others, made harmless for a terminal: a character that acts or hides there is shown as an escape."""

import re
from functools import cache

_LINES = frozenset("\n\t")
_LONE_BYTE = re.compile(r"\\udc([89a-f][0-9a-f])")
"""How a lone surrogate is escaped that stands for a byte which is no UTF-8."""
_BEYOND_ASCII = (
    "\u0080-\u009f"  # C1: a terminal obeys them like ESC and a letter
    "\u00ad\u034f\u180b-\u180f\u200b-\u200f\u2060-\u206f\ufeff\ufff0-\ufffb"  # of no width
    "\u061c\u202a-\u202e"  # turn the direction of what follows
    "\u2028\u2029"  # ends of lines
    "\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # letters without a shape
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # shorthand, music, tags, selectors
    "\ud800-\udfff"
)


def visible(text: str, *, lines: bool = False) -> str:
    """The text with every character visible that would act on a terminal or hide there; `lines` keeps ends and tabs.

    What is visible already stays as it is, so that a text may pass here twice.
    """
    if text.isascii() and text.isprintable():
        return text
    return _hidden().sub(_kept_or_escaped if lines else _escaped, text)


def hidden_in(text: str) -> str | None:
    """The first character of a text that `visible` would not leave as it is."""
    if text.isascii() and text.isprintable():
        return None
    found = _hidden().search(text)
    return None if found is None else found[0]


def visible_json(text: str) -> str:
    """A JSON document whose texts have no hidden characters: JSON has escapes of its own for them."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _hidden().sub(_json_escaped, text)


def visible_line(line: bytes) -> str:
    """A line that a program printed, as text; bytes that are no UTF-8 are visible, too, and tabs stay."""
    if line.isascii():
        text = line.decode("ascii")
        return text if text.isprintable() else _hidden().sub(_tab_or_escaped, text)
    return _hidden().sub(_tab_or_escaped, line.decode(errors="surrogateescape"))


@cache
def _hidden() -> re.Pattern[str]:
    """What is not shown as it is; compiled when the first text is not plain."""
    return re.compile(f"[\x00-\x1f\x7f{_BEYOND_ASCII}]")


def _escaped(found: re.Match[str]) -> str:
    escape = found[0].encode("unicode_escape").decode()
    byte = _LONE_BYTE.fullmatch(escape)
    return escape if byte is None else f"\\x{byte[1]}"


def _kept_or_escaped(found: re.Match[str]) -> str:
    return found[0] if found[0] in _LINES else _escaped(found)


def _tab_or_escaped(found: re.Match[str]) -> str:
    return "\t" if found[0] == "\t" else _escaped(found)


def _json_escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character in _LINES:
        return character  # between the texts: inside them JSON has escaped these already
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
