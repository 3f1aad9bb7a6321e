"""Which grain answers a question, and which file has which time."""

from datetime import UTC, datetime, timedelta

import pytest

from console.telemetry.history.grain import FIVE_MINUTES, ONE_HOUR, TEN_SECONDS, Grain, grain_for, width_for


@pytest.mark.parametrize(
    ("hours", "grain", "width"),
    [
        (1, TEN_SECONDS, timedelta(seconds=20)),
        (6, TEN_SECONDS, timedelta(seconds=80)),
        (24, FIVE_MINUTES, timedelta(minutes=5)),
        (24 * 7, ONE_HOUR, timedelta(hours=1)),
        (24 * 400, ONE_HOUR, timedelta(hours=32)),
    ],
)
def test_a_plot_has_as_many_values_as_were_asked_for_at_most(hours: int, grain: Grain, width: timedelta) -> None:
    span = timedelta(hours=hours)
    assert grain_for(span, 300) is grain
    assert width_for(span, 300, grain) == width
    assert span / width <= 300


def test_a_short_time_is_told_as_finely_as_it_is_known() -> None:
    assert grain_for(timedelta(0), 300) is TEN_SECONDS
    assert width_for(timedelta(0), 300, TEN_SECONDS) == TEN_SECONDS.span


@pytest.mark.parametrize(
    ("grain", "name", "begin", "end"),
    [
        (TEN_SECONDS, "2026-11-30T23.db", (2026, 11, 30, 23), (2026, 12, 1, 0)),
        (FIVE_MINUTES, "2026-11-30.db", (2026, 11, 30, 0), (2026, 12, 1, 0)),
        (ONE_HOUR, "2026-11.db", (2026, 11, 1, 0), (2026, 12, 1, 0)),
        (ONE_HOUR, "2027-02.db", (2027, 2, 1, 0), (2027, 3, 1, 0)),
    ],
)
def test_a_file_is_named_by_the_beginning_of_its_time(
    grain: Grain, name: str, begin: tuple[int, int, int, int], end: tuple[int, int, int, int]
) -> None:
    began = datetime(*begin, tzinfo=UTC)
    assert grain.begin(name) == began
    assert grain.end(began) == datetime(*end, tzinfo=UTC)
    assert grain.file_name(began) == grain.file_name(datetime(*end, tzinfo=UTC) - timedelta(seconds=1)) == name


@pytest.mark.parametrize("name", ["2026-11-30T23.db-wal", "2026-1-3.db", "lock", "2026-13-01.db"])
def test_other_files_are_none_of_its_own(name: str) -> None:
    assert FIVE_MINUTES.begin(name) is None
