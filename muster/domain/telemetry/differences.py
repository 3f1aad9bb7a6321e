"""Which rank differs: rules that say what of one rank is unlike all others of its kind, at one time.

A rank is compared with the others of its role, of which at least two have to be there. What is unlike once is a sign;
signs that stay become a difference, see `difference_book`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import pairwise
from statistics import median

from muster.domain.telemetry.point import STEP_KEYS, Point
from muster.domain.telemetry.quantities import Amounts, Quantity

LEAST_COMPARED = 3
"""Ranks that have to tell something, for one of them to be unlike the others."""
SPREADS = 6
"""How many times as far from the median as the others usually are a rank has to be."""
POINTS_UNLIKE = 5
"""Points in a row of which each has to be unlike those of the others at the same step."""
METRIC_FLOOR = 0.05
"""The part of the median by which a printed number has to be off at least."""
INTERVALS_BEHIND = 3
"""Intervals between two of its points by which a rank has to be behind."""
USUAL_PAUSES = 10
"""Usual pauses between two of its points for which a rank has to be silent."""
LEAST_SILENCE = timedelta(minutes=5)
"""The time for which it has to be silent at least."""

_GIB = 1 << 30

FLOORS: Mapping[Quantity, float] = {
    Quantity.BUSY: 0.15,
    Quantity.WATTS: 40.0,
    Quantity.CLOCK_MHZ: 100.0,
    Quantity.GPU_MEMORY: 2.0 * _GIB,
}
"""How far from the others the GPUs of a rank have to be at least, each of them."""
FLOORS_WITHOUT_GPUS: Mapping[Quantity, float] = {Quantity.CPUS: 0.5, Quantity.MEMORY: 2.0 * _GIB}
"""The same of ranks without GPUs. With them, what they do on CPUs differs where nothing is wrong: rank 0 saves."""
_OF_SEVERAL_GPUS = frozenset({Quantity.WATTS, Quantity.GPU_MEMORY})
"""Quantities that are told of all GPUs of a rank together."""


class DifferenceKind(StrEnum):
    """What can be unlike."""

    USAGE = "usage"  #: what its GPUs, or without them its CPUs and memory, do
    METRIC = "metric"  #: a number that it prints
    BEHIND = "behind"  #: how far it has come
    SILENT = "silent"  #: it prints nothing any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """Something of a rank is unlike the others now."""

    rank: int
    kind: DifferenceKind
    what: str = ""
    """The quantity, or the key of the number; empty for the other kinds."""
    told: str
    """One sentence for people, without the rank, that begins with what it is of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRank:
    """What a rank uses now, to be compared with others of its role."""

    amounts: Amounts
    gpus: int = 0
    """How many it has."""


RankPointsNow = Mapping[int, Sequence[Point]]
"""The newest points of each rank, the last one last."""


def unlike(values: Mapping[int, float], floor: Callable[[float], float]) -> Iterator[tuple[int, float]]:
    """Ranks whose value is far from those of all others, and the median of these.

    Far is more than six times as far as the others usually are, and more than `floor` says of their median.
    """
    if len(values) < LEAST_COMPARED:
        return
    ordered = sorted(values.values())
    for rank, value in values.items():
        place = bisect_left(ordered, value)
        middle = _median_without(ordered, place)
        distance = abs(value - middle)
        if distance > floor(middle):  # few are, so that what follows is seldom done
            others = [*ordered[:place], *ordered[place + 1 :]]
            if distance > SPREADS * median(abs(other - middle) for other in others):
                yield rank, middle


def usage_signs(uses: Mapping[int, ComparedRank]) -> Iterator[Sign]:
    """What the GPUs of a rank do that those of the others do not, or the reverse; without GPUs its CPUs and memory."""
    floors = FLOORS if any(use.gpus for use in uses.values()) else FLOORS_WITHOUT_GPUS
    for quantity, floor in floors.items():
        values = {rank: _of_each(use, quantity) for rank, use in uses.items() if quantity in use.amounts}
        for rank, middle in unlike(values, lambda _, least=floor: least):  # type: ignore[misc]  # mypy finds no type for it
            told = _USAGE_TOLD[quantity](values[rank], middle)
            yield Sign(rank=rank, kind=DifferenceKind.USAGE, what=quantity.value, told=told)


