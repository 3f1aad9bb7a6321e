"""How many lines of the journal others can cause, by times that are told."""

import logging

import pytest

from coordinator.rpc.journal_pace import (
    LINES_AT_ONCE,
    LINES_OF_ONE_AT_ONCE,
    LINES_OF_ONE_PER_MINUTE,
    LINES_PER_MINUTE,
    JournalPace,
    LeftOut,
    PacedLines,
)
from muster.daemon.rates import Rate

MINUTE, HOUR = 60.0, 3600
MALFORMED = "malformed message"
CUT_OFF = "a reader that does not read is cut off"
ROOT = logging.getLogger()


def pace(in_all: int = 3, of_one: int = 2) -> JournalPace:
    """Lines at once; after that one each second, whoever causes it."""
    return JournalPace(Rate(burst=in_all, per_second=1), Rate(burst=of_one, per_second=1))


def record(message: str, logger: str = "coordinator.rpc", **fields: str) -> logging.LogRecord:
    return ROOT.makeRecord(logger, logging.WARNING, "f", 1, message, (), None, extra=fields)


def test_one_address_gets_its_share_and_leaves_the_others_theirs() -> None:
    held = pace()
    assert [held.writes(MALFORMED, "a", 0.0) for _ in range(4)] == [True, True, False, False]
    assert [held.writes(MALFORMED, "b", 0.0) for _ in range(2)] == [True, False]
    assert held.left_out() == (LeftOut(sentence=MALFORMED, lines=3, addresses=2),)


def test_many_addresses_get_no_more_than_all_together_may() -> None:
    held = JournalPace()
    second = [held.writes(MALFORMED, f"place {number % 50}", at) for at in range(HOUR) for number in range(50)]
    assert LINES_AT_ONCE < sum(second) <= LINES_AT_ONCE + LINES_PER_MINUTE * 60
    assert held.left_out() == (LeftOut(sentence=MALFORMED, lines=50 * HOUR - sum(second), addresses=50),)


def test_one_address_alone_gets_little_of_what_all_may() -> None:
    held = JournalPace()
    written = sum(held.writes(MALFORMED, "a", at / 10) for at in range(10 * HOUR))
    assert LINES_OF_ONE_AT_ONCE < written <= LINES_OF_ONE_AT_ONCE + LINES_OF_ONE_PER_MINUTE * 60


def test_a_line_that_all_together_may_not_have_is_not_held_against_its_address() -> None:
    held = pace(in_all=1, of_one=1)
    assert held.writes(MALFORMED, "a", 0.0)
    assert not held.writes(MALFORMED, "b", 0.5)
    assert held.writes(MALFORMED, "b", 1.0)


def test_lines_with_one_sentence_do_not_hide_those_with_another() -> None:
    held = pace(in_all=1)
    assert held.writes(MALFORMED, "a", 0.0)
    assert not held.writes(MALFORMED, "a", 0.0)
    assert held.writes(CUT_OFF, "a", 0.0)


def test_what_was_told_is_not_told_again() -> None:
    held = pace(in_all=1)
    assert [held.writes(MALFORMED, place, 0.0) for place in "abcc"] == [True, False, False, False]
    assert held.left_out() == (LeftOut(sentence=MALFORMED, lines=3, addresses=2),)
    assert held.left_out() == ()
    assert held.writes(MALFORMED, "a", MINUTE)
    assert held.left_out() == ()


@pytest.mark.parametrize(
    ("lines", "written"),
    [
        ([record("node connected", node="a")] * 5, 5),
        ([record(MALFORMED, peer="ipv4:10.0.0.1:1"), record(MALFORMED, peer="ipv4:10.0.0.1:2")] * 3, 2),
        ([record(MALFORMED, peer=f"ipv4:10.0.0.{number}:1") for number in range(9)], 3),
        ([record(f"Unexpected error {number}", "grpc._cython.cygrpc") for number in range(9)], 2),
        ([record("Task exception was never retrieved", "asyncio")] * 9, 2),
        ([record("told", "grpcio")] * 9, 9),
    ],
    ids=["of nobody else", "of one address", "of many addresses", "of gRPC", "of asyncio", "of another library"],
)
def test_lines_that_others_cause_are_paced_and_no_others(lines: list[logging.LogRecord], written: int) -> None:
    paced = PacedLines(pace(), lambda: 0.0)
    assert sum(map(paced.filter, lines)) == written


def test_how_many_lines_were_left_out_is_told_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    paced = PacedLines(pace(), lambda: 0.0)
    for number in range(9):
        paced.filter(record(MALFORMED, peer=f"ipv4:10.0.0.{number}:1"))
    paced.tell()
    paced.tell()
    (told,) = map(vars, caplog.records)
    assert told["message"] == "more lines like this were left out"
    assert (told["like"], told["lines"], told["addresses"]) == (MALFORMED, 6, 6)
