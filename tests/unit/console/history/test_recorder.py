"""What the recorder of history hears, it tells again: from memory, from the disk, and after a restart."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from console.telemetry.history.bands import Band, GangBands, bands_of
from console.telemetry.history.recorder import HistoryRecorder, held_history
from console.telemetry.history.store import HistoryStore
from muster.domain.errors import ConflictError
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.telemetry.quantities import Quantity
from muster.domain.telemetry.sample import NodeSample
from tests.unit.console.history.a_sample import BEGIN, at, sample

NODE = NodeId("a")
PLENTY = 1 << 30


@dataclass
class SetClock:
    """A clock that a test sets."""

    now: datetime = field(default=BEGIN)

    def __call__(self) -> datetime:
        return self.now


@contextmanager
def keeping(state: Path, clock: SetClock) -> Iterator[HistoryRecorder]:
    with held_history(state, PLENTY) as store:
        yield HistoryRecorder(store, clock)


def tell(recorder: HistoryRecorder, clock: SetClock, seconds: float, cpus: float = 1) -> None:
    """A sample comes at a time, from a node whose clock is an hour late."""
    clock.now = at(seconds)
    late = replace(sample(seconds, cpus=cpus), at=at(seconds - 3600))
    recorder.hear([NodeSample(NODE, late)])


async def told(recorder: HistoryRecorder, until: float, most: int = 300) -> list[tuple[float, float]]:
    """Seconds since nine o'clock and CPUs of the samples since then."""
    found = await recorder.samples(NODE, BEGIN, at(until), most)
    return [((each.at - BEGIN).total_seconds(), each.host.cpus) for each in found]


async def test_a_sample_is_told_again_at_once_at_the_time_when_it_came(tmp_path: Path) -> None:
    clock = SetClock()
    with keeping(tmp_path, clock) as recorder:
        tell(recorder, clock, 10, cpus=2)
        tell(recorder, clock, 20, cpus=3)
        assert await told(recorder, 60) == [(10, 2), (20, 3)]
        assert await recorder.samples(NodeId("b"), BEGIN, at(60), 300) == []


async def test_a_sample_that_comes_twice_counts_once(tmp_path: Path) -> None:
    clock = SetClock()
    with keeping(tmp_path, clock) as recorder:
        tell(recorder, clock, 10)
        clock.now = at(12)
        recorder.hear([NodeSample(NODE, replace(sample(10), at=at(10 - 3600)))])
        assert await told(recorder, 60) == [(10, 1)]


async def test_what_was_complete_is_there_after_a_kill_and_a_console_that_ends_writes_the_rest(tmp_path: Path) -> None:
    clock = SetClock()
    with keeping(tmp_path, clock) as recorder:
        for seconds in range(10, 200, 10):
            tell(recorder, clock, seconds)
        await recorder.write_now()
        assert len(await told(recorder, 300)) == 19
    with keeping(tmp_path, clock) as killed:
        assert await told(killed, 300) == [(seconds, 1) for seconds in range(10, 130, 10)]


async def test_hours_are_rolled_up_and_a_plot_goes_on_to_now(tmp_path: Path) -> None:
    clock = SetClock()
    with keeping(tmp_path, clock) as recorder:
        for seconds in range(10, 3900, 10):
            tell(recorder, clock, seconds, cpus=seconds % 20 / 10)
            if not seconds % 60:
                await recorder.write_now()
        found = await told(recorder, 3900, most=13)
        assert [(seconds, round(cpus, 2)) for seconds, cpus in found] == [(300.0 * n, 0.5) for n in range(1, 13)] + [
            (3900, 0.52)
        ]


async def test_bands_of_a_gang_are_kept_and_rolled_up_like_samples(tmp_path: Path) -> None:
    clock, gang = SetClock(), AttemptId(JobId("k3f0abcd"), 2)
    with keeping(tmp_path, clock) as recorder:
        for seconds in range(10, 3900, 10):
            clock.now = at(seconds)
            used = {rank: {Quantity.WATTS: float(seconds + rank)} for rank in range(3)}
            recorder.hear_bands(gang, GangBands(clock.now, timedelta(seconds=10), bands_of(used)))
            if not seconds % 60:
                await recorder.write_now()
        found = await recorder.bands(gang, BEGIN, at(3900), 13)
        other = await recorder.bands(gang._replace(number=1), BEGIN, at(3900), 13)
    assert [(each.at, each.bands[Quantity.WATTS]) for each in found][:2] == [
        (at(300), Band(10, 0, 156, 302, 2)),
        (at(600), Band(310, 0, 456, 602, 2)),
    ]
    assert len(found) == 13
    assert other == []


async def test_what_the_disk_does_not_take_is_counted_and_history_goes_on(tmp_path: Path) -> None:
    clock = SetClock()
    recorder = HistoryRecorder(HistoryStore(tmp_path, PLENTY, least_free=1 << 62), clock)
    tell(recorder, clock, 10)
    clock.now += timedelta(minutes=3)
    await recorder.write_now()
    assert recorder.dropped == 1
    tell(recorder, clock, 200)
    assert await told(recorder, 300) == [(200, 1)]


def test_two_consoles_do_not_keep_history_in_one_directory(tmp_path: Path) -> None:
    with held_history(tmp_path, PLENTY), pytest.raises(ConflictError), held_history(tmp_path, PLENTY):
        pass
