"""The command events."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Generic, NamedTuple, TypeVar

import typer

from muster.cli.context import answers, session_of
from muster.cli.exit_codes import ExitCode
from muster.cli.options import Output, complete_jobs, complete_nodes
from muster.cli.output.documents import Format, line_of, text_of
from muster.cli.output.screen import say_lines
from muster.cli.output.units import time_text
from muster.documents import Document, document
from muster.domain.event import FleetEvent, FleetEventKind, JobEvent, JobEventKind, NodeEvent, NodeEventKind
from muster.domain.notifications.cloud_event import cloud_event
from muster.domain.notifications.event_types import sentence_of
from muster.domain.notifications.happening import Happening
from muster.domain.visible_text import visible

if TYPE_CHECKING:
    from muster.client.client import Client

EventT = TypeVar("EventT", JobEvent, NodeEvent, FleetEvent, Happening)

_JOB_KIND = max(map(len, JobEventKind))
_STORY_KIND = max(map(len, (*NodeEventKind, *FleetEventKind)))
_ANY_KIND = max(_JOB_KIND, _STORY_KIND)


class _Table(NamedTuple, Generic[EventT]):
    """How events are listed for people."""

    head: str
    row: Callable[[EventT], str]


@answers
async def events(
    context: typer.Context,
    job: Annotated[
        str | None,
        typer.Argument(
            metavar="JOB",
            help="Id, unique beginning of an id, or name of a job (the newest of that name).",
            autocompletion=complete_jobs,
        ),
    ] = None,
    *,
    node: Annotated[
        str | None,
        typer.Option(
            metavar="NODE",
            help="Name of a node whose story is told instead; it may have been removed.",
            autocompletion=complete_nodes,
        ),
    ] = None,
    fleet: Annotated[bool, typer.Option("--fleet", help="Tell the story of the whole fleet instead.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Tell what happens to all jobs, nodes and the fleet instead.")
    ] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Go on until the job has ended; of anything else until Ctrl-C."),
    ] = False,
    output: Output = Format.TABLE,
) -> ExitCode:
    """Tell what happened to a job, a node, the fleet or all of them.

    Examples:
      muster events -f train
      muster events --all -f
    """
    if sum((job is not None, node is not None, fleet, everything)) != 1:
        raise typer.BadParameter("name one of them: a job, a node with --node, the fleet with --fleet, or --all")
    async with session_of(context).client() as client:
        if job is not None:
            return await _tell_of_job(client, job, output, follow=follow)
        if node is not None:
            await _print(client.nodes.events(node, follow=follow), _OF_NODES, output, at_once=follow)
        elif everything:
            await _print(client.events.all(follow=follow), _OF_ALL, output, at_once=follow)
        else:
            await _print(client.fleet.events(follow=follow), _OF_FLEET, output, at_once=follow)
        return ExitCode.SUCCESS


async def _tell_of_job(client: "Client", job: str, output: Format, *, follow: bool) -> ExitCode:
    told = client.jobs.events(job, follow=follow)
    if not follow:
        await _print(told, _OF_JOBS, output, at_once=False)
        return ExitCode.SUCCESS
    from muster.cli.follow import attend

    known = await client.jobs.get(job)
    printed = await attend(client, known, _print(told, _OF_JOBS, output, at_once=True))
    return ExitCode.SUCCESS if printed else ExitCode.INTERRUPTED


async def _print(told: AsyncGenerator[EventT, None], table: _Table[EventT], output: Format, *, at_once: bool) -> bool:
    """All events together, or each `at_once` as it comes; True once all were printed."""
    async with aclosing(told):
        if at_once:
            await _print_each(told, table, output)
            return True
        found = [event async for event in told]
    listed = table.head + "".join(map(table.row, found))
    say_lines(listed if output is Format.TABLE else text_of([_document(event) for event in found], output))
    return True


async def _print_each(told: AsyncGenerator[EventT, None], table: _Table[EventT], output: Format) -> None:
    """Each event as it comes; one JSON document a line, which for YAML are the items of one list."""
    head = "- " if output is Format.YAML else ""
    if output is Format.TABLE:
        say_lines(table.head, flush=True)
    async for event in told:
        say_lines(table.row(event) if output is Format.TABLE else head + line_of(_document(event)), flush=True)


def _job_row(event: JobEvent) -> str:
    return f"{time_text(event.at)}  {event.attempt:>7}  {event.kind:<{_JOB_KIND}}  {visible(event.text)}\n"


def _story_row(event: NodeEvent | FleetEvent) -> str:
    by = f" (by {event.by})" if event.by else ""
    return f"{time_text(event.at)}  {event.kind:<{_STORY_KIND}}  {visible(event.sentence + by)}\n"


def _any_row(told: Happening) -> str:
    event = told.event
    by = f" (by {event.by})" if event.by and not isinstance(event, JobEvent) else ""
    what = visible(f"{_subject(told)}: {sentence_of(event)}{by}")
    return f"{time_text(event.at)}  {event.kind:<{_ANY_KIND}}  {what}\n"


def _subject(told: Happening) -> str:
    match told.event:
        case JobEvent(job=job, attempt=attempt):
            return f"{job if told.job is None else told.job.name} attempt {attempt}"
        case NodeEvent(node=node):
            return node
        case FleetEvent():
            return "fleet"


_OF_JOBS = _Table(f"{'TIME':<19}  ATTEMPT  {'EVENT':<{_JOB_KIND}}  WHAT\n", _job_row)
_STORY_HEAD = f"{'TIME':<19}  {'EVENT':<{_STORY_KIND}}  WHAT\n"
_OF_NODES: _Table[NodeEvent] = _Table(_STORY_HEAD, _story_row)
_OF_ALL: _Table[Happening] = _Table(f"{'TIME':<19}  {'EVENT':<{_ANY_KIND}}  WHAT\n", _any_row)
_OF_FLEET: _Table[FleetEvent] = _Table(_STORY_HEAD, _story_row)


def _document(event: JobEvent | NodeEvent | FleetEvent | Happening) -> Document:
    """An event as data, with its id first; one of all is a CloudEvent."""
    if isinstance(event, Happening):
        return document(cloud_event(event))
    return {"id": event.id, **{field.name: document(getattr(event, field.name)) for field in fields(event)}}
