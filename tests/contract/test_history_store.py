"""History on the disk: it outlives the console that wrote it, is rolled up once, and stays within its limits."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from console.telemetry.history.grain import FIVE_MINUTES, GRAINS, ONE_HOUR, TEN_SECONDS, Grain
from console.telemetry.history.open_blocks import HistoryBlock
from console.telemetry.history.store import HistoryStore, block_data, items_of
from muster.domain.errors import MusterError
from tests.house.generate_stubs import ROOT

NINE = datetime(2026, 11, 27, 9, tzinfo=UTC)
NODE = "node/a"
PLENTY = 1 << 30


def after(**span: float) -> datetime:
    return NINE + timedelta(**span)


def block(begin: datetime, *items: bytes, of: str = NODE) -> HistoryBlock:
    return HistoryBlock(of, begin, items)


def joined(_of: str, items: Sequence[bytes], grain: Grain) -> Sequence[bytes]:
    """What items come to: their number, so that each can be counted."""
    return [f"{grain.name}:{len(items)}".encode()]


def all_of(store: HistoryStore, grain: Grain = TEN_SECONDS, of: str = NODE) -> list[bytes]:
    return sorted(store.read(of, after(days=-1000), after(days=1000), grain))


def test_what_was_written_is_there_when_the_directory_is_opened_again(tmp_path: Path) -> None:
    HistoryStore(tmp_path, PLENTY).write(
        [block(NINE, b"1", b"2"), block(after(minutes=59), b"3"), block(after(hours=1), b"4")]
    )
    HistoryStore(tmp_path, PLENTY).write([block(after(minutes=2), b"5"), block(NINE, b"other", of="node/b")])

    store = HistoryStore(tmp_path, PLENTY)
    assert all_of(store) == [b"1", b"2", b"3", b"4", b"5"]
    assert store.read(NODE, after(minutes=58), after(minutes=59, seconds=30), TEN_SECONDS) == [b"3"]
    assert all_of(store, of="node/b") == [b"other"]
    assert all_of(store, of="node/c") == []


def test_a_file_is_rolled_up_once_it_is_complete_and_only_once(tmp_path: Path) -> None:
    store = HistoryStore(tmp_path, PLENTY)
    store.write([block(NINE, b"1", b"2"), block(after(hours=1), b"3"), block(NINE, b"x", of="node/b")])

    assert store.roll_up(after(minutes=59), joined) == 0
    assert all_of(store, FIVE_MINUTES) == [b"1", b"2", b"3"]
    assert store.roll_up(after(minutes=60), joined) == 1
    assert store.roll_up(after(minutes=61), joined) == 0
    again = HistoryStore(tmp_path, PLENTY)
    assert again.roll_up(after(minutes=62), joined) == 0
    for each in (store, again):
        assert all_of(each, FIVE_MINUTES) == [b"3", b"5min:2"]
        assert all_of(each, FIVE_MINUTES, of="node/b") == [b"5min:1"]
        assert all_of(each) == [b"1", b"2", b"3"]


def test_days_are_rolled_up_from_hours_and_the_end_of_a_plot_is_read_from_what_is_finer(tmp_path: Path) -> None:
    store = HistoryStore(tmp_path, PLENTY)
    store.write([block(NINE, b"1"), block(after(hours=1), b"2"), block(after(days=1), b"3")])
    assert store.roll_up(after(days=1, minutes=1), joined) == 3  # two hours, then their day
    assert all_of(store, ONE_HOUR) == [b"1h:2", b"3"]


def test_what_is_old_goes_in_each_grain_at_its_own_time(tmp_path: Path) -> None:
    store = HistoryStore(tmp_path, PLENTY)
    store.write([block(NINE, b"1")])
    store.roll_up(after(days=2), joined)
    assert store.expire(after(hours=24)) == 0
    assert store.expire(after(hours=25)) == 1
    assert all_of(store) == []
    assert all_of(store, FIVE_MINUTES) == [b"5min:1"]
    assert store.expire(after(days=31)) == 1
    assert all_of(store, ONE_HOUR) == [b"1h:1"]


def test_beyond_its_limit_the_oldest_of_the_finest_goes_first_and_never_the_newest(tmp_path: Path) -> None:
    store = HistoryStore(tmp_path, PLENTY)
    store.write(block(after(hours=hour), f"{hour:02}".encode()) for hour in range(4))
    one = store.size // 4
    store.roll_up(after(hours=3), joined)

    tight = HistoryStore(tmp_path, store.size - one)
    assert tight.expire(after(hours=3, minutes=30)) == 1
    assert all_of(tight) == [b"01", b"02", b"03"]
    assert HistoryStore(tmp_path, 1).expire(after(hours=3, minutes=30)) == 2
    assert all_of(store) == [b"03"]
    assert all_of(store, FIVE_MINUTES) == [b"03", *[b"5min:1"] * 3]


def test_a_disk_that_is_full_takes_nothing_and_harms_nothing(tmp_path: Path) -> None:
    HistoryStore(tmp_path, PLENTY).write([block(NINE, b"1")])
    full = HistoryStore(tmp_path, PLENTY, least_free=1 << 62)
    with pytest.raises(MusterError, match="the disk is full"):
        full.write([block(NINE, b"2")])
    with pytest.raises(MusterError, match="the disk is full"):
        full.roll_up(after(hours=1), joined)
    assert all_of(full) == [b"1"]
    assert HistoryStore(tmp_path, PLENTY).roll_up(after(hours=1), joined) == 1


_WRITES = """
import resource, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from console.telemetry.history.open_blocks import HistoryBlock
from console.telemetry.history.store import HistoryStore
from muster.domain.errors import MusterError

