"""How values that others wrote are repeated in sentences."""

from collections.abc import Callable, Iterable

from muster.domain.visible_text import visible

MOST_QUOTED = 60
"""Characters of a wrong value that are repeated in a message."""


def quote(text: str, most: int = MOST_QUOTED) -> str:
    """The value in quotation marks, on one line, every character visible, and cut with `…` after `most` characters."""
    import json  # noqa: PLC0415 - only when something is wrong

    return visible(json.dumps(text if len(text) <= most else text[: most - 1] + "…", ensure_ascii=False))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    import difflib  # noqa: PLC0415 - only when something is wrong

    return next(iter(difflib.get_close_matches(word, sorted(known), 1)), None)


def did_you_mean(word: str, known: Iterable[str], shown: Callable[[str], str] = str) -> str:
    """The end of a sentence about a word that nobody knows: `; did you mean gpu?`, or nothing.

    `shown` writes the known word as the sentence has it.
    """
    near = nearest(word, known)
    return "" if near is None else f"; did you mean {shown(near)}?"
