"""The command that tells what was used over time: usage."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.options import time_of
from muster.cli.output.documents import Format, SheetFormat, text_of
from muster.cli.output.screen import say, say_lines, screen
from muster.domain.usage import UsageBy


@answers
async def usage(
    context: typer.Context,
    *,
    by: Annotated[UsageBy, typer.Option(help="What each row is about.")] = UsageBy.PROJECT,
    since: Annotated[
        str, typer.Option(metavar="TIME", help="From when on: `7d` ago, an ISO time, or `all` that is kept.")
    ] = "30d",
    until: Annotated[
        str, typer.Option(metavar="TIME", help="Until when: `1d` ago, or an ISO time (default: now).")
    ] = "",
    project: Annotated[str, typer.Option(help="Only this project (default: all that you may look at).")] = "",
    pool: Annotated[str, typer.Option(help="Only this pool (default: all pools).")] = "",
    output: Annotated[
        SheetFormat, typer.Option("--output", "-o", help="Form of the answer; `csv` is for spreadsheets.")
    ] = SheetFormat.TABLE,
) -> None:
    """Show what was used of GPUs, CPUs and memory.

    Deleted jobs count, and so do those that run.

    Examples:
      muster usage --by user --since 7d
      muster usage --by job --project vision --since 2026-11-01 --until 2026-12-01 -o csv
    """
    now = datetime.now(UTC)
    async with session_of(context).client() as client:
        report = await client.projects.usage(
            by=by,
            since=None if since == "all" else _ago(since, now, "--since"),
            until=_ago(until, now, "--until") if until else None,
            project=project,
            pool=pool,
        )
    from muster.cli.commands.sharing.usage_tables import usage_csv, usage_document, usage_table

    match output:
        case SheetFormat.CSV:
            say_lines(usage_csv(report))
        case SheetFormat.JSON | SheetFormat.YAML:
            say_lines(text_of(usage_document(report), Format(output.value)))
        case SheetFormat.TABLE | SheetFormat.WIDE:
            screen(whole=output is SheetFormat.WIDE).print(usage_table(report))
    if report.kept_since is not None and (report.since is None or report.since < report.kept_since):
        say(f"what ended before {report.kept_since:%Y-%m-%d %H:%M} UTC is not kept any more", err=True)


def _ago(text: str, now: datetime, option: str) -> datetime:
    """The time that `7d` (ago) or an ISO time (local without a zone) names."""
    said = time_of(text)
    if said is None:
        hint = f"{text!r} is neither a time ago such as 7d, nor a time such as 2026-11-01"
        raise typer.BadParameter(hint, param_hint=option)
    return now - said if isinstance(said, timedelta) else said
