"""Which rank differs: each rule at its edges, with the values of the design's pictures."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.telemetry.differences import (
    POINTS_UNLIKE,
    ComparedRank,
    DifferenceKind,
    Sign,
    behind_signs,
    metric_signs,
    silent_signs,
    unlike,
    usage_signs,
)
from muster.domain.telemetry.point import Point
from muster.domain.telemetry.quantities import Quantity

NINE = datetime(2026, 11, 27, 9, tzinfo=UTC)
GIB = 1 << 30


def uses(quantity: Quantity, values: Sequence[float], gpus: int = 1) -> Mapping[int, ComparedRank]:
    return {rank: ComparedRank(amounts={quantity: value}, gpus=gpus) for rank, value in enumerate(values)}


def told(quantity: Quantity, values: Sequence[float], gpus: int = 1) -> list[tuple[int, str]]:
    return [(sign.rank, sign.told) for sign in usage_signs(uses(quantity, values, gpus))]


def printed(values: Sequence[float], *, first: float = 1400, key: str = "loss", every: float = 10) -> list[Point]:
    """Points of a rank, a step and so many seconds apart."""
    return [
        Point(time=NINE + timedelta(seconds=every * place), values={"step": first + place, key: value})
        for place, value in enumerate(values)
    ]


def test_a_rank_whose_gpu_does_much_less_than_the_others_is_told() -> None:
    assert told(Quantity.BUSY, [0.88, 0.95, 0.91, 0.22]) == [
        (3, "its GPUs are busy 22% of the time, those of the others 91%")
    ]


def test_watts_tell_who_waits_while_all_look_busy() -> None:
    waits = {rank: ComparedRank(amounts={Quantity.BUSY: 1.0, Quantity.WATTS: 8 * 640.0}, gpus=8) for rank in range(7)}
    waits[3] = ComparedRank(amounts={Quantity.BUSY: 1.0, Quantity.WATTS: 8 * 210.0}, gpus=8)
    assert list(usage_signs(waits)) == [
        Sign(
            rank=3,
            kind=DifferenceKind.USAGE,
            what="watts",
            told="its GPUs draw 210 W each, those of the others 640 W",
        )
    ]


@pytest.mark.parametrize(
    ("quantity", "usual", "off", "not_yet"),
    [
        (Quantity.BUSY, 0.5, 0.66, 0.64),
        (Quantity.WATTS, 600, 641, 640),
        (Quantity.CLOCK_MHZ, 1900, 1799, 1800),
        (Quantity.GPU_MEMORY, 60 * GIB, 63 * GIB, 62 * GIB),
    ],
)
def test_alike_ranks_may_differ_by_a_little(quantity: Quantity, usual: float, off: float, not_yet: float) -> None:
    assert [rank for rank, _ in told(quantity, [usual, off, usual, usual])] == [1]
    assert told(quantity, [usual, not_yet, usual, usual]) == []


def test_ranks_that_differ_anyway_may_differ_by_six_times_as_much() -> None:
    assert told(Quantity.WATTS, [500, 520, 540, 560, 580, 430]) == []  # the others are 20 W from their median
    assert [rank for rank, _ in told(Quantity.WATTS, [500, 520, 540, 560, 580, 410])] == [5]


def test_of_two_ranks_nobody_can_say_which_differs() -> None:
    assert told(Quantity.BUSY, [0.9, 0.1]) == []
    assert told(Quantity.BUSY, [0.9, 0.9, 0.1]) != []


def test_cpus_count_only_where_there_are_no_gpus() -> None:
    assert told(Quantity.CPUS, [8, 8, 8, 0], gpus=1) == []
    assert told(Quantity.CPUS, [8, 8, 8, 0], gpus=0) == [(3, "it keeps 0.0 CPUs busy, the others 8.0")]


def test_a_rank_of_which_nobody_tells_is_not_compared() -> None:
    silent = {**uses(Quantity.BUSY, [0.9, 0.9, 0.9]), 3: ComparedRank(amounts={}, gpus=1)}
    assert list(usage_signs(silent)) == []


def test_a_loss_that_leaves_the_band_of_the_others_is_told_from_where_it_did() -> None:
    points = {rank: printed([2.5 - 0.01 * step + 0.001 * rank for step in range(10)]) for rank in range(8)}
    points[3] = printed([2.5 - 0.01 * step + (0.5 if step >= 5 else 0) for step in range(10)])
    assert list(metric_signs(points)) == [
        Sign(
            rank=3,
            kind=DifferenceKind.METRIC,
            what="loss",
            told="its loss left the band of the other 7 at step 1,405",
        )
    ]


def test_a_loss_that_jumps_for_a_moment_is_not_told() -> None:
    points = {rank: printed([2.0] * 10) for rank in range(4)}
    points[1] = printed([2.0] * 6 + [9.0] * (POINTS_UNLIKE - 1))
    assert list(metric_signs(points)) == []
    points[1] = printed([9.0] * 9 + [2.0])
    assert list(metric_signs(points)) == []


def test_numbers_are_compared_at_the_same_step_alone() -> None:
    points = {rank: printed([1.0 / (step + 1) for step in range(10)], first=100 * rank) for rank in range(4)}
    assert list(metric_signs(points)) == []
    assert list(metric_signs({rank: [Point(time=NINE, values={"loss": 9.0 * rank})] * 9 for rank in range(4)})) == []


def test_a_rank_is_behind_after_more_than_three_of_its_own_intervals() -> None:
    ahead = {rank: printed([1.0] * 10) for rank in range(3)}
    assert list(behind_signs({**ahead, 3: printed([1.0] * 7)})) == []  # at 1,406, the others at 1,409
    assert [(sign.rank, sign.told) for sign in behind_signs({**ahead, 3: printed([1.0] * 6)})] == [
        (3, "it is at step 1,405, the other 3 are at 1,409")
    ]
    slow = [point for point in printed([1.0] * 6) if not point.values["step"] % 5]  # it prints each fifth step alone
    assert list(behind_signs({**ahead, 3: slow})) == []


def test_a_rank_is_silent_when_the_others_have_printed_for_five_minutes_and_it_has_not() -> None:
    others = {rank: printed([1.0] * 40) for rank in range(3)}  # until 390 s
    assert list(silent_signs({**others, 3: printed([1.0] * 10)})) == []  # until 90 s
    assert [(sign.rank, sign.told) for sign in silent_signs({**others, 3: printed([1.0] * 9)})] == [
        (3, "it has printed no number since 09:01:20, the other 3 have")
    ]
    assert list(silent_signs({rank: printed([1.0] * 9) for rank in range(4)})) == []


def test_a_rank_that_usually_prints_seldom_has_ten_times_its_pause() -> None:
    others = {rank: printed([1.0] * 10, every=60) for rank in range(3)}  # until 540 s
    assert list(silent_signs({**others, 3: printed([1.0] * 2, every=120)})) == []


@given(st.dictionaries(st.integers(0, 20), st.floats(-100, 100), max_size=12), st.floats(0, 50))
def test_a_rank_is_unlike_the_others_by_what_lies_between_it_and_their_median(
    values: dict[int, float], floor: float
) -> None:
    expected = {}
    for rank, value in values.items():
        others = [other for each, other in values.items() if each != rank]
        if len(others) >= 2:
            middle = median(others)
            spread = median(abs(other - middle) for other in others)
            if abs(value - middle) > max(6 * spread, floor):
                expected[rank] = middle
    assert dict(unlike(values, lambda _: floor)) == expected