if int(sys.argv[2]):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
store = HistoryStore(Path(sys.argv[1]), 1 << 30)
for number in range(100_000):
    try:
        store.write([HistoryBlock("node/a", datetime(2026, 11, 27, 9, tzinfo=UTC), [str(number).encode() + bytes(9)])])
    except MusterError:
        break
    print(number, flush=True)
"""


def test_a_console_that_is_killed_while_it_writes_loses_nothing_that_it_had_written(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _WRITES, str(tmp_path), "0"], cwd=ROOT, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        said = [next(writer.stdout) for _ in range(20)]
        writer.send_signal(signal.SIGKILL)
        written = len(said) + len(list(writer.stdout))

    store = HistoryStore(tmp_path, PLENTY)
    assert len(all_of(store)) in {written, written + 1}
    store.write([block(NINE, b"goes on")])
    assert b"goes on" in all_of(store)


def test_a_file_that_cannot_grow_any_more_keeps_what_it_had_taken(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WRITES, str(tmp_path), str(100 * 1024)], cwd=ROOT, capture_output=True, check=True
    )
    written = len(done.stdout.splitlines())
    assert 0 < written < 100_000
    assert len(all_of(HistoryStore(tmp_path, PLENTY))) == written


@pytest.mark.parametrize("grain", GRAINS, ids=[grain.name for grain in GRAINS])
def test_a_file_that_is_no_database_is_replaced(tmp_path: Path, grain: Grain) -> None:
    store = HistoryStore(tmp_path, PLENTY)
    broken = tmp_path / grain.name / grain.file_name(NINE)
    broken.write_bytes(b"rubbish " * 1000)

    assert all_of(HistoryStore(tmp_path, PLENTY), grain) == []
    assert not broken.exists()
    store.write([block(NINE, b"1")])
    store.roll_up(after(days=40), joined)
    assert all_of(store, ONE_HOUR) == [b"1h:1"]


def test_blocks_that_are_none_have_no_items() -> None:
    good = block_data([b"one", b"", b"two"])
    assert items_of(good) == [b"one", b"", b"two"]
    assert items_of(b"") == items_of(b"\2" + good[1:]) == items_of(good[:1] + b"rubbish") == ()
    assert items_of(block_data([b"one"])[:-6]) in ([], [b"one"])
