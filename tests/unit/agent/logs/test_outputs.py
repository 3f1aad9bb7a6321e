"""When a program's begun lines are stored."""

from agent.logs.mask import Mask, MaskedSplitter
from agent.logs.outputs import OPEN_LINE_PAUSE, Outputs
from muster.domain.gangs.log import LineSplitter, LogRecord, Stream

READER = 7


def outputs() -> Outputs:
    return Outputs({READER: LineSplitter(Stream.STDOUT)})


def record(text: bytes, *, partial: bool = False) -> LogRecord:
    return LogRecord(time_ns=1, stream=Stream.STDOUT, text=text, partial=partial)


def test_a_begun_line_is_stored_after_a_short_time() -> None:
    found = outputs()

    assert found.feed(READER, b" 10%\r", 1, now=0.0) == []
    assert found.due == OPEN_LINE_PAUSE
    assert found.pieces(1, now=OPEN_LINE_PAUSE / 2) == []
    assert found.pieces(1, now=OPEN_LINE_PAUSE) == [record(b" 10%\r", partial=True)]
    assert found.due is None


def test_many_redraws_of_a_bar_are_stored_together() -> None:
    found = outputs()
    for percent in range(10):
        found.feed(READER, b"%d%%\r" % percent, 1, now=percent / 100)

    [piece] = found.pieces(1, now=OPEN_LINE_PAUSE)

    assert piece.text == b"".join(b"%d%%\r" % percent for percent in range(10))


def test_a_line_that_ends_in_time_stays_whole() -> None:
    found = outputs()
    found.feed(READER, b"half", 1, now=0.0)

    assert found.feed(READER, b" and half\nnext", 1, now=0.1) == [record(b"half and half")]
    assert found.pieces(1, now=OPEN_LINE_PAUSE) == []  # the next line has begun later


def test_the_beginning_of_a_secret_waits_for_the_rest() -> None:
    found = Outputs({READER: MaskedSplitter(Stream.STDOUT, Mask((b"swordfish",)))})

    found.feed(READER, b"it is sword", 1, now=0.0)

    assert found.pieces(1, now=1.0) == [record(b"it is ", partial=True)]
    assert [each.text for each in found.feed(READER, b"fish\n", 1, now=1.1)] == [b"***"]
