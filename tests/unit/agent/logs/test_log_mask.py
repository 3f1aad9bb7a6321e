"""No value of a secret gets into a log, however what is printed is cut into pieces."""

import base64
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.logs.mask import LEAST, MASK, MASK_EVERYTHING, MASK_NOTHING, Mask, MaskedRecords, MaskedSplitter
from muster.domain.gangs.log import MAX_RECORD, LineSplitter, LogRecord, Stream

SECRETS = st.lists(st.text("ab\n", min_size=1, max_size=12).map(str.encode), min_size=1, max_size=4)
"""Secrets of two letters, so that they overlap, contain and continue each other."""
PRINTED = st.lists(st.one_of(st.text("ab", max_size=6).map(str.encode), SECRETS.map(b"".join)), max_size=8).map(
    b"".join
)
CUTS = st.lists(st.integers(0, 60), max_size=8)


def pieces(text: bytes, cuts: Sequence[int]) -> list[bytes]:
    marks = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    return [text[begin:end] for begin, end in pairwise(marks)]


def lines_of(secrets: Sequence[bytes]) -> set[bytes]:
    return {line for secret in secrets for line in secret.split(b"\n") if len(line) >= LEAST}


def records_of(text: bytes, cuts: Sequence[int]) -> list[LogRecord]:
    """Records as Docker gives them: pieces of lines."""
    return [
        LogRecord(time_ns=number, stream=Stream.STDOUT, text=piece, partial=last < len(cut))
        for number, line in enumerate(text.split(b"\n"))
        for cut in [pieces(line, cuts) or [b""]]
        for last, piece in enumerate(cut, start=1)
    ]


def joined(records: Sequence[LogRecord]) -> bytes:
    return b"".join(record.text + (b"" if record.partial else b"\n") for record in records)


def fed(splitter: MaskedSplitter | LineSplitter, chunks: Sequence[bytes]) -> list[LogRecord]:
    return [record for chunk in chunks for record in splitter.feed(chunk, 1)] + splitter.flush(1)


@given(SECRETS, PRINTED, CUTS)
def test_no_value_survives_in_a_stream_and_cuts_make_no_difference(
    secrets: list[bytes], printed: bytes, cuts: list[int]
) -> None:
    mask = Mask.of(secrets)
    found = fed(MaskedSplitter(Stream.STDOUT, mask), pieces(printed, cuts))
    assert found == fed(MaskedSplitter(Stream.STDOUT, mask), [printed])
    assert not [line for line in lines_of(secrets) if line in joined(found)]


@given(SECRETS, PRINTED, CUTS)
def test_no_value_survives_in_records_and_none_is_lost_or_longer(
    secrets: list[bytes], printed: bytes, cuts: list[int]
) -> None:
    mask, records = Mask.of(secrets), records_of(printed, cuts)
    masking = MaskedRecords(mask)
    found = [each for record in records for each in masking.feed(record, new=True)] + list(masking.flush())
    assert [replace(record, text=b"") for record in found] == [replace(record, text=b"") for record in records]
    assert joined(found) == b"".join(mask.masked(line) + b"\n" for line in printed.split(b"\n"))
    assert not [line for line in lines_of(secrets) if line in joined(found)]
    longest = max(map(len, mask.patterns), default=0)
    assert all(len(each.text) <= max(len(record.text), longest) for each, record in zip(found, records, strict=True))


@given(SECRETS, PRINTED, CUTS, st.integers(0, 30))
def test_an_agent_that_goes_on_in_the_middle_of_a_line_masks_the_same(
    secrets: list[bytes], printed: bytes, cuts: list[int], seen: int
) -> None:
    """Docker repeats the records of the line that was seen last."""
    mask, records = Mask.of(secrets), records_of(printed, cuts)
    masking = MaskedRecords(mask)
    whole = [each for record in records for each in masking.feed(record, new=True)] + list(masking.flush())
    seen = min(seen, len(records))
    first = seen
    while first and seen < len(records) and records[first - 1].time_ns == records[seen].time_ns:
        first -= 1
    again = MaskedRecords(mask)
    rest = [
        each
        for number, record in enumerate(records[first:], start=first)
        for each in again.feed(record, new=number >= seen)
    ] + list(again.flush())
    assert rest == whole[seen:]


def test_a_value_across_two_pieces_of_a_long_line_is_taken_out() -> None:
    text = b"x" * (MAX_RECORD - 3) + b"hunter2-hunter2" + b"y" * (MAX_RECORD - 12)
    records = [
        LogRecord(time_ns=1, stream=Stream.STDOUT, text=text[:MAX_RECORD], partial=True),
        LogRecord(time_ns=1, stream=Stream.STDOUT, text=text[MAX_RECORD:]),
    ]
    masking = MaskedRecords(Mask.of([b"hunter2-hunter2"]))
    found = [each for record in records for each in masking.feed(record, new=True)]
    assert joined(found) == b"x" * (MAX_RECORD - 3) + MASK + b"y" * (MAX_RECORD - 12) + b"\n"
    assert max(len(record.text) for record in found) <= MAX_RECORD


@pytest.mark.parametrize("before", [b"", b"u", b"us", b"ada:"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode, base64.encodebytes])
def test_what_base64_makes_of_a_value_is_taken_out(before: bytes, encode: object) -> None:
    value = bytes(range(200, 256)) + b"hunter2"
    assert callable(encode)
    text: bytes = encode(before + value + b":behind")
    if encode is base64.encodebytes and before:
        return  # where its lines are cut depends on what is before
    shown = Mask.of([value]).masked(text)
    assert MASK in shown
    core = base64.b64encode(before + value)[len(before) * 4 // 3 + 2 : -6]
    assert core[:20] not in shown.replace(b"-", b"+").replace(b"_", b"/")
    assert core[-20:] not in shown.replace(b"-", b"+").replace(b"_", b"/")


def test_a_long_value_is_taken_out_whole() -> None:
    value = base64.b64encode(bytes(range(256)) * 40)
    assert set(Mask.of([value]).masked(b"key=" + value + b";")[4:-1]) == {ord("*")}


def test_each_line_of_a_value_is_taken_out_and_short_ones_are_left() -> None:
    mask = Mask.of([b"-----BEGIN-----\r\n  QUJDREVG\r\nabc\r\n"])
    assert mask.masked(b"got QUJDREVG, abc and -----BEGIN-----") == b"got ***, abc and ***"


def test_a_message_is_masked_and_stays_text() -> None:
    assert Mask.of([b"hunter2"]).message("cannot open /x/hunter2: größer") == "cannot open /x/***: größer"
    assert MASK_NOTHING.message("\udcff") == "\udcff"


def test_where_nobody_knows_the_values_nothing_is_shown() -> None:
    masking = MaskedRecords(MASK_EVERYTHING)
    records = records_of(b"one\n\ntwo", [2])
    found = [each for record in records for each in masking.feed(record, new=True)] + list(masking.flush())
    assert [record.text for record in found] == [MASK, MASK, b"", MASK, MASK]
