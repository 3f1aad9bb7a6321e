"""Points of logs on a disk: each is found once, whatever comes when, and a damaged list of them is made again."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.store.logs.logs import LogStore
from coordinator.store.logs.points import LogPoints, PointChoice
from muster.domain.gangs.log import LineSplitter, LogRecord, Stream, format_record
from muster.domain.ids import ExecutionId, JobId
from muster.domain.telemetry.point import MAX_POINT, Point

MEMBER = ExecutionId("j7k2-1-0")
AT = 1_800_000_000_000_000_000
ALL = PointChoice(most=50_000)


def record(text: bytes, *, stream: Stream = Stream.STDOUT, partial: bool = False, marker: bool = False) -> bytes:
    return format_record(LogRecord(time_ns=AT, stream=stream, text=text, partial=partial, marker=marker))


def point(step: int, **more: float) -> bytes:
    return record(json.dumps({"step": step, **more}).encode())


def steps(points: Sequence[Point]) -> list[float]:
    return [each.values["step"] for each in points]


def store_with(directory: Path, *lines: bytes) -> LogStore:
    logs = LogStore(directory)
    logs.append(MEMBER, 0, b"".join(lines))
    return logs


def test_lines_of_stdout_with_an_object_are_points_and_no_others(tmp_path: Path) -> None:
    logs = store_with(
        tmp_path,
        point(1),
        record(b"no point {"),
        record(b'{"step": 2}', stream=Stream.STDERR),
        record(b"it prints stdout F {} in a line }"),
        record(b'{"not": json}'),
        record(b'{"step": 3}', marker=True),
        point(4),
    )

    batch = LogPoints(logs).read(MEMBER, ALL)

    assert steps(batch.points) == [1, 4]
    assert [each.offset for each in batch.points] == [0, logs.size(MEMBER) - len(point(4))]


def test_the_end_of_a_longer_line_is_no_point(tmp_path: Path) -> None:
    logs = store_with(
        tmp_path,
        record(b"a long line ", partial=True),
        record(b"of stderr", stream=Stream.STDERR),
        record(b'{"step": 1}'),
        point(2),
        record(b"begun", partial=True),
    )
    reader = LogPoints(logs)
    before = reader.read(MEMBER, ALL)
    logs.append(MEMBER, logs.size(MEMBER), record(b'{"step": 3}') + point(4))

    assert steps(before.points) == [2]
    assert steps(reader.read(MEMBER, ALL).points) == [2, 4]


def test_a_line_that_is_too_long_is_no_point(tmp_path: Path) -> None:
    splitter = LineSplitter(Stream.STDOUT)
    line = b'{"step": 1, "text": "' + b"x" * MAX_POINT + b'"}\n'
    logs = store_with(tmp_path, *map(format_record, splitter.feed(line, AT)), point(2))

    assert steps(LogPoints(logs).read(MEMBER, ALL).points) == [2]


def test_what_comes_later_is_found_without_what_was_there(tmp_path: Path) -> None:
    logs = store_with(tmp_path, *(point(step) for step in range(10)))
    reader = LogPoints(logs)
    first = reader.read(MEMBER, ALL)
    logs.append(MEMBER, logs.size(MEMBER), b"".join(point(step) for step in range(10, 13)))

    later = reader.read(MEMBER, PointChoice(after=first.next_offset, most=2))
    last = reader.read(MEMBER, PointChoice(after=later.next_offset, most=2))
    logs.finish(MEMBER)
    none = reader.read(MEMBER, PointChoice(after=last.next_offset))

    assert (steps(later.points), later.at_end) == ([10, 11], False)
    assert (steps(last.points), last.at_end) == ([12], False)
    assert (none.points, none.next_offset, none.at_end) == ((), last.next_offset, True)


def test_of_many_points_some_are_taken_evenly_and_always_the_last(tmp_path: Path) -> None:
    logs = store_with(tmp_path, *(point(step) for step in range(1000)))

    batch = LogPoints(logs).read(MEMBER, PointChoice(most=5))

    assert steps(batch.points) == [0, 249, 499, 749, 999]
    assert batch.all == 1000


def test_a_key_that_few_points_have_is_found_in_all_of_them(tmp_path: Path) -> None:
    lines = [point(step, loss=1.0) if step % 100 else point(step, accuracy=0.5) for step in range(1000)]
    logs = store_with(tmp_path, *lines)
    reader = LogPoints(logs)

    few = reader.read(MEMBER, PointChoice(keys=frozenset({"accuracy"}), most=20))

    assert steps(few.points) == list(range(0, 1000, 100))
    assert {key for each in few.points for key in each.values} == {"step", "accuracy"}
    assert reader.read(MEMBER, PointChoice(keys=frozenset({"nothing"}))).points == ()


@pytest.mark.parametrize("key", ["größe", 'a"b', "a\\b", "loss/val"])
def test_a_key_is_found_however_it_is_written(tmp_path: Path, key: str) -> None:
    plain, escaped = (json.dumps({key: 1}, ensure_ascii=ascii_only).encode() for ascii_only in (False, True))
    logs = store_with(tmp_path, record(plain), record(escaped))

    assert len(LogPoints(logs).read(MEMBER, PointChoice(keys=frozenset({key}))).points) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.unlink(),
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(b"nonsense" * 20),
        lambda file: file.write_bytes(file.read_bytes()[:50]),
        lambda file: file.write_bytes(file.read_bytes()[:40] + bytes(len(file.read_bytes()) - 40)),
        lambda file: file.write_bytes(file.read_bytes()[:-8] + (5).to_bytes(8, "little")),
    ],
)
def test_a_list_that_is_gone_or_damaged_is_made_again(tmp_path: Path, damage: object) -> None:
    logs = store_with(tmp_path, *(point(step) for step in range(20)))
    reader = LogPoints(logs)
    before = reader.read(MEMBER, ALL)
    assert callable(damage)
    damage(logs.points_file(MEMBER))

    assert reader.read(MEMBER, ALL) == before
    assert LogPoints(LogStore(tmp_path)).read(MEMBER, ALL) == before


def test_a_list_of_a_longer_log_is_made_again(tmp_path: Path) -> None:
    logs = store_with(tmp_path, *(point(step) for step in range(20)))
    LogPoints(logs).read(MEMBER, ALL)
    logs.close()
    file = tmp_path / "j7k2" / "1-0.cri"
    file.write_bytes(file.read_bytes()[: -3 * len(point(19))])

    assert steps(LogPoints(LogStore(tmp_path)).read(MEMBER, ALL).points) == list(range(17))


def test_a_log_that_is_not_there_has_no_points(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    reader = LogPoints(logs)
    assert (reader.read(MEMBER, ALL).points, reader.read(MEMBER, ALL).at_end) == ((), False)
    logs.append(MEMBER, 0, point(1))
    reader.read(MEMBER, ALL)
    logs.drop_job(JobId("j7k2"))

    assert reader.read(MEMBER, ALL).points == ()
    assert list(tmp_path.iterdir()) == []


LINES = st.lists(
    st.sampled_from(
        [
            b'{"step": 1}\n',
            b"plain\n",
            b"\n",
            b'{"a": 1} \n',
            b"{\n",
            b"}\n",
            b"x" * 20_000 + b'{"step": 2}\n',
            b'{"step": "' + b"y" * 17_000 + b'"}\n',
            b'a stdout F {"step": 3}\n',
        ]
    ),
    max_size=30,
)


@given(LINES, st.lists(st.integers(1, 40_000), max_size=8))
def test_the_points_are_the_same_however_the_log_comes(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], cuts: list[int]
) -> None:
    directory = tmp_path_factory.mktemp("logs")
    records = b"".join(map(format_record, LineSplitter(Stream.STDOUT).feed(b"".join(lines), AT)))
    logs = LogStore(directory)
    reader = LogPoints(logs)
    for cut in sorted(cuts):
        whole = records[: records.rfind(b"\n", 0, cut) + 1]
        if len(whole) > logs.size(MEMBER):
            logs.append(MEMBER, logs.size(MEMBER), whole[logs.size(MEMBER) :])
            reader.read(MEMBER, ALL)
    if records[logs.size(MEMBER) :]:
        logs.append(MEMBER, logs.size(MEMBER), records[logs.size(MEMBER) :])

    wanted = [line for line in lines if line in {b'{"step": 1}\n', b'{"a": 1} \n'}]
    assert len(reader.read(MEMBER, ALL).points) == len(wanted)
