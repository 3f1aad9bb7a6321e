"""What is kept of a terminal: the end of what it has shown, from where a line begins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.door.kept_output import KEPT_OUTPUT, KeptOutput

MOST = 100
SLACK = 64 * 1024


def kept(*pieces: bytes, most: int = MOST) -> KeptOutput:
    """A terminal that has shown some pieces."""
    output = KeptOutput(most)
    for piece in pieces:
        output.add(piece)
    return output


def test_what_fits_is_shown_as_it_was() -> None:
    assert kept(b"one\n", b"t\xc3", b"\xa4wo").replay() == "one\ntäwo".encode()


def test_of_what_does_not_fit_the_last_whole_lines_are_shown() -> None:
    lines = [b"line %03d\n" % number for number in range(200)]
    assert kept(*lines).replay() == b"".join(lines[-11:])


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        (b"cut \x1b[31mred" + b"." * 89, b"\x1b[31mred" + b"." * 89),
        ("ä".encode() * 50 + b".", "ä".encode() * 49 + b"."),
        ("€".encode() * 33 + b"..", "€".encode() * 32 + b".."),
        (b"\x80" * 100, b""),
        (b"." * 100, b"." * 100),
    ],
    ids=["an escape sequence", "two bytes", "three bytes", "no characters at all", "plain"],
)
def test_without_a_line_it_begins_where_something_else_does(end: bytes, shown: bytes) -> None:
    assert kept(b"x" * 500, end).replay()[-len(shown) or MOST :] == shown
    assert len(kept(b"x" * 500, end).replay()) <= MOST


def test_after_a_replay_it_goes_on() -> None:
    output = kept(b"x" * 150 + b"\n", b"first\n")
    assert output.replay() == b"first\n"
    output.add(b"second\n")
    assert output.replay() == b"first\nsecond\n"


@given(st.lists(st.binary(max_size=60), max_size=30))
def test_a_replay_is_the_end_of_what_was_shown_and_not_longer_than_may_be(pieces: list[bytes]) -> None:
    whole, shown = b"".join(pieces), kept(*pieces).replay()
    assert whole.endswith(shown)
    assert len(shown) <= MOST
    if len(whole) <= MOST:
        assert shown == whole


def test_no_more_is_kept_than_may_be_however_much_is_shown() -> None:
    output = KeptOutput()
    for _ in range(300):
        output.add(b"." * (SLACK - 1) + b"\n")
    assert KEPT_OUTPUT - SLACK <= len(output.replay()) <= KEPT_OUTPUT
