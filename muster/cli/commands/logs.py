"""The command logs."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.exit_codes import ExitCode
from muster.cli.options import JobName, Output, time_of
from muster.cli.output.documents import Format, line_of
from muster.cli.output.log_printer import LogPrinter, style_for
from muster.cli.output.logs import LogStyle
from muster.cli.output.screen import say_lines
from muster.domain.gangs.ranks import parse_ranks
from muster.domain.jobs.view import LogLine


@answers
async def logs(
    context: typer.Context,
    job: JobName,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the logs of all executions are complete.")
    ] = False,
    rank: Annotated[str | None, typer.Option(help="Only these ranks: `0,2-3` (default: all).")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only what was printed since `10m` ago, or since an ISO time.")
    ] = None,
    tail: Annotated[
        int | None, typer.Option(min=0, metavar="COUNT", help="Only the last lines of each rank, so many of them.")
    ] = None,
    attempt: Annotated[int | None, typer.Option(min=1, help="Number of the attempt (default: the newest).")] = None,
    timestamps: Annotated[
        bool, typer.Option("--timestamps", "-t", help="Begin each line with the local time at which it was printed.")
    ] = False,
    prefix: Annotated[
        bool, typer.Option(help="Begin each line with the rank that printed it; `!` marks stderr.")
    ] = True,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Pass on every byte as it was printed, even to a terminal, on which it may act."),
    ] = False,
    output: Output = Format.TABLE,
) -> ExitCode:
    """Print what the executions of a job have printed.

    Lines of several ranks are merged by time.

    Examples:
      muster logs -f train
      muster logs j7k2 --rank 0,2-3 --since 10m
    """
    ranks = ranks_from(rank) if rank is not None else ()
    earliest = since_from(since, datetime.now(UTC)) if since is not None else None
    async with session_of(context).client() as client:
        known = await client.jobs.get(job)
        style = style_for(known, prefix=prefix, timestamps=timestamps, raw=raw)
        lines = client.jobs.logs(known, ranks=ranks, since=earliest, tail=tail, follow=follow, attempt=attempt)
        if not follow:
            await (_print_all(lines, style) if output.for_people else _print_documents(lines, output))
            return ExitCode.SUCCESS
        from muster.cli.follow import attend, follow_logs

        printing = follow_logs(client, known, lines, style) if output.for_people else _print_documents(lines, output)
        return ExitCode.SUCCESS if await attend(client, known, printing) else ExitCode.INTERRUPTED


def ranks_from(text: str) -> frozenset[int]:
    """The ranks that `0,2-3` names."""
    try:
        return parse_ranks(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--rank") from None


def since_from(text: str, now: datetime) -> datetime:
    """The moment that `10m` (ago) or an ISO time (local without an offset) names."""
    said = time_of(text)
    if said is None:
        hint = f"{text!r} is neither a duration such as 10m nor a time such as 2026-11-21T09:30"
        raise typer.BadParameter(hint, param_hint="--since")
    return now - said if isinstance(said, timedelta) else said


async def _print_all(lines: AsyncGenerator[LogLine, None], style: LogStyle) -> bool:
    with LogPrinter(style) as printer:
        async with aclosing(lines):
            async for line in lines:
                printer.print(line)
    return True


async def _print_documents(lines: AsyncGenerator[LogLine, None], form: Format) -> bool:
    """One JSON document a line; for YAML they are the items of one list."""
    head = "- " if form is Format.YAML else ""
    async with aclosing(lines):
        async for line in lines:
            say_lines(head + line_of(line), flush=True)
    return True
