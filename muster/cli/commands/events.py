"""The command events."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import fields
from typing import Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.exit_codes import ExitCode
from muster.cli.options import JobName, Output
from muster.cli.output.documents import Document, Format, document, line_of, text_of
from muster.cli.output.screen import say_lines
from muster.cli.output.units import time_text
from muster.domain.event import JobEvent, JobEventKind
from muster.domain.visible_text import visible

_KIND = max(map(len, JobEventKind))
_HEAD = f"{'TIME':<19}  ATTEMPT  {'EVENT':<{_KIND}}  WHAT\n"


@answers
async def events(
    context: typer.Context,
    job: JobName,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
    output: Output = Format.TABLE,
) -> ExitCode:
    """Tell what happened to a job, from submit to end.

    Examples:
      muster events train
      muster events -f -o json train
    """
    async with session_of(context).client() as client:
        told = client.jobs.events(job, follow=follow)
        if not follow:
            async with aclosing(told):
                found = [event async for event in told]
            say_lines(_HEAD + "".join(map(_row, found)) if output is Format.TABLE else text_of(_all(found), output))
            return ExitCode.SUCCESS
        from muster.cli.follow import attend

        known = await client.jobs.get(job)
        printed = await attend(client, known, _print_each(told, output))
        return ExitCode.SUCCESS if printed else ExitCode.INTERRUPTED


async def _print_each(told: AsyncGenerator[JobEvent, None], output: Format) -> bool:
    """Each event as it comes; one JSON document a line, which for YAML are the items of one list."""
    head = "- " if output is Format.YAML else ""
    if output is Format.TABLE:
        say_lines(_HEAD, flush=True)
    async with aclosing(told):
        async for event in told:
            say_lines(_row(event) if output is Format.TABLE else head + line_of(_document(event)), flush=True)
    return True


def _row(event: JobEvent) -> str:
    return f"{time_text(event.at)}  {event.attempt:>7}  {event.kind:<{_KIND}}  {visible(event.text)}\n"


def _all(events: list[JobEvent]) -> list[dict[str, Document]]:
    return [_document(event) for event in events]


def _document(event: JobEvent) -> dict[str, Document]:
    """An event as data, with its id first."""
    return {"id": event.id, **{field.name: document(getattr(event, field.name)) for field in fields(event)}}
