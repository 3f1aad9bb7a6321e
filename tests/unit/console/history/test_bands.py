"""Bands tell of a gang what is least, usual and most, and whose that is, however many steps they were joined in."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from console.telemetry.history.bands import (
    Band,
    GangBands,
    band_series,
    bands_from_item,
    bands_of,
    bands_to_item,
    joined_bands,
)
from muster.domain.telemetry.quantities import Quantity
from tests.unit.console.history.a_sample import at

TEN = timedelta(seconds=10)


def bands(seconds: float, *watts: float) -> GangBands:
    """The bands of a gang at a time at which its ranks draw so much."""
    return GangBands(at(seconds), TEN, bands_of({rank: {Quantity.WATTS: each} for rank, each in enumerate(watts)}))


def test_a_band_names_the_ranks_at_its_edges() -> None:
    assert bands(0, 600, 640, 620, 210).bands == {Quantity.WATTS: Band(210, 3, 610, 640, 1)}
    assert bands(0, 5, 5).bands == {Quantity.WATTS: Band(5, 0, 5, 5, 0)}


def test_a_rank_of_which_a_quantity_is_not_told_is_not_in_its_band() -> None:
    found = bands_of({0: {Quantity.WATTS: 3.0, Quantity.CPUS: 1.0}, 1: {Quantity.CPUS: 2.0}, 2: {}})
    assert found == {Quantity.WATTS: Band(3, 0, 3, 3, 0), Quantity.CPUS: Band(1, 0, 1.5, 2, 1)}


def test_bands_of_several_spans_have_the_edges_of_all_and_the_mean_of_the_medians() -> None:
    [one] = joined_bands([bands(20, 3, 9, 4), bands(10, 1, 2, 8)], timedelta(minutes=1))
    assert (one.at, one.span) == (at(60), timedelta(seconds=20))
    assert one.bands == {Quantity.WATTS: Band(1, 0, 3, 9, 1)}


def test_a_series_has_columns_beside_each_other() -> None:
    told = [bands(10, 1, 3), GangBands(at(20), TEN, {}), bands(30, 5, 4)]
    [series] = band_series(told, 2, [Quantity.WATTS, Quantity.CPUS])
    assert (series.attempt, series.quantity, series.times) == (2, "watts", [at(10), at(30)])
    assert (series.least, series.least_ranks, series.median) == ([1, 4], [0, 1], [2, 4.5])
    assert (series.most, series.most_ranks) == ([3, 5], [1, 0])
    assert band_series(told, 2, [Quantity.CPUS]) == []


def test_what_is_no_band_is_none() -> None:
    kept = bands_to_item(bands(10, 1, 2))
    assert bands_from_item(kept) == bands(10, 1, 2)
    for wrong in (
        b"",
        b"[]",
        b"[1, 2]",
        kept[:-3],
        b'[1, 2, {"watts": [1]}]',
        b'["a", 2, {}]',
        b"[1e99, 2, {}]",
        b"[1, 2, 3]",
    ):
        assert bands_from_item(wrong) is None
    assert bands_from_item(b'[0, 10, {"of the future": [1]}]') is not None


@given(st.lists(st.lists(st.floats(0, 1000), min_size=1, max_size=5), min_size=1, max_size=30))
def test_it_makes_no_difference_in_how_many_steps_bands_are_joined(told: list[list[float]]) -> None:
    hour, several = timedelta(hours=1), [bands(10 * (place + 1), *watts) for place, watts in enumerate(told)]
    [at_once] = joined_bands(several, hour)
    [in_steps] = joined_bands(joined_bands(several, timedelta(minutes=5)), hour)
    one, other = at_once.bands[Quantity.WATTS], in_steps.bands[Quantity.WATTS]
    assert (one.least, one.most, at_once.span) == (other.least, other.most, in_steps.span)
    assert abs(one.median - other.median) < 1e-6
