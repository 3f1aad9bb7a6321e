"""What a terminal is shown of text from others."""

import json
import sys
import unicodedata

import pytest

from muster.domain.visible_text import hidden_in, visible, visible_json, visible_line
from tests.hostile_text import FORGED, HOSTILE, harm_in

SHOWN_MARKS = frozenset(map(chr, (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD)))
"""Signs of Arabic, Syriac and Kaithi that are counted as format characters and can be seen."""
HIEROGLYPHS = range(0x13430, 0x13440)
"""Arrange hieroglyphs, and nothing else."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202eevil", r"\u202eevil"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("tag \U000e0041", r"tag \U000e0041"),
        ("half \ud800", r"half \ud800"),
        ("byte \udc9b", r"byte \x9b"),
    ],
)
def test_a_character_that_acts_or_hides_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert hidden_in(text) is not None


@pytest.mark.parametrize("text", ["", "plain", r"C:\x1b", "é 日本 שלום 🙂 \xa0\u3000", "[red]markup[/red]"])
def test_what_can_be_seen_stays_as_it_is(text: str) -> None:
    assert visible(text) == text
    assert hidden_in(text) is None


def test_where_several_lines_have_a_place_their_ends_and_tabs_stay() -> None:
    assert visible("a\n\tb\r\x1b", lines=True) == "a\n\tb\\r\\x1b"


def test_what_is_visible_does_not_change_when_it_passes_again() -> None:
    once = visible(HOSTILE + FORGED)

    assert visible(once) == once
    assert harm_in(once) == []


def test_every_control_format_and_surrogate_character_is_shown_as_an_escape() -> None:
    acting = [
        character
        for character in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        and character not in SHOWN_MARKS
        and ord(character) not in HIEROGLYPHS
    ]

    assert len(acting) > 2000
    assert [repr(each) for each in acting if hidden_in(each) is None or not visible(each).isascii()] == []


def test_no_letter_mark_or_sign_that_can_be_seen_is_taken_for_a_hidden_one() -> None:
    wrong = [
        repr(character)
        for character in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(character) in {"Nd", "Sm", "So", "Ll", "Lu", "Zs", "Po"} and hidden_in(character)
    ]

    assert wrong == []


def test_a_document_says_the_same_with_the_escapes_of_its_own() -> None:
    value = {"note": HOSTILE + FORGED, HOSTILE: [1, "é"]}
    shown = visible_json(json.dumps(value, indent=2, ensure_ascii=False))

    assert harm_in(shown) == []
    assert json.loads(shown) == value
    assert "é" in shown


def test_of_a_printed_line_bytes_that_are_no_text_are_shown_too() -> None:
    assert visible_line(b"\x1b[2J\ttab \x9b \xff \xc3\xa9") == "\\x1b[2J\ttab \\x9b \\xff é"
    assert visible_line(b"plain\x07") == r"plain\x07"
