"""Frames, times and cursors of Docker's logs."""

import itertools
import random
import struct

import pytest

from agent.runtimes.docker.log import Cursor, FrameParser, NotALogError, Resumption
from muster.domain.gangs.log import MAX_RECORD, LogRecord, Stream, parse_time

BASE = parse_time(b"2026-11-21T08:48:50.000000000Z")


def frame(text: bytes, time: bytes = b"2026-11-21T08:48:50.123456789Z", number: int = 1) -> bytes:
    body = time + b" " + text
    return struct.pack(">BxxxL", number, len(body)) + body


def parsed(*chunks: bytes) -> list[LogRecord]:
    parser = FrameParser(Stream.STDOUT)
    return list(itertools.chain.from_iterable(parser.feed(chunk) for chunk in chunks))


def record(offset: int, text: bytes = b"") -> LogRecord:
    return LogRecord(time_ns=BASE + offset, stream=Stream.STDOUT, text=text)


def new(resumption: Resumption, *offsets: int) -> list[int]:
    return [offset for offset in offsets if resumption.is_new(record(offset))]


def test_a_frame_is_a_record() -> None:
    assert parsed(frame(b"hello\n")) == [
        LogRecord(time_ns=BASE + 123_456_789, stream=Stream.STDOUT, text=b"hello", partial=False)
    ]


def test_records_do_not_depend_on_how_the_bytes_are_cut() -> None:
    body = b"".join(frame(b"x" * length + b"\n") for length in (0, 1, 7, 300, 5000))
    whole = parsed(body)
    dice = random.Random(4)
    for _ in range(50):
        cuts = sorted(dice.randrange(len(body)) for _ in range(dice.randrange(1, 9)))
        chunks = [body[start:end] for start, end in itertools.pairwise([0, *cuts, len(body)])]
        assert parsed(*chunks) == whole
    assert parsed(*(body[index : index + 1] for index in range(len(body)))) == whole


def test_the_pieces_of_a_long_line_belong_together() -> None:
    piece = b"x" * MAX_RECORD
    found = parsed(frame(piece), frame(piece), frame(b"end\n"), frame(b"next\n"))
    assert [(each.text, each.partial) for each in found] == [
        (piece, True),
        (piece, True),
        (b"end", False),
        (b"next", False),
    ]


def test_a_last_piece_ends_its_line_though_the_engine_forgot_the_line_end() -> None:
    assert [each.partial for each in parsed(frame(b"x" * MAX_RECORD), frame(b"end"), frame(b""))] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("time", "offset"),
    [
        (b"2026-11-21T08:48:50.123456789Z", 123_456_789),
        (b"2026-11-21T09:48:50.123456789+01:00", 123_456_789),
        (b"2026-11-21T03:18:50.000000001-05:30", 1),
        (b"2026-11-21T08:48:50.5Z", 500_000_000),
        (b"2026-11-21T08:48:50Z", 0),
    ],
)
def test_times_are_understood_in_every_zone(time: bytes, offset: int) -> None:
    assert [each.time_ns - BASE for each in parsed(frame(b"x\n", time))] == [offset]


@pytest.mark.parametrize("body", [frame(b"x\n", number=7), frame(b"x\n", time=b"yesterday"), b"<html>not a log"])
def test_what_is_no_log_is_refused(body: bytes) -> None:
    with pytest.raises(NotALogError):
        parsed(body)


def test_the_first_reading_asks_for_everything_and_takes_everything() -> None:
    resumption = Resumption(Cursor())
    assert resumption.cursor.since is None
    assert new(resumption, 1, 1, 2) == [1, 1, 2]
    assert not resumption.gap
    assert resumption.cursor == Cursor(BASE + 2, 1)


def test_the_next_reading_asks_from_the_last_record_on() -> None:
    assert Cursor(1_700_000_000_000_000_007, 1).since == "1700000000.000000007"


def test_the_next_reading_drops_what_was_seen() -> None:
    resumption = Resumption(Cursor(BASE + 5, 2))
    assert new(resumption, 5, 5, 5, 6) == [5, 6]
    assert not resumption.gap
    assert resumption.cursor == Cursor(BASE + 6, 1)


def test_a_reading_that_brings_nothing_new_leaves_the_cursor() -> None:
    resumption = Resumption(Cursor(BASE + 5, 2))
    assert new(resumption, 5, 5) == []
    assert resumption.cursor == Cursor(BASE + 5, 2)


def test_records_with_the_time_of_the_cursor_are_counted_on() -> None:
    resumption = Resumption(Cursor(BASE + 5, 2))
    assert new(resumption, 5, 5, 5) == [5]
    assert resumption.cursor == Cursor(BASE + 5, 3)


def test_a_deleted_file_shows_as_a_gap() -> None:
    resumption = Resumption(Cursor(BASE + 5, 1))
    assert new(resumption, 8, 9) == [8, 9]
    assert resumption.gap


def test_what_is_replayed_from_an_older_file_is_dropped() -> None:
    resumption = Resumption(Cursor(BASE + 5, 1))
    assert new(resumption, 3, 4, 5, 6) == [6]
    assert not resumption.gap


def test_a_clock_that_is_set_back_loses_nothing() -> None:
    resumption = Resumption(Cursor(BASE + 5, 1))
    assert new(resumption, 5, 6, 2, 3) == [6, 2, 3]


def test_any_number_of_crashes_brings_each_record_once() -> None:
    dice = random.Random(7)
    for _ in range(300):
        offsets = sorted(dice.randrange(20) for _ in range(40))
        printed = [record(offset, str(number).encode()) for number, offset in enumerate(offsets)]
        cursor, seen = Cursor(), list[LogRecord]()
        while len(seen) < len(printed):
            resumption = Resumption(cursor)
            served = [each for each in printed if each.time_ns >= cursor.time_ns]
            for each in served[: dice.randrange(1, len(served) + 1)]:
                if resumption.is_new(each):
                    seen.append(each)
            cursor = resumption.cursor
        assert seen == printed
