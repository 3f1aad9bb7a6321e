"""A difference begins once its sign has stayed, is told once, and ends once the sign has been away for longer."""

from datetime import UTC, datetime, timedelta

from muster.domain.telemetry.difference_book import ENDED_KEPT, Difference, DifferenceBook
from muster.domain.telemetry.differences import DifferenceKind, Sign

NINE = datetime(2026, 11, 27, 9, tzinfo=UTC)
WAITS = Sign(rank=3, kind=DifferenceKind.USAGE, what="watts", told="its GPUs draw 210 W")
SILENT = Sign(rank=3, kind=DifferenceKind.SILENT, told="it has printed no number since 08:50:00")
LOOKED_AT = {DifferenceKind.USAGE: {2, 3}, DifferenceKind.SILENT: {2, 3}}


def at(seconds: float) -> datetime:
    return NINE + timedelta(seconds=seconds)


def note(book: DifferenceBook, seconds: float, *signs: Sign) -> list[Difference]:
    return book.note(at(seconds), signs, LOOKED_AT)


def test_a_sign_is_a_difference_once_it_has_been_there_for_three_minutes_and_is_told_once() -> None:
    book = DifferenceBook()
    assert [begun for seconds in range(0, 180, 10) for begun in note(book, seconds, WAITS)] == []
    [begun] = note(book, 180, WAITS)
    assert begun == Difference(rank=3, kind=DifferenceKind.USAGE, what="watts", since=NINE, text=WAITS.told)
    assert note(book, 190, WAITS) == []
    assert list(book.told) == [begun]


def test_a_sign_that_goes_away_begins_anew() -> None:
    book = DifferenceBook()
    note(book, 0, WAITS)
    note(book, 170)
    assert note(book, 180, WAITS) == []
    assert list(book.told) == []


def test_what_is_not_known_neither_ends_a_sign_nor_lets_it_grow_old() -> None:
    book = DifferenceBook()
    for seconds in range(0, 130, 10):
        note(book, seconds, WAITS)
    book.note(at(150), [], {DifferenceKind.USAGE: {2}})
    assert note(book, 180, WAITS) != []

    book = DifferenceBook()
    note(book, 0, WAITS)
    assert note(book, 600, WAITS) == []


def test_it_ends_when_the_sign_was_away_for_six_minutes_and_says_when_it_was_seen_last() -> None:
    book = DifferenceBook()
    for seconds in range(0, 200, 10):
        note(book, seconds, WAITS)
    note(book, 540)
    assert [each.until for each in book.told] == [None]
    note(book, 550)
    assert [each.until for each in book.told] == [at(190)]
    assert note(book, 560, WAITS) == []


def test_signs_that_tell_of_a_long_time_count_at_once() -> None:
    book = DifferenceBook()
    assert [begun.kind for begun in note(book, 0, SILENT, WAITS)] == [DifferenceKind.SILENT]
    note(book, 361)
    assert [each.until for each in book.told] == [NINE]


def test_of_those_that_have_ended_the_last_are_kept() -> None:
    book = DifferenceBook()
    for number in range(ENDED_KEPT + 5):
        note(book, number * 1000, SILENT)
        note(book, number * 1000 + 400)
    assert len(list(book.told)) == ENDED_KEPT
    assert next(book.told).since == at(5000)
