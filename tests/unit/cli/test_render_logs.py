"""How log lines look."""

from muster.cli.output.logs import LineJoiner, LogStyle, log_bytes
from tests.unit.cli.values import line

TERMINAL = LogStyle(terminal=True, colour=True, prefix=False)


def test_a_line_says_who_printed_it_and_marks_stderr() -> None:
    assert log_bytes(line(b"hello", rank=3), LogStyle()) == b"[3] hello\n"
    assert log_bytes(line(b"oops", rank=3, stream="stderr"), LogStyle(width=2)) == b"[ 3]! oops\n"


def test_a_line_can_say_when_and_leave_out_who() -> None:
    style = LogStyle(prefix=False, timestamps=True)

    assert log_bytes(line(b"hello", seconds=1.25), style) == b"2026-11-21T09:30:01.250Z hello\n"


def test_every_rank_has_its_colour() -> None:
    style = LogStyle(colour=True)

    assert log_bytes(line(b"a", rank=0), style) == b"\x1b[36m[0]\x1b[0m a\n"
    assert log_bytes(line(b"b", rank=1), style) == b"\x1b[33m[1]\x1b[0m b\n"


def test_bytes_pass_into_a_file_as_they_are() -> None:
    raw = bytes(byte for byte in range(256) if byte != 10)

    assert log_bytes(line(raw), LogStyle(prefix=False)) == raw + b"\n"


def test_in_a_terminal_colours_work_but_nothing_else_does() -> None:
    assert log_bytes(line(b"\x1b[31mred\x1b[0m"), TERMINAL) == b"\x1b[31mred\x1b[0m\x1b[0m\n"
    assert log_bytes(line(b"\x1b]0;title\x07 \x1b[2J"), TERMINAL) == rb"\x1b]0;title\x07 \x1b[2J" + b"\n"
    assert log_bytes(line("tab\t, é, 日本 and \x9b2J".encode()), TERMINAL) == "tab\t, é, 日本 and \\x9b2J\n".encode()
    assert log_bytes(line(b"no UTF-8: \x9b2J \xff"), TERMINAL) == rb"no UTF-8: \x9b2J \xff" + b"\n"
    assert log_bytes(line("turned \u202e".encode()), TERMINAL) == rb"turned \u202e" + b"\n"


def test_without_colours_those_of_the_line_are_taken_away_too() -> None:
    plain = LogStyle(terminal=True, prefix=False)

    assert log_bytes(line(b"\x1b[1;31mred\x1b[0m"), plain) == b"red\n"


def test_of_a_progress_bar_the_last_state_is_shown() -> None:
    assert log_bytes(line(b" 10%\r 55%\r100%\r"), TERMINAL) == b"100%\n"


def test_pieces_of_a_line_are_joined_per_rank_and_stream() -> None:
    joiner = LineJoiner()

    assert joiner.add(line(b"one ", partial=True)) is None
    assert joiner.add(line(b"other", rank=1)) == line(b"other", rank=1)
    assert joiner.add(line(b"error", stream="stderr")) == line(b"error", stream="stderr")
    assert joiner.add(line(b"two", seconds=9)) == line(b"one two")
    assert list(joiner.rest()) == []


def test_a_line_whose_end_never_came_is_not_lost() -> None:
    joiner = LineJoiner()

    joiner.add(line(b"to be cont", partial=True))

    assert [piece.text for piece in joiner.rest()] == [b"to be cont"]


def test_an_endless_line_is_shown_in_pieces() -> None:
    joiner = LineJoiner()
    piece = line(b"x" * 2**19, partial=True)

    assert joiner.add(piece) is None
    whole = joiner.add(piece)

    assert whole is not None
    assert len(whole.text) == 2**20
