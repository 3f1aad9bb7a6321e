"""What somebody types to leave an attachment, and what the program gets of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cli.attaching.escapes import Escape, EscapeReader, Typed, escapes_explained


@pytest.mark.parametrize(
    ("typed", "passed", "escapes"),
    [
        (b"~.", b"", (Escape.LEAVE,)),
        (b"ls\r~.", b"ls\r", (Escape.LEAVE,)),
        (b"~?~.", b"", (Escape.EXPLAIN, Escape.LEAVE)),
        (b"ls ~.", b"ls ~.", ()),
        (b"~~.", b"~.", ()),
        (b"~/bin", b"~/bin", ()),
        (b"~\r~.", b"~\r", (Escape.LEAVE,)),
        (b"~.ls", b"", (Escape.LEAVE,)),
    ],
)
def test_an_escape_counts_at_the_beginning_of_a_line_alone(
    typed: bytes, passed: bytes, escapes: tuple[Escape, ...]
) -> None:
    assert EscapeReader().read(typed) == Typed(passed=passed, escapes=escapes)


@given(st.lists(st.sampled_from([b"~", b".", b"?", b"\r", b"\n", b"x"]).map(bytes), max_size=12), st.data())
def test_it_does_not_matter_in_which_pieces_it_is_typed(keys: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(keys)
    at = data.draw(st.integers(0, len(whole)))
    reader = EscapeReader()
    first = reader.read(whole[:at])
    second = Typed(passed=b"") if Escape.LEAVE in first.escapes else reader.read(whole[at:])
    together = Typed(passed=first.passed + second.passed, escapes=first.escapes + second.escapes)
    assert together == EscapeReader().read(whole)


def test_the_list_says_what_becomes_of_what_runs_there() -> None:
    assert escapes_explained(goes_on=True)[0] == "~.  leave; what runs there goes on"
    assert escapes_explained(goes_on=False)[0] == "~.  leave; what runs there hears that you have hung up"