def metric_signs(points: RankPointsNow) -> Iterator[Sign]:
    """Numbers under a key that were unlike those of the others at the same steps, so many times in a row."""
    by_key: dict[str, dict[int, dict[float, float]]] = {}
    for rank, several in points.items():
        for point in several:
            if (step := step_of(point)) is not None:
                for key, value in point.values.items():
                    if key not in STEP_KEYS:
                        by_key.setdefault(key, {}).setdefault(rank, {})[step] = value
    for key, by_rank in by_key.items():
        off = {step: _off_at(by_rank, step) for step in {step for steps in by_rank.values() for step in steps}}
        for rank, steps in by_rank.items():
            compared = [step for step in sorted(steps) if off[step] is not None][-POINTS_UNLIKE:]
            if len(compared) == POINTS_UNLIKE and all(rank in (off[step] or ()) for step in compared):
                others = len(by_rank) - 1
                told = f"its {key} left the band of the other {others} at step {compared[0]:,.16g}"
                yield Sign(rank=rank, kind=DifferenceKind.METRIC, what=key, told=told)


def behind_signs(points: RankPointsNow) -> Iterator[Sign]:
    """Ranks whose newest step is several of their own intervals behind that of the others."""
    steps = {rank: found for rank, several in points.items() if (found := _steps(several))}
    newest = {rank: found[-1] for rank, found in steps.items()}
    for rank, own in newest.items():
        others = [step for other, step in newest.items() if other != rank]
        if len(others) < LEAST_COMPARED - 1 or (interval := _usual(steps[rank])) is None:
            continue
        if (middle := median(others)) - own > INTERVALS_BEHIND * interval:
            told = f"it is at step {own:,.16g}, the other {len(others)} are at {middle:,.16g}"
            yield Sign(rank=rank, kind=DifferenceKind.BEHIND, told=told)


def silent_signs(points: RankPointsNow) -> Iterator[Sign]:
    """Ranks that have printed no number for much longer than they usually take, while the others have."""
    times = {rank: [point.time.timestamp() for point in several] for rank, several in points.items() if several}
    for rank, own in times.items():
        others = [several[-1] for other, several in times.items() if other != rank]
        if len(others) < LEAST_COMPARED - 1:
            continue
        limit = max(USUAL_PAUSES * (_usual(own) or 0.0), LEAST_SILENCE.total_seconds())
        if median(others) - own[-1] > limit:
            told = f"it has printed no number since {points[rank][-1].time:%H:%M:%S}, the other {len(others)} have"
            yield Sign(rank=rank, kind=DifferenceKind.SILENT, told=told)


def step_of(point: Point) -> float | None:
    """How far user code was; None: it does not say."""
    return next((point.values[key] for key in STEP_KEYS if key in point.values), None)


def _median_without(ordered: Sequence[float], place: int) -> float:
    """The median of sorted values without the one at a place."""
    half = (len(ordered) - 1) // 2
    upper = ordered[half + (half >= place)]
    return upper if len(ordered) % 2 == 0 else (upper + ordered[half - 1 + (half - 1 >= place)]) / 2


def _off_at(by_rank: Mapping[int, Mapping[float, float]], step: float) -> frozenset[int] | None:
    """The ranks whose number is off at a step; None: too few were there."""
    values = {rank: steps[step] for rank, steps in by_rank.items() if step in steps}
    if len(values) < LEAST_COMPARED:
        return None
    return frozenset(rank for rank, _ in unlike(values, lambda middle: METRIC_FLOOR * abs(middle)))


def _of_each(use: ComparedRank, quantity: Quantity) -> float:
    """What one GPU of a rank does, where all were told of together."""
    amount = use.amounts[quantity]
    return amount / use.gpus if quantity in _OF_SEVERAL_GPUS and use.gpus else amount


def _steps(points: Sequence[Point]) -> list[float]:
    return [step for point in points if (step := step_of(point)) is not None]


def _usual(values: Sequence[float]) -> float | None:
    """What usually lies between two values; None where there are too few."""
    between = [after - before for before, after in pairwise(values) if after > before]
    return median(between) if between else None


_USAGE_TOLD: Mapping[Quantity, Callable[[float, float], str]] = {
    Quantity.BUSY: lambda own, others: f"its GPUs are busy {own:.0%} of the time, those of the others {others:.0%}",
    Quantity.WATTS: lambda own, others: f"its GPUs draw {own:.0f} W each, those of the others {others:.0f} W",
    Quantity.CLOCK_MHZ: lambda own, others: f"its GPUs run at {own:.0f} MHz, those of the others at {others:.0f} MHz",
    Quantity.GPU_MEMORY: lambda own, others: (
        f"its GPUs hold {own / _GIB:.1f} GiB each, those of the others {others / _GIB:.1f} GiB"
    ),
    Quantity.CPUS: lambda own, others: f"it keeps {own:.1f} CPUs busy, the others {others:.1f}",
    Quantity.MEMORY: lambda own, others: f"it holds {own / _GIB:.1f} GiB, the others {others / _GIB:.1f} GiB",
}
