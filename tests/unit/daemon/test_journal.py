"""What the programs log of text from others."""

import logging

import pytest

from muster.daemon.journal import LONGEST_TEXT, FieldFormatter
from tests.hostile_text import FORGED, HOSTILE, harm_in


def told(message: str, *arguments: object, **fields: object) -> str:
    """A line of the journal, without the time."""
    record = logging.getLogger("test").makeRecord("test", logging.INFO, "f", 1, message, arguments, None, extra=fields)
    return FieldFormatter().format(record).partition(" ")[2]


def test_a_line_has_a_sentence_and_fields() -> None:
    assert told("execution moved", execution="j-1-0", to="running") == "info execution moved execution=j-1-0 to=running"


def test_text_from_others_cannot_begin_a_line() -> None:
    line = told(f"of a library: {HOSTILE}{FORGED}", node=f"a{HOSTILE}{FORGED}", cause=FORGED)

    assert harm_in(line) == []
    assert len(line.splitlines()) == 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a to=running", '"a to=running"'),
        ('a" to="b', r'"a\" to=\"b"'),
        ("a=b", '"a=b"'),
        ("", '""'),
        (r"a\ b", r'"a\\ b"'),
        (3, "3"),
    ],
)
def test_text_from_others_cannot_forge_a_field(value: object, shown: str) -> None:
    assert told("moved", node=value) == f"info moved node={shown}"


def test_a_field_is_cut_where_it_would_be_very_long() -> None:
    assert told("refused", cause="x" * (LONGEST_TEXT + 1)) == f"info refused cause={'x' * LONGEST_TEXT}…"


def test_no_line_of_a_traceback_looks_like_one_of_the_journal() -> None:
    error = ValueError(f"2026-01-01T00:00:00.000Z info forged{FORGED}2026-01-01T00:00:00.000Z{HOSTILE}")
    raised = (ValueError, error, None)
    record = logging.getLogger("test").makeRecord("test", logging.ERROR, "f", 1, "failed", (), raised)
    first, *below = FieldFormatter().format(record).splitlines()

    assert first.endswith("error failed")
    assert [line for line in below if not line.startswith("  ")] == []
    assert [line for line in below if harm_in(line.expandtabs())] == []
