"""Points on the screen: as a table, as charts, or as a document."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from muster.cli.output.documents import Format, text_of
from muster.cli.output.metrics.chart import ChartSpan, chart
from muster.cli.output.metrics.series import FoundPoints, axis_of, keys_of, ranks_in, series_of, smoothed
from muster.cli.output.metrics.tables import HEADERS, csv_of, documents_of, rows_of
from muster.cli.output.screen import colour_wanted, draw_status, print_dim, say_lines, screen

_HEIGHT = 14
"""Lines of a chart."""
_LIVE_LINES = 20
"""Lines of all charts together that are drawn again and again."""
_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "bright_red", "bright_cyan", "bright_yellow")
_NOTHING = 'no point was printed so far; a point is a line on stdout such as {"step": 1, "loss": 0.5}'
_OTHERS = "no point so far has any of these keys; leave out --key to see what there is"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartStyle:
    """How charts are drawn."""

    smooth: float = 0
    """Weight of the past in the moving average; 0: the numbers as they are."""
    logarithmic: bool = False


def show_table(found: FoundPoints) -> None:
    """Print the last number of each key, and how it went."""
    from muster.cli.output.tables import listing

    ranks = ranks_in(found)
    rows = list(rows_of(found, axis_of(ranks)))
    if not rows:
        print_dim(_OTHERS if any(rank.all for rank in ranks) else _NOTHING)
        return
    screen().print(listing(HEADERS, rows))


def show_charts(found: FoundPoints, style: ChartStyle) -> None:
    """Print a chart of each key."""
    from muster.cli.output.tables import joined, shown

    drawn = _charts(found, style, _HEIGHT)
    if not drawn:
        print_dim(_OTHERS if any(rank.all for rank in ranks_in(found)) else _NOTHING)
    console, is_coloured = screen(), colour_wanted()
    for line in drawn:
        console.print(joined(*(shown(span.text, _style(span) if is_coloured else "") for span in line)), soft_wrap=True)


def draw_charts(found: FoundPoints, style: ChartStyle) -> None:
    """Draw the charts in the last lines of the terminal, in the place of those before."""
    ranks = ranks_in(found)
    charts = max(1, len(keys_of(ranks, axis_of(ranks))))
    drawn = _charts(found, style, max(3, _LIVE_LINES // charts - 4))
    draw_status(*("".join(span.text for span in line) for line in drawn))


def print_documents(found: FoundPoints, form: Format) -> None:
    """Print all points as one document."""
    say_lines(text_of([each for job, ranks in found.items() for each in documents_of(job, ranks)], form))


def print_csv(found: FoundPoints) -> None:
    """Print all points as rows."""
    say_lines(csv_of(found))


def _style(span: ChartSpan) -> str:
    return "" if span.series is None else _COLOURS[span.series % len(_COLOURS)]


def _charts(found: FoundPoints, style: ChartStyle, height: int) -> Sequence[Sequence[ChartSpan]]:
    ranks = ranks_in(found)
    axis, width = axis_of(ranks), shutil.get_terminal_size().columns
    lines: list[Sequence[ChartSpan]] = []
    for key in keys_of(ranks, axis):
        series = [smoothed(each, style.smooth) for each in series_of(found, key, axis)]
        lines += chart(key, series, axis, width=width - 1, height=height, logarithmic=style.logarithmic)
    return lines
