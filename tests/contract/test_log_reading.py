"""How the store of logs finds and returns records."""

import os
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.store.logs.file import LOOK_BACK_BYTES, MAX_BATCH, StoredLogFile
from coordinator.store.logs.logs import MAX_LAST_LINE, LogStore
from muster.domain.gangs.log import MAX_RECORD, LogRecord, Stream
from tests.contract.log_records import START, START_NS, TEN, E, chunk, record, texts


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogStore]:
    store = LogStore(tmp_path / "logs")
    yield store
    store.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "a" / "1-0.cri"


def test_reading_goes_on_where_the_last_batch_ended(logs: LogStore) -> None:
    logs.append(E, 0, chunk(*TEN[:7]))
    first = logs.read(E, limit=4)
    second = logs.read(E, offset=first.next_offset, limit=4)
    none = logs.read(E, offset=second.next_offset)
    logs.append(E, logs.size(E), chunk(*TEN[7:]))
    logs.finish(E)
    last = logs.read(E, offset=none.next_offset)

    assert [first.records, second.records, none.records, last.records] == [
        tuple(TEN[:4]),
        tuple(TEN[4:7]),
        (),
        tuple(TEN[7:]),
    ]
    assert [each.at_end for each in (first, second, none, last)] == [False, False, False, True]


def test_one_batch_is_bounded_in_bytes(logs: LogStore) -> None:
    long = [record(number, "x" * MAX_RECORD, partial=True) for number in range(100)]
    logs.append(E, 0, chunk(*long))

    batch = logs.read(E)
    seen = list(batch.records)
    assert batch.next_offset <= MAX_BATCH
    while batch.records:
        batch = logs.read(E, offset=batch.next_offset)
        seen += batch.records
    assert seen == long


def test_damage_in_the_middle_hides_only_itself_and_leaves_a_mark(logs: LogStore, file: Path) -> None:
    logs.append(E, 0, chunk(*TEN))
    damaged = bytearray(file.read_bytes())
    fourth = len(chunk(*TEN[:3]))
    damaged[fourth : fourth + 5] = bytes(5)
    file.write_bytes(damaged)

    found = texts(logs.read(E))
    mark = "[muster] 1 line is damaged on the coordinator's disk and cannot be shown here"
    assert found == ["line 0", "line 1", "line 2", mark, *(f"line {number}" for number in range(4, 10))]


def test_a_log_of_nothing_but_damage_is_a_mark(logs: LogStore, file: Path) -> None:
    logs.append(E, 0, chunk(*TEN))
    file.write_bytes(b"\0" * 40 + b"\n" + b"\0" * 40 + b"\n")

    assert texts(logs.read(E)) == ["[muster] 2 lines are damaged on the coordinator's disk and cannot be shown here"]


def test_lines_since_a_time(logs: LogStore) -> None:
    logs.append(E, 0, chunk(*(record(number) for number in range(5000))))

    for second in (-5, 0, 1, 2499, 4999):
        batch = logs.read(E, since=START + timedelta(seconds=second), limit=1)
        while not batch.records:
            batch = logs.read(E, since=START + timedelta(seconds=second), offset=batch.next_offset, limit=1)
        assert texts(batch) == [f"line {max(second, 0)}"]
    assert texts(logs.read(E, since=START + timedelta(seconds=4999, microseconds=1))) == []


def test_lines_that_are_a_little_out_of_order_are_found(logs: LogStore) -> None:
    times = [0, 10, 20, 19.5, 20.4, 19.9, 20.5, 30]
    printed = [
        LogRecord(time_ns=START_NS + int(time * 10**9), stream=Stream.STDERR, text=str(time).encode()) for time in times
    ]
    logs.append(E, 0, chunk(*printed))

    batch = logs.read(E, since=START + timedelta(seconds=20))

    assert texts(batch) == ["20", "20.4", "20.5", "30"]


@pytest.mark.parametrize("count", [0, 1, 3, 10, 11])
def test_the_last_lines(logs: LogStore, count: int) -> None:
    logs.append(E, 0, chunk(*TEN))

    expected = [f"line {number}" for number in range(10)][10 - min(count, 10) :]
    assert texts(logs.read(E, tail=count)) == expected
    assert logs.last_lines(E, count) == tuple(expected)


def test_the_last_lines_of_those_since_a_time(logs: LogStore) -> None:
    logs.append(E, 0, chunk(*TEN))

    assert texts(logs.read(E, tail=3, since=START)) == ["line 7", "line 8", "line 9"]
    assert texts(logs.read(E, tail=9, since=START + timedelta(seconds=8))) == ["line 8", "line 9"]


