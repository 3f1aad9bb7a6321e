"""Bands: of a gang at one time the least, the median and the greatest over its ranks, and which ranks those are."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from statistics import median
from typing import NamedTuple

from console.telemetry.history.rolling import span_end
from muster.domain.telemetry.quantities import Amounts, Quantity


class Band(NamedTuple):
    """One quantity over the ranks of a gang."""

    least: float
    least_rank: int
    median: float
    most: float
    most_rank: int


class GangBands(NamedTuple):
    """All quantities of a gang in the span that ended at a time."""

    at: datetime
    span: timedelta
    bands: Mapping[Quantity, Band]


@dataclass(frozen=True, slots=True, kw_only=True)
class BandSeries:
    """One quantity over the ranks of an attempt, in columns."""

    quantity: Quantity
    attempt: int
    times: Sequence[datetime]
    """The end of each span. Where nobody told anything, there is none."""
    least: Sequence[float]
    least_ranks: Sequence[int]
    """The ranks of `least`."""
    median: Sequence[float]
    """The mean of the medians within a span."""
    most: Sequence[float]
    most_ranks: Sequence[int]
    """The ranks of `most`."""


def bands_of(used: Mapping[int, Amounts]) -> Mapping[Quantity, Band]:
    """The bands of what ranks used; of a quantity that no rank tells there is none."""
    by_quantity: dict[Quantity, list[tuple[float, int]]] = {}
    for rank, amounts in used.items():
        for quantity, amount in amounts.items():
            by_quantity.setdefault(quantity, []).append((amount, rank))
    return {quantity: _band(values) for quantity, values in by_quantity.items()}


def joined_bands(bands: Iterable[GangBands], width: timedelta) -> list[GangBands]:
    """Bands in the order of time, each of all those that ended within one of the spans of this width since 1970."""
    ordered = sorted(bands, key=lambda each: each.at)
    return [_one(tuple(several), end) for end, several in groupby(ordered, lambda each: span_end(each.at, width))]


def band_series(bands: Sequence[GangBands], attempt: int, wanted: Sequence[Quantity]) -> list[BandSeries]:
    """A series for each quantity that is wanted, or for all; those of which nobody told are left out."""
    found = []
    for quantity in Quantity:
        cells = [(each.at, each.bands[quantity]) for each in bands if quantity in each.bands]
        if cells and (not wanted or quantity in wanted):
            found.append(
                BandSeries(
                    quantity=quantity,
                    attempt=attempt,
                    times=[at for at, _ in cells],
                    least=[band.least for _, band in cells],
                    least_ranks=[band.least_rank for _, band in cells],
                    median=[band.median for _, band in cells],
                    most=[band.most for _, band in cells],
                    most_ranks=[band.most_rank for _, band in cells],
                )
            )
    return found


def bands_to_item(bands: GangBands) -> bytes:
    """Bands as they are kept."""
    cells = {quantity.value: list(band) for quantity, band in bands.bands.items()}
    return json.dumps([bands.at.timestamp(), bands.span.total_seconds(), cells], separators=(",", ":")).encode()


def bands_from_item(item: bytes) -> GangBands | None:
    """Bands that were kept; None: it is none."""
    try:
        at, span, cells = json.loads(item)
        known = {Quantity(name): Band(*values) for name, values in cells.items() if name in _NAMES}
        return GangBands(datetime.fromtimestamp(at, UTC), timedelta(seconds=span), known)
    except (ValueError, TypeError, AttributeError, OverflowError):
        return None


_NAMES = frozenset(quantity.value for quantity in Quantity)


def _band(values: Sequence[tuple[float, int]]) -> Band:
    least, most = min(values), max(values, key=lambda each: (each[0], -each[1]))
    return Band(*least, median(amount for amount, _ in values), *most)


def _one(several: Sequence[GangBands], at: datetime) -> GangBands:
    by_quantity: dict[Quantity, list[tuple[Band, float]]] = {}
    for each in several:
        for quantity, band in each.bands.items():
            by_quantity.setdefault(quantity, []).append((band, max(each.span.total_seconds(), 1e-3)))
    span = sum((each.span for each in several), timedelta())
    return GangBands(at, span, {quantity: _joined(bands) for quantity, bands in by_quantity.items()})


def _joined(bands: Sequence[tuple[Band, float]]) -> Band:
    least = min((band for band, _ in bands), key=lambda band: band.least)
    most = max((band for band, _ in bands), key=lambda band: band.most)
    middle = sum(band.median * weight for band, weight in bands) / sum(weight for _, weight in bands)
    return Band(least.least, least.least_rank, middle, most.most, most.most_rank)
