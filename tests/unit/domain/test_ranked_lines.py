"""Lines of several commands at once are told apart."""

from hypothesis import given
from hypothesis import strategies as st

from muster.domain.attachments.ranked_lines import LONGEST_OPEN_LINE, RankedLines


def test_each_line_has_its_rank_before_it() -> None:
    lines = RankedLines(12)
    assert [
        lines.feed(b"a\nb"),
        lines.feed(b"c"),
        lines.feed(b"d\n\n"),
        lines.feed(b"e"),
        lines.end(),
        lines.end(),
    ] == [
        b"[12] a\n",
        b"",
        b"[12] bcd\n[12] \n",
        b"",
        b"[12] e\n",
        b"",
    ]


def test_a_line_without_an_end_is_not_kept_back_for_ever() -> None:
    lines = RankedLines(0)
    assert lines.feed(b"x" * LONGEST_OPEN_LINE) == b""
    assert lines.feed(b"y") == b"[0] " + b"x" * LONGEST_OPEN_LINE + b"y\n"
    assert lines.feed(b"z\n") == b"[0] z\n"


@given(st.lists(st.binary(max_size=20).map(lambda raw: raw.replace(b"\0", b"\n"))))
def test_however_output_is_cut_its_lines_are_the_same(pieces: list[bytes]) -> None:
    lines, together = RankedLines(3), b"".join(pieces)
    found = b"".join(lines.feed(piece) for piece in pieces) + lines.end()
    expected = together.removesuffix(b"\n").split(b"\n") if together else []
    assert found == b"".join(b"[3] " + line + b"\n" for line in expected)