def test_a_line_in_pieces_counts_as_one(logs: LogStore) -> None:
    logs.append(
        E,
        0,
        chunk(
            record(0, "first"),
            record(1, "a", partial=True),
            record(2, "b", partial=True),
            record(3, "c"),
            record(4, "last"),
        ),
    )

    assert texts(logs.read(E, tail=2)) == ["a", "b", "c", "last"]
    assert logs.last_lines(E, 2) == ("abc", "last")


def test_a_line_that_is_still_printed_counts_as_one(logs: LogStore) -> None:
    logs.append(E, 0, chunk(*TEN, record(10, "10 %", partial=True), record(11, " 20 %", partial=True)))

    assert texts(logs.read(E, tail=2)) == ["line 9", "10 %", " 20 %"]
    assert logs.last_lines(E, 2) == ("line 9", "10 % 20 %")


def test_pieces_of_both_streams_are_joined_apart(logs: LogStore) -> None:
    out, err = Stream.STDOUT, Stream.STDERR
    logs.append(
        E,
        0,
        chunk(
            record(0, "o1 ", partial=True, stream=out),
            record(0, "e1 ", partial=True, stream=err),
            record(0, "o2", stream=out),
            record(0, "e2", stream=err),
        ),
    )

    assert logs.last_lines(E, 9) == ("o1 o2", "e1 e2")


def test_last_lines_are_text_and_never_very_long(logs: LogStore) -> None:
    pieces = [record(0, "x" * MAX_RECORD, partial=True)] * 100
    broken = LogRecord(time_ns=START_NS, stream=Stream.STDOUT, text=b"caf\xe9")
    logs.append(E, 0, chunk(*pieces, record(1, "x"), broken))

    assert logs.last_lines(E, 2) == ("x" * MAX_LAST_LINE, "caf\ufffd")


def test_the_last_lines_of_a_large_file_are_found_without_reading_it(logs: LogStore, file: Path) -> None:
    logs.append(E, 0, chunk(*TEN))
    many = chunk(*(record(number, "x" * 100) for number in range(10, 5010)))
    with file.open("ab") as large:
        for _ in range(100):
            large.write(many)
        large.write(chunk(*(record(5010 + number) for number in range(10))))

    before = bytes_read()
    assert logs.last_lines(E, 3) == ("line 5017", "line 5018", "line 5019")
    assert texts(logs.read(E, since=START + timedelta(seconds=5019))) == ["line 5019"]
    used = bytes_read() - before

    assert file.stat().st_size > 70_000_000
    assert used < 1_000_000


def bytes_read() -> int:
    """Bytes that this process has read, from anywhere, since it began."""
    found = re.search(r"rchar: (\d+)", Path("/proc/self/io").read_text())
    assert found is not None
    return int(found[1])


def naive_tail(records: Sequence[LogRecord], count: int) -> int:
    """How many records the last lines have, found from the front."""
    ends = [
        number
        for number, each in enumerate(records)
        if not each.partial or all(other.stream != each.stream for other in records[number + 1 :])
    ]
    if count >= len(ends):
        return len(records)
    return len(records) - 1 - ends[-count - 1]


@given(
    lengths=st.lists(
        st.tuples(
            st.sampled_from([0, 1, 30, LOOK_BACK_BYTES // 5, MAX_RECORD]), st.booleans(), st.sampled_from(Stream)
        ),
        max_size=14,
    ),
    count=st.integers(0, 15),
)
def test_looking_backwards_finds_what_looking_forwards_finds(
    tmp_path_factory: pytest.TempPathFactory,
    lengths: list[tuple[int, bool, Stream]],
    count: int,
) -> None:
    records = [
        record(number, "x" * length, partial=partial, stream=stream)
        for number, (length, partial, stream) in enumerate(lengths)
    ]
    data = chunk(*records)
    path = tmp_path_factory.getbasetemp() / "backwards.cri"
    path.write_bytes(data)
    fd = os.open(path, os.O_RDONLY)
    try:
        log = StoredLogFile.of(fd)
        assert log.tail(count) == len(data) - len(chunk(*records[len(records) - naive_tail(records, count) :]))
        for number, each in enumerate(records):
            assert log.at_time(each.time_ns) == len(chunk(*records[:number]))
            assert log.at_time(each.time_ns + 1) == len(chunk(*records[: number + 1]))
    finally:
        os.close(fd)
