"""What the store of logs promises."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.store.logs.file import check_chunk
from coordinator.store.logs.logs import LogBatch, LogStore
from coordinator.store.store import StoreError
from muster.domain.errors import UnknownNameError
from muster.domain.gangs.log import MAX_LINE, MAX_RECORD, LogRecord, Stream, format_record, parse_record
from muster.domain.ids import ExecutionId, JobId
from tests.contract.log_records import TEN, E, chunk, record, texts

ROOT = Path(__file__).parents[2]


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogStore]:
    store = LogStore(tmp_path / "logs")
    yield store
    store.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "a" / "1-0.cri"


# Appending


def test_a_copy_has_the_bytes_of_the_original(logs: LogStore, file: Path) -> None:
    first, second = chunk(*TEN[:4]), chunk(*TEN[4:])

    assert logs.append(E, 0, first) == len(first)
    assert logs.append(E, len(first), second) == len(first + second)

    assert file.read_bytes() == first + second
    assert logs.size(E) == len(first + second)


def test_a_log_that_is_not_there_is_empty_and_asking_makes_no_file(logs: LogStore, file: Path) -> None:
    assert logs.size(E) == 0
    assert logs.read(E) == LogBatch()
    assert logs.last_lines(E, 3) == ()
    assert not logs.complete(E)
    assert not file.exists()


def test_what_is_there_already_is_skipped(logs: LogStore, file: Path) -> None:
    whole = chunk(*TEN)
    logs.append(E, 0, chunk(*TEN[:4]))

    assert logs.append(E, 0, whole) == len(whole)
    assert logs.append(E, 0, whole) == len(whole)
    assert logs.append(E, len(chunk(*TEN[:2])), chunk(*TEN[2:5])) == len(whole)

    assert file.read_bytes() == whole


def test_a_gap_is_not_written_and_the_size_says_where_to_go_on(logs: LogStore, file: Path) -> None:
    first = chunk(*TEN[:4])
    logs.append(E, 0, first)

    assert logs.append(E, len(first) + 1, chunk(*TEN[5:])) == len(first)

    assert file.read_bytes() == first


BAD = {
    "half a line": chunk(*TEN)[:-1],
    "no record": b"hello\n",
    "an empty line": chunk(*TEN) + b"\n",
    "a time without fraction": b"2026-11-21T08:48:50Z stdout F x\n",
    "a day that is not": b"2026-02-30T08:48:50.123456789Z stdout F x\n",
    "another stream": b"2026-11-21T08:48:50.123456789Z stdlog F x\n",
    "another tag": b"2026-11-21T08:48:50.123456789Z stdout X x\n",
    "a line too long": b"2026-11-21T08:48:50.123456789Z stdout F " + b"x" * (MAX_RECORD + 100) + b"\n",
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_a_chunk_with_anything_else_than_records_is_refused_whole(logs: LogStore, file: Path, data: bytes) -> None:
    with pytest.raises(
        ValueError, match=r"whole lines|no time in UTC|neither|at most|day is out of range|no log records"
    ):
        logs.append(E, 0, chunk(*TEN) + data)

    assert not file.exists()


def test_a_chunk_that_does_not_meet_the_stored_end_at_a_line_end_is_refused(logs: LogStore, file: Path) -> None:
    logs.append(E, 0, chunk(*TEN[:2]))

    with pytest.raises(ValueError, match="the log of a-1-0 has no line end at offset"):
        logs.append(E, 1, chunk(*TEN[:3]))

    assert file.read_bytes() == chunk(*TEN[:2])


@given(
    st.builds(
        LogRecord,
        time_ns=st.integers(0, 4 * 10**18),
        stream=st.sampled_from(Stream),
        text=st.binary(max_size=40).filter(lambda text: b"\n" not in text),
        partial=st.booleans(),
        marker=st.booleans(),
    ),
)
def test_whatever_can_be_formatted_can_be_appended(printed: LogRecord) -> None:
    check_chunk(format_record(printed))


@given(
    st.from_regex(
        rb"20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6]0:[0-6][0-9]\.000000000Z stdout F x\n", fullmatch=True
    )
)
def test_only_what_can_be_parsed_can_be_appended(line: bytes) -> None:
    try:
        parse_record(line)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            check_chunk(line)
    else:
        check_chunk(line)


def test_more_logs_than_open_files_are_kept_apart(tmp_path: Path) -> None:
    logs = LogStore(tmp_path, open_files=3)
    executions = [ExecutionId(f"a-1-{rank}") for rank in range(20)]
    for number in range(3):
        for rank, execution in enumerate(executions):
            logs.append(execution, logs.size(execution), chunk(record(number, f"{rank}.{number}")))

    assert len(list(Path("/proc/self/fd").iterdir())) < 60
    assert [texts(logs.read(execution)) for execution in executions] == [
        [f"{rank}.{number}" for number in range(3)] for rank in range(20)
    ]
    logs.close()


def test_two_streams_that_send_the_same_bytes_store_them_once(logs: LogStore, file: Path) -> None:
    records = [record(number) for number in range(200)]
    whole = chunk(*records)

    def send() -> None:
        size = 0
        while size < len(whole):
            size = logs.append(E, size, whole[size : whole.index(b"\n", size) + 1])

    streams = [threading.Thread(target=send) for _ in range(4)]
    for stream in streams:
        stream.start()
    for stream in streams:
        stream.join()

    assert file.read_bytes() == whole


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from coordinator.store.logs.logs import LogStore\n"
        "logs, size = LogStore(Path(sys.argv[1])), 0\n"
        "while True:\n"
        "    size = logs.append('a-1-0', size, sys.argv[2].encode() + b'\\n')\n"
        "    print(size, flush=True)\n"
    )
    line = chunk(record(1)).decode().strip()
    command = [sys.executable, "-c", program, str(tmp_path), line]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        acknowledged = [child.stdout.readline() for _ in range(300)]
        child.kill()
        acknowledged += [each for each in child.stdout.readlines() if each.endswith("\n")]

    assert LogStore(tmp_path).size(E) >= int(acknowledged[-1]) >= 300 * (len(line) + 1)


def test_a_line_that_a_crash_cut_is_written_again(tmp_path: Path, file: Path) -> None:
    whole, begun = chunk(*TEN[:3]), chunk(*TEN[:4])[:-5]
    file.parent.mkdir(parents=True)
    file.write_bytes(begun)
    logs = LogStore(tmp_path / "logs")

    assert texts(logs.read(E)) == ["line 0", "line 1", "line 2"]
    assert logs.size(E) == len(whole)
    assert logs.append(E, len(whole), chunk(TEN[3])) == len(chunk(*TEN[:4]))
    assert file.read_bytes() == chunk(*TEN[:4])
    logs.close()


# The end


def test_several_logs_are_finished_at_once(logs: LogStore, tmp_path: Path) -> None:
    logs.append(E, 0, chunk(*TEN))
    logs.finish(E, ExecutionId("a-1-1"), ExecutionId("b-1-0"))

    again = LogStore(tmp_path / "logs")
    assert [again.complete(ExecutionId(each)) for each in (E, "a-1-1", "b-1-0", "b-1-1")] == [True, True, True, False]
    assert [again.size(ExecutionId(each)) for each in (E, "a-1-1")] == [len(chunk(*TEN)), 0]


def test_a_log_whose_directory_went_while_it_was_finished_does_not_come_back(logs: LogStore, file: Path) -> None:
    logs.append(E, 0, chunk(*TEN))
    shutil.rmtree(file.parent)

    logs.finish(E)

    assert not file.parent.exists()


def test_a_finished_log_is_complete_also_after_a_restart(logs: LogStore, tmp_path: Path) -> None:
    logs.append(E, 0, chunk(*TEN))
    assert not logs.read(E).at_end

    logs.finish(E)
    logs.finish(E)

    again = LogStore(tmp_path / "logs")
    assert logs.complete(E)
    assert again.complete(E)
    assert again.read(E).at_end
    assert again.append(E, again.size(E), chunk(*TEN)) == len(chunk(*TEN))
    again.close()


def test_a_log_that_reaches_the_limit_ends_with_a_line_that_says_so(tmp_path: Path) -> None:
    line = b"2026-11-21T08:48:50.123456789Z stdout F " + b"x" * 983 + b"\n"
    with closing(LogStore(tmp_path / "logs", limit=1 << 20)) as logs:
        size = 0
        while size + 10 * len(line) < (1 << 20) + MAX_LINE:
            size = logs.append(E, size, line * 10)
        with pytest.raises(ValueError, match="the log of a-1-0 has reached the limit of 1048576 bytes; nothing more"):
            logs.append(E, size, line * 20)
        assert logs.complete(E)
        assert logs.size(E) <= (1 << 20) + 2 * MAX_LINE
        batch = logs.read(E, tail=1)
        [last] = batch.records
        assert last.marker
        assert last.text == b"[muster] the coordinator's limit of 1 MiB for one log is reached; the rest is not kept"
        assert batch.at_end

        other = ExecutionId("a-1-1")
        assert logs.append(other, 0, line) == len(line)


def test_what_an_agent_says_of_its_own_limit_still_has_room(tmp_path: Path) -> None:
    line = b"2026-11-21T08:48:50.123456789Z stdout F " + b"x" * 983 + b"\n"
    with closing(LogStore(tmp_path / "logs", limit=10 * len(line))) as logs:
        assert logs.append(E, 0, line * 11) == 11 * len(line)


def test_a_log_without_a_line_can_be_complete(logs: LogStore) -> None:
    logs.finish(E)

    assert logs.read(E) == LogBatch(at_end=True)


def test_dropping_a_job_drops_all_its_logs_and_no_other(logs: LogStore, tmp_path: Path) -> None:
    for name in ("a-1-0", "a-2-0", "a-1-1-0", "ab-1-0"):
        logs.append(ExecutionId(name), 0, chunk(*TEN))
    logs.finish(E)

    logs.drop_job(JobId("a"))
    logs.drop_job(JobId("a"))

    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["a-1", "ab"]
    assert (logs.size(E), logs.complete(E)) == (0, False)
    assert logs.append(E, 0, chunk(TEN[0])) == len(chunk(TEN[0]))


def test_logs_of_unknown_jobs_are_named_and_stay(logs: LogStore, tmp_path: Path) -> None:
    assert logs.unknown([]) == ()
    for name in ("a-1-0", "b-1-0", "c-1-0"):
        logs.append(ExecutionId(name), 0, chunk(*TEN))
    (tmp_path / "logs" / "lost+found").mkdir()

    assert logs.unknown([JobId("b"), JobId("d")]) == (tmp_path / "logs" / "a", tmp_path / "logs" / "c")
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["a", "b", "c", "lost+found"]


def test_a_drop_that_was_interrupted_is_finished_by_the_next_start(logs: LogStore, tmp_path: Path) -> None:
    logs.append(E, 0, chunk(*TEN))
    (tmp_path / "logs" / "a").rename(tmp_path / "logs" / ".dropped-a")

    assert logs.unknown([]) == ()
    assert list((tmp_path / "logs").iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a",
        "a-1",
        "../a-1-0",
        "..-1-0",
        ".-1-0",
        "a/b-1-0",
        "a-1-0\n",
        "a-01-0",
        "a--1-0\0",
        "a-1-٣",
        "x" * 200 + "-1-0",
    ],
)
def test_an_id_that_could_leave_the_directory_is_unknown(logs: LogStore, tmp_path: Path, name: str) -> None:
    execution = ExecutionId(name)
    for use in (logs.size, logs.complete, logs.finish, logs.read):
        with pytest.raises(UnknownNameError, match="is no id of an execution"):
            use(execution)
    with pytest.raises(UnknownNameError, match="is no id of an execution"):
        logs.append(execution, 0, chunk(*TEN))

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/etc", ".a"])
def test_no_directory_outside_is_dropped(logs: LogStore, name: str) -> None:
    with pytest.raises(UnknownNameError, match="is no id of a job"):
        logs.drop_job(JobId(name))


def test_a_directory_that_cannot_be_written_is_a_clear_fault(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("not a directory")

    with pytest.raises(StoreError, match="the log of a-1-0 cannot be kept: Not a directory"):
        LogStore(tmp_path / "logs").append(E, 0, chunk(*TEN))
