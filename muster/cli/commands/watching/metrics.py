"""The command metrics."""

from contextlib import aclosing
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muster.cli.commands.logs import ranks_from
from muster.cli.context import answers, session_of
from muster.cli.exit_codes import ExitCode
from muster.cli.options import complete_jobs
from muster.cli.output.documents import Format, line_of
from muster.cli.output.screen import is_terminal, say, say_lines
from muster.domain.telemetry.point import MAX_POINTS, POINTS, RankPoints

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from muster.cli.output.metrics.shown import ChartStyle
    from muster.domain.jobs.view import JobView


class MetricsFormat(StrEnum):
    """How points are given."""

    TABLE = "table"  #: for people
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"  #: a row for each point, a column for each key


@answers
async def metrics(
    context: typer.Context,
    jobs: Annotated[
        list[str],
        typer.Argument(
            metavar="JOB...",
            help="Id, unique beginning of an id, or name of a job; several are compared.",
            autocompletion=complete_jobs,
        ),
    ],
    *,
    key: Annotated[
        list[str] | None, typer.Option("--key", "-k", metavar="KEY", help="Only this key; repeat for more.")
    ] = None,
    rank: Annotated[str | None, typer.Option(help="Only these ranks: `0,2-3` (default: all).")] = None,
    attempt: Annotated[int | None, typer.Option(min=1, help="Number of the attempt (default: the newest).")] = None,
    most: Annotated[
        int,
        typer.Option(min=1, max=MAX_POINTS, metavar="COUNT", help="Points of each rank; of more so many, evenly."),
    ] = POINTS,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the logs of all executions are complete.")
    ] = False,
    plot: Annotated[bool, typer.Option("--plot", "-p", help="Draw a chart of each key.")] = False,
    smooth: Annotated[
        float,
        typer.Option(
            min=0, max=0.99, metavar="WEIGHT", help="Draw the moving average, in which the past weighs so much."
        ),
    ] = 0,
    log_scale: Annotated[bool, typer.Option("--log-scale", help="Draw on a logarithmic scale.")] = False,
    output: Annotated[MetricsFormat, typer.Option("--output", "-o", help="Form of the answer.")] = MetricsFormat.TABLE,
) -> ExitCode:
    """Show the numbers that a job prints: its loss, its speed.

    A point is a line on stdout that is one JSON object with numbers.

    Examples:
      muster metrics train
      muster metrics train -k loss --plot --follow
    """
    ranks = ranks_from(rank) if rank is not None else frozenset()
    _refuse(jobs, output, plot=plot, follow=follow)
    from muster.cli.output.metrics.shown import ChartStyle

    style = ChartStyle(smooth=smooth, logarithmic=log_scale) if plot else None
    async with session_of(context).client() as client:
        known = [await client.jobs.get(job) for job in jobs]
        wanted: dict[str, Any] = {"ranks": ranks, "keys": key or (), "most": most, "attempt": attempt}
        if not follow:
            read = [await client.metrics.read(job, **wanted) for job in known]
            _show(dict(zip(_names(known), read, strict=True)), style, output)
            return ExitCode.SUCCESS
        from muster.cli.follow import attend

        following = _follow(known[0], client.metrics.follow(known[0], **wanted), style, output)
        return ExitCode.SUCCESS if await attend(client, known[0], following) else ExitCode.INTERRUPTED


def _refuse(jobs: list[str], output: MetricsFormat, *, plot: bool, follow: bool) -> None:
    """Refuse options that do not go together."""
    if plot and output is not MetricsFormat.TABLE:
        raise typer.BadParameter("a chart is for people, so it does not go with --output", param_hint="--plot")
    if follow and len(jobs) > 1:
        raise typer.BadParameter("one job is followed at a time", param_hint="--follow")
    if follow and output is MetricsFormat.CSV:
        raise typer.BadParameter(
            "CSV has all points at once, with a column for each key; --output json gives each point as it comes",
            param_hint="--follow",
        )


def _names(jobs: "list[JobView]") -> list[str]:
    """What jobs are called beside each other: by name, or by id where two have the same name."""
    names = [job.spec.name for job in jobs]
    return names if len(set(names)) == len(names) else [str(job.id) for job in jobs]


def _show(found: dict[str, tuple[RankPoints, ...]], style: "ChartStyle | None", output: MetricsFormat) -> None:
    from muster.cli.output.metrics import shown

    if output is MetricsFormat.CSV:
        shown.print_csv(found)
    elif output is not MetricsFormat.TABLE:
        shown.print_documents(found, Format(output))
    elif style is not None:
        shown.show_charts(found, style)
    else:
        shown.show_table(found)


async def _follow(
    job: "JobView", new: "AsyncGenerator[RankPoints, None]", style: "ChartStyle | None", output: MetricsFormat
) -> bool:
    """Each point as it comes, or charts that grow; True once all logs are complete."""
    from muster.cli.output.metrics import shown

    [name] = _names([job])
    ranks: dict[int, RankPoints] = {}
    async with aclosing(new) as pieces:
        async for piece in pieces:
            if style is None:
                _print_each(name, piece, output)
                continue
            before = ranks.get(piece.rank)
            is_more = before is not None and before.attempt == piece.attempt
            ranks[piece.rank] = before.followed_by(piece) if before and is_more else piece
            if is_terminal():
                shown.draw_charts({name: _by_rank(ranks)}, style)
    if style is not None:
        shown.show_charts({name: _by_rank(ranks)}, style)
    return True


def _by_rank(ranks: dict[int, RankPoints]) -> list[RankPoints]:
    return [ranks[rank] for rank in sorted(ranks)]


def _print_each(name: str, piece: RankPoints, output: MetricsFormat) -> None:
    from muster.cli.output.metrics.tables import point_line

    head = "- " if output is MetricsFormat.YAML else ""
    for point in piece.points:
        if output is MetricsFormat.TABLE:
            say(point_line(piece.rank, point), flush=True)
        else:
            found = {"job": name, "attempt": piece.attempt, "rank": piece.rank, "point": point}
            say_lines(head + line_of(found), flush=True)
