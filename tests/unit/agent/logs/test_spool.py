import resource
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.logs.file import SPACE_FOR_WORDS
from agent.logs.lines import MAX_TAIL_LINE
from agent.logs.spool import LogSpool
from muster.domain.gangs.log import (
    MAX_RECORD,
    LineSplitter,
    LogRecord,
    Stream,
    format_record,
    parse_record,
    parse_records,
    parse_time,
)

NOON = 1_795_262_400_000_000_000

records = st.builds(
    LogRecord,
    time_ns=st.integers(0, 4_000_000_000_000_000_000),
    stream=st.sampled_from(Stream),
    text=st.binary(max_size=60).filter(lambda text: b"\n" not in text),
    partial=st.booleans(),
    marker=st.booleans(),
)


def out(text: bytes, time_ns: int = NOON, *, partial: bool = False) -> LogRecord:
    return LogRecord(time_ns=time_ns, stream=Stream.STDOUT, text=text, partial=partial)


def err(text: bytes, time_ns: int = NOON, *, partial: bool = False) -> LogRecord:
    return LogRecord(time_ns=time_ns, stream=Stream.STDERR, text=text, partial=partial)


def stored(spool: LogSpool) -> list[LogRecord]:
    return parse_records(spool.read(0, spool.size))


@contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    """No file may grow beyond `size` bytes, as on a disk that is nearly full."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def test_a_record_is_one_cri_line() -> None:
    assert format_record(out(b"hello  world ", NOON + 42)) == b"2026-11-21T12:00:00.000000042Z stdout F hello  world \n"
    assert format_record(err(b"half", partial=True)) == b"2026-11-21T12:00:00.000000000Z stderr P half\n"


@given(records)
def test_every_record_comes_back_from_its_line(record: LogRecord) -> None:
    assert parse_record(format_record(record)) == record


@given(st.lists(records))
def test_many_lines_come_back_as_many_records(several: list[LogRecord]) -> None:
    assert parse_records(b"".join(map(format_record, several))) == several


def test_a_text_with_a_line_end_is_refused() -> None:
    with pytest.raises(ValueError, match="split it with LineSplitter"):
        format_record(out(b"a\nb"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "is no time in UTC"),
        (b"hello", "is no time in UTC"),
        (b"2026-11-21T12:00:00Z stdout F x", "is no time in UTC"),
        (b"2026-13-21T12:00:00.000000000Z stdout F x", "does not match format"),
        (b"2026-11-21T12:00:00.000000000Z stdin F x", "'stdin' is neither stdout nor stderr"),
        (b"2026-11-21T12:00:00.000000000Z stdout X x", "'X' is neither F"),
        (b"2026-11-21T12:00:00.000000000Z stdout", "'' is neither F"),
    ],
)
def test_a_line_that_is_no_record_is_refused_with_the_reason(line: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_record(line)


def test_the_time_of_a_docker_frame_can_be_read() -> None:
    assert parse_time(b"2026-11-21T12:00:01.000000007Z") == NOON + 1_000_000_007


@given(st.binary(max_size=400), st.lists(st.integers(0, 400)))
def test_records_do_not_depend_on_how_output_was_cut(output: bytes, cuts: list[int]) -> None:
    output = output.replace(b"\1", b"\n").replace(b"\2", b"x" * (MAX_RECORD // 2))
    places = [0, *sorted(min(cut * len(output) // 400, len(output)) for cut in cuts), len(output)]
    splitter = LineSplitter(Stream.STDOUT)
    found = [record for start, end in pairwise(places) for record in splitter.feed(output[start:end], 1)]
    found += splitter.flush(1)
    whole = LineSplitter(Stream.STDOUT)
    assert found == [*whole.feed(output, 1), *whole.flush(1)]
    text = b"".join(record.text + (b"" if record.partial else b"\n") for record in found)
    assert text == output + (b"" if output.endswith(b"\n") or not output else b"\n")
    assert all(len(record.text) <= MAX_RECORD for record in found)


def test_a_line_of_just_the_longest_length_is_one_record() -> None:
    splitter = LineSplitter(Stream.STDERR)
    assert splitter.feed(b"x" * MAX_RECORD, NOON) == []
    assert splitter.feed(b"\n", NOON) == [err(b"x" * MAX_RECORD)]


def test_a_line_one_byte_longer_is_two_records() -> None:
    splitter = LineSplitter(Stream.STDERR)
    assert splitter.feed(b"x" * MAX_RECORD + b"y", NOON) == [err(b"x" * MAX_RECORD, partial=True)]
    assert splitter.feed(b"\n", NOON) == [err(b"y")]


def test_the_begun_part_of_a_line_can_be_taken_and_its_end_still_ends_the_line() -> None:
    splitter = LineSplitter(Stream.STDOUT)

    assert splitter.feed(b" 10%\r 20%", NOON) == []
    assert splitter.piece(NOON) == [out(b" 10%\r 20%", partial=True)]
    assert splitter.piece(NOON) == []
    assert splitter.feed(b"\nnext\n", NOON) == [out(b""), out(b"next")]
    assert splitter.flush(NOON) == []


def test_a_line_of_which_a_piece_was_taken_ends_with_the_output() -> None:
    splitter = LineSplitter(Stream.STDOUT)

    splitter.feed(b"100%", NOON)
    splitter.piece(NOON)

    assert splitter.flush(NOON) == [out(b"")]


@given(st.lists(st.binary(max_size=20)))
def test_pieces_change_nothing_of_what_was_printed(chunks: list[bytes]) -> None:
    splitter, output = LineSplitter(Stream.STDOUT), b"".join(chunks)
    found = [record for chunk in chunks for record in (*splitter.feed(chunk, 1), *splitter.piece(1))]
    found += splitter.flush(1)

    text = b"".join(record.text + b"\n" * (not record.partial) for record in found)
    assert text == output + (b"" if output.endswith(b"\n") or not output else b"\n")


def test_what_is_appended_can_be_read(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log")) as spool:
        spool.append(out(b"one"))
        spool.append_all([err(b"two"), out(b"three", partial=True)])
        assert stored(spool) == [out(b"one"), err(b"two"), out(b"three", partial=True)]
        assert spool.size == (tmp_path / "log").stat().st_size


def test_a_log_goes_on_where_an_earlier_agent_left_it(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log")) as spool:
        spool.append(out(b"one"))
    with closing(LogSpool(tmp_path / "log")) as spool:
        spool.append(out(b"two"))
        assert stored(spool) == [out(b"one"), out(b"two")]


@pytest.mark.parametrize("torn", [b"2", b"2026-11-21T12:00:00.000000000Z stdout F to", b"x" * 3_000_000])
def test_a_torn_last_line_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    (tmp_path / "log").write_bytes(format_record(out(b"whole")) + torn)
    with closing(LogSpool(tmp_path / "log")) as spool:
        spool.append(out(b"next"))
        assert stored(spool) == [out(b"whole"), out(b"next")]


def test_a_file_with_nothing_but_a_torn_line_becomes_empty(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"2026")
    with closing(LogSpool(tmp_path / "log")) as spool:
        spool.finish()
        assert spool.size == 0


def test_a_log_that_another_process_writes_is_only_read(tmp_path: Path) -> None:
    line = format_record(out(b"printed"))
    (tmp_path / "log").write_bytes(line + line[:20])
    with closing(LogSpool(tmp_path / "log")) as spool:
        assert (spool.read(0, 1000), spool.tail(2)) == (line, ("printed",))
        assert (tmp_path / "log").read_bytes() == line + line[:20]
        assert (spool.look(), spool.grew.is_set()) == (False, False)
        with (tmp_path / "log").open("ab") as file:
            file.write(line[20:])
        assert (spool.look(), spool.grew.is_set()) == (True, True)
        assert spool.read(0, 1000) == line * 2


def test_the_resume_point_counts_the_last_records_of_the_same_time(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log")) as spool:
        assert spool.resume_point(Stream.STDOUT) == (0, 0)
        spool.append_all([out(b"a", 5), out(b"b", 7), err(b"c", 9), out(b"d", 7)])
        assert spool.resume_point(Stream.STDOUT) == (7, 2)
        assert spool.resume_point(Stream.STDERR) == (9, 1)
        spool.append(out(b"e", 8))
        assert spool.resume_point(Stream.STDOUT) == (8, 1)


@given(
    st.lists(
        st.builds(
            LogRecord,
            time_ns=st.integers(0, 3),
            stream=st.sampled_from(Stream),
            text=st.just(b"x" * 40),
            marker=st.booleans(),
        )
    )
)
def test_the_resume_point_is_the_same_after_a_restart(
    tmp_path_factory: pytest.TempPathFactory, several: list[LogRecord]
) -> None:
    path = tmp_path_factory.mktemp("spool") / "log"
    with closing(LogSpool(path)) as spool:
        spool.append_all(several)
        before = [spool.resume_point(stream) for stream in Stream]
    with closing(LogSpool(path)) as spool:
        assert [spool.resume_point(stream) for stream in Stream] == before


def test_the_resume_point_is_found_far_back(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log")) as spool:
        spool.append_all([err(b"once", 3), *(out(b"x" * 1000, number) for number in range(4000))])
    with closing(LogSpool(tmp_path / "log")) as spool:
        assert spool.resume_point(Stream.STDERR) == (3, 1)
        assert spool.resume_point(Stream.STDOUT) == (3999, 1)


def test_damaged_lines_do_not_keep_a_log_from_opening(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(format_record(out(b"whole", 5)) + b"\0" * 31 + b"stdout\n\n")
    with closing(LogSpool(tmp_path / "log")) as spool:
        assert spool.resume_point(Stream.STDOUT) == (5, 1)
        assert spool.tail(5) == ("whole",)


def test_markers_do_not_move_the_resume_point(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log")) as spool:
        spool.append(err(b"printed", 5))
        spool.mark("said by Muster")
        assert spool.resume_point(Stream.STDERR) == (5, 1)
    with closing(LogSpool(tmp_path / "log")) as spool:
        assert spool.resume_point(Stream.STDERR) == (5, 1)
        assert spool.tail(1) == ("[muster] said by Muster",)


def test_reading_gives_whole_lines_within_the_limit(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log")) as spool:
        spool.append_all([out(b"x" * 60)] * 3)
        line = len(format_record(out(b"x" * 60)))
        assert len(spool.read(0, 2 * line + 5)) == 2 * line
        assert len(spool.read(2 * line, 2 * line)) == line
        assert spool.read(3 * line, 100) == b""


def test_a_line_longer_than_the_limit_is_read_whole(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log")) as spool:
        spool.append_all([out(b"x" * MAX_RECORD), out(b"y")])
        assert spool.read(0, 10) == format_record(out(b"x" * MAX_RECORD))


def test_the_tail_joins_pieces_and_decodes_what_it_can(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log")) as spool:
        spool.append_all([out(b"first"), out(b"a", partial=True), err(b"oh \xff"), out(b"b\rc")])
        assert spool.tail(10) == ("first", "oh \ufffd", "ab\rc")
        assert spool.tail(2) == ("oh \ufffd", "ab\rc")
        assert spool.tail(0) == ()


def test_the_tail_of_a_large_log_starts_at_a_line(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log")) as spool:
        spool.append_all([out(b"line %d " % number + b"x" * 100) for number in range(10_000)])
        assert [line.split()[1] for line in spool.tail(3)] == ["9997", "9998", "9999"]
        assert all(line.startswith("line ") for line in spool.tail(10_000))


def test_growing_and_finishing_wake_who_waits(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log")) as spool:
        assert not spool.grew.is_set()
        spool.append(out(b"x"))
        assert spool.grew.is_set()
        spool.grew.clear()
        spool.finish()
        assert (spool.grew.is_set(), spool.finished) == (True, True)


def test_past_the_limit_one_marker_stands_for_the_rest(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log", limit=250)) as spool:
        spool.append_all([out(b"%d" % number + b"x" * 60) for number in range(5)])
        spool.append(out(b"short"))
        assert [line[:1] for line in spool.tail(9)] == ["0", "1", "["]
        assert spool.tail(1) == ("[muster] output limit of 250 bytes reached; the rest is not kept",)
        assert spool.resume_point(Stream.STDOUT) == (NOON, 2)
        size = spool.size
    with closing(LogSpool(tmp_path / "log", limit=250)) as spool:
        spool.append(out(b"after a restart"))
        assert spool.size == size


def test_the_usual_limit_is_told_in_gib(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.truncate((1 << 30) - 1)  # sparse: takes no space
        file.seek(0, 2)
        file.write(b"\n")
    with closing(LogSpool(path)) as spool:
        spool.append(out(b"one more"))
        assert spool.tail(1) == ("[muster] output limit of 1.0 GiB reached; the rest is not kept",)


def test_what_does_not_fit_on_the_disk_is_counted_and_told_later(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log")) as spool:
        line = len(format_record(out(b"x" * 60)))
        with files_limited_to(2 * line + 10 + SPACE_FOR_WORDS):
            spool.append_all([out(b"x" * 60, number) for number in range(8)])
            spool.append(out(b"x" * 300, 8))
            assert spool.size == (tmp_path / "log").stat().st_size == 2 * line
            assert spool.resume_point(Stream.STDOUT) == (1, 1)
        spool.append(out(b"again", 6))
        assert spool.tail(2) == ("[muster] 7 records (660 bytes) of output were lost: File too large", "again")
        assert len(stored(spool)) == 4


def test_a_loss_at_the_very_end_is_told_when_the_log_finishes(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log")) as spool:
        with files_limited_to(10):
            spool.append(out(b"lost"))
            spool.finish()
            assert not spool.settle()
        assert spool.settle()
        assert spool.tail(2) == ("[muster] 1 records (4 bytes) of output were lost: File too large",)


def test_a_limit_that_is_reached_on_a_full_disk_is_told_after_the_loss(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log", limit=500)) as spool:
        with files_limited_to(50 + SPACE_FOR_WORDS):
            spool.append_all([out(b"first"), *[out(b"second")] * 20])
        assert spool.settle()
        spool.append(out(b"more beyond"))
        assert spool.tail(9) == (
            "first",
            "[muster] 9 records (54 bytes) of output were lost: File too large",
            "[muster] output limit of 500 bytes reached; the rest is not kept",
        )


def test_very_long_lines_of_the_tail_are_cut(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log")) as spool:
        spool.append_all([out(b"x" * MAX_RECORD, number) for number in range(20)])
        assert spool.tail(3) == ("x" * MAX_TAIL_LINE + "…",) * 3


def test_two_processes_may_write_into_a_log_beside_each_other(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log")) as supervisor, closing(LogSpool(tmp_path / "log")) as agent:
        supervisor.append(out(b"one"))
        assert agent.append_beside((err(b"told"), err(b"more")))
        supervisor.append(out(b"two"))
        agent.look()
        assert stored(agent) == [out(b"one"), err(b"told"), err(b"more"), out(b"two")]


def test_a_line_of_the_other_process_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(format_record(out(b"one"))[:-1])
    with closing(LogSpool(tmp_path / "log")) as agent:
        agent.append_beside((err(b"told"),))
    assert (tmp_path / "log").read_bytes().startswith(format_record(out(b"one"))[:-1])


def test_a_full_disk_takes_nothing_from_what_another_process_has_written(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log")) as supervisor, closing(LogSpool(tmp_path / "log")) as agent:
        supervisor.append(out(b"one"))
        assert agent.append_beside((err(b"told" * 100),))
        with files_limited_to((tmp_path / "log").stat().st_size + 10):
            supervisor.append(out(b"two" * 100))
        agent.look()
        assert stored(agent) == [out(b"one"), err(b"told" * 100)]


def test_nothing_is_written_beside_beyond_the_limit_or_after_the_end(tmp_path: Path) -> None:
    with closing(LogSpool(tmp_path / "log", limit=300)) as spool:
        assert spool.append_beside((err(b"x" * 100),))
        assert not spool.append_beside((err(b"x" * 200),))
        spool.finish()
        assert not spool.append_beside((err(b"x"),))
