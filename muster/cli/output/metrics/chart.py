"""Charts of characters: lines in Braille dots, and sparklines.

A cell has two columns of four dots: https://www.unicode.org/charts/PDF/U2800.pdf.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import log10
from sys import float_info
from typing import NamedTuple

from muster.cli.output.metrics.series import MetricSeries

SPARK = "▁▂▃▄▅▆▇█"
_BRAILLE = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bit of each dot in a cell, by row and column."""
_NAMED = 8
"""Series that are named below a chart."""
_LABEL = 11
"""Columns of the numbers beside a chart."""


class ChartSpan(NamedTuple):
    """A piece of a line of a chart."""

    text: str
    series: int | None = None
    """Which series it is of; None: of none."""


def number_text(value: float) -> str:
    """A number in at most eleven characters: `0.4123`, `1200`, `1.2e+07`."""
    if value == int(value) and abs(value) < 1e7:  # noqa: PLR2004 - seven digits are read at a glance
        return str(int(value))
    return f"{value:.4g}"


def _power_text(exponent: float) -> str:
    """Ten to this power, which may be more than a float holds."""
    return number_text(10**exponent) if exponent < float_info.max_10_exp else f"1e+{exponent:.0f}"


def sparkline(values: Sequence[float], width: int) -> str:
    """How numbers went, in so many characters or fewer; each is the mean of equally many numbers."""
    cells = [
        values[len(values) * cell // width : max(len(values) * (cell + 1) // width, len(values) * cell // width + 1)]
        for cell in range(width)
    ]
    means = [sum(value / len(cell) for value in cell) for cell in cells] if len(values) > width else list(values)
    bounds = min(means, default=0.0), max(means, default=0.0)
    return "".join(SPARK[_scaled(mean, bounds, len(SPARK) - 1)] for mean in means)


def chart(
    title: str, series: Sequence[MetricSeries], axis: str, *, width: int, height: int, logarithmic: bool = False
) -> Sequence[Sequence[ChartSpan]]:
    """Lines that draw these series over the axis; `logarithmic` leaves out what is not above zero."""
    drawn = [
        [(at, log10(y) if logarithmic else y) for at, y in each.places if y > 0 or not logarithmic] for each in series
    ]
    places = [place for each in drawn for place in each]
    if not places:
        return [[ChartSpan(f"{title}: nothing is above zero, so there is no logarithm to draw")]]
    left, right = _bounds(at for at, _ in places)
    low, high = _bounds(y for _, y in places)
    plot = _Plot(max(8, width - _LABEL - 2), max(2, height), (left, right), (low, high))
    for number, each in enumerate(drawn):
        plot.draw(number, each)
    lines: list[Sequence[ChartSpan]] = [[ChartSpan(f"{title}{' (logarithmic)' if logarithmic else ''}")]]
    for row, spans in enumerate(plot.rows()):
        down = row / (plot.height - 1)
        value = high * (1 - down) + low * down
        is_told = row in {0, plot.height // 2, plot.height - 1}
        shown = (_power_text(value) if logarithmic else number_text(value)) if is_told else ""
        lines.append([ChartSpan(f"{shown:>{_LABEL}} ┤" if shown else " " * _LABEL + " │"), *spans])
    lines.append([ChartSpan(" " * _LABEL + " └" + "─" * plot.width)])
    first, last = number_text(left), number_text(right)
    lines.append([ChartSpan(" " * (_LABEL + 2) + first + f"{f'{axis} {last}':>{max(0, plot.width - len(first))}}")])
    if len(series) > 1:
        lines.append(list(_legend(series)))
    return lines


def _legend(series: Sequence[MetricSeries]) -> Iterator[ChartSpan]:
    yield ChartSpan(" " * (_LABEL + 2))
    for number, each in enumerate(series[:_NAMED]):
        yield ChartSpan(f"━ {each.label}  ", number)
    if len(series) > _NAMED:
        yield ChartSpan(f"and {len(series) - _NAMED} more")


def _bounds(values: Iterable[float]) -> tuple[float, float]:
    """The least and the most, never the same."""
    found = list(values)
    least, most = min(found), max(found)
    if least == most:
        margin = abs(least) / 10 or 1.0
        return max(least - margin, -float_info.max), min(most + margin, float_info.max)
    return least, most


class _Plot:
    """Cells of dots, each of the series that was drawn there last."""

    def __init__(self, width: int, height: int, across: tuple[float, float], up: tuple[float, float]) -> None:
        self.width, self.height = width, height
        self._across, self._up = across, up
        self._cells: dict[tuple[int, int], tuple[int, int]] = {}

    def draw(self, series: int, places: Sequence[tuple[float, float]]) -> None:
        """A line through these places, or a dot where there is but one."""
        before: tuple[int, int] | None = None
        for at, y in places:
            dot = self._dot(at, y)
            for x, row in _line(before or dot, dot):
                self._set(series, x, row)
            before = dot

    def rows(self) -> Iterator[Sequence[ChartSpan]]:
        """The lines of the plot, from the top."""
        for row in range(self.height):
            spans: list[ChartSpan] = []
            for column in range(self.width):
                bits, series = self._cells.get((column, row), (0, None))
                text = chr(_BRAILLE + bits) if bits else " "
                if spans and (spans[-1].series == series or not bits):
                    spans[-1] = ChartSpan(spans[-1].text + text, spans[-1].series)
                else:
                    spans.append(ChartSpan(text, series))
            yield spans

    def _dot(self, at: float, y: float) -> tuple[int, int]:
        """Column and row of a place in dots, from the upper left."""
        return (
            _scaled(at, self._across, 2 * self.width - 1),
            4 * self.height - 1 - _scaled(y, self._up, 4 * self.height - 1),
        )

    def _set(self, series: int, x: int, row: int) -> None:
        cell = (x // 2, row // 4)
        bits, _ = self._cells.get(cell, (0, series))
        self._cells[cell] = (bits | _DOTS[row % 4][x % 2], series)


def _scaled(value: float, bounds: tuple[float, float], most: int) -> int:
    """Where a value lies between its bounds, from 0 to `most`; safe for spans that no float holds."""
    low, high = bounds
    half = high / 2 - low / 2
    return round((value / 2 - low / 2) / half * most) if half else 0


def _line(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """The dots of a straight line (Bresenham)."""
    (x, y), (to_x, to_y) = start, end
    across, up = abs(to_x - x), -abs(to_y - y)
    step_x, step_y = (1 if to_x > x else -1), (1 if to_y > y else -1)
    error = across + up
    while True:
        yield x, y
        if (x, y) == (to_x, to_y):
            return
        twice = 2 * error
        if twice >= up:
            error += up
            x += step_x
        if twice <= across:
            error += across
            y += step_y
