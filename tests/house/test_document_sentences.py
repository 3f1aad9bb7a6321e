"""Sentences of the documents are short: a tired reader understands them at once."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MOST_WORDS = 30
"""Words of the longest sentence; code in it counts as one word."""

_ITEM = re.compile(r"(?:[*+-]|\d+\.)\s+")
_END = re.compile(r"(?<=[.!?:])[)\"*_]*\s+(?=[\"(*_`A-Zx\d])")


def pages() -> list[Path]:
    """Pages that people write; those of decisions are kept as they were taken."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    return sorted(page for page in found if page.name != "CHANGELOG.md")


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """First line and text of each paragraph and each item of a list, without code, headings and tables."""
    number, words, is_code = 0, list[str](), False
    for place, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        fence = stripped.startswith("```")
        is_code ^= fence
        item = _ITEM.match(stripped)
        is_indented_code = line.startswith("    ") and not words
        breaks = (
            fence
            or is_code
            or is_indented_code
            or item is not None
            or not stripped
            or stripped.startswith(("#", "|", "<!--"))
        )
        if breaks and words:
            yield number, " ".join(words)
            words = []
        if item is not None and not is_code and not is_indented_code:
            stripped = stripped[item.end() :]
        elif breaks:
            continue
        number = number if words else place
        words.append(stripped)


def long_sentences(text: str) -> list[str]:
    """Sentences with more words than a reader keeps in mind."""
    return [
        f"{line}: {sentence}"
        for line, paragraph in paragraphs(text)
        for sentence in _END.split(_plain(paragraph))
        if len(sentence.split()) > MOST_WORDS
    ]


def _plain(paragraph: str) -> str:
    """The text without addresses of links, and with a word in place of code."""
    return re.sub(r"`[^`]*`", "x", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph))


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_no_sentence_of_a_page_is_too_long(page: Path) -> None:
    assert long_sentences(page.read_text()) == []


def test_a_long_sentence_is_found_and_code_is_not() -> None:
    long = " ".join(["word"] * 31) + "."

    assert [each.partition(":")[0] for each in long_sentences(f"Short.\n\n* Short. W{long}\n")] == ["3"]
    assert long_sentences(f"```\n{long}\n```\n\n| {long} |\n\n`{long}` is code.\n") == []
