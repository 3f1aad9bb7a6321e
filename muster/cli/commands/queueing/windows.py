"""Commands about windows: list, add, remove."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from muster.cli.commands.queueing.changing import moment_of
from muster.cli.commands.tokens import parsed_span
from muster.cli.context import answers, session_of
from muster.cli.options import Output, complete_nodes, labels_of
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines, screen
from muster.domain.fleet.window import DEFAULT_NOTICE, Window
from muster.domain.ids import NodeId

windows = typer.Typer(invoke_without_command=True)

_NONE = "none"
"""How no notice is asked for."""


@windows.callback()
@answers
async def list_windows(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List windows: nodes out of service, or for one project alone.

    Examples:
      muster windows
      muster windows -o json
    """
    if context.invoked_subcommand is not None:
        return
    async with session_of(context).client() as client:
        found = await client.windows.list()
    if not output.for_people:
        say_lines(text_of(found, output))
        return
    from muster.cli.output.nodes import windows_table

    screen(whole=output is Format.WIDE).print(windows_table(found))


@windows.command("add")
@answers
async def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the window: lower-case letters, digits and hyphens.")],
    *,
    begins: Annotated[str, typer.Option("--from", metavar="TIME", help="Begin: `now`, `2h` from now, or an ISO time.")],
    ends: Annotated[str, typer.Option("--to", metavar="TIME", help="End: `8h` from now, or an ISO time.")],
    node: Annotated[
        list[str] | None,
        typer.Option(help="Node of the window; may be repeated.", autocompletion=complete_nodes),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Label that all its other nodes carry; may be repeated."),
    ] = None,
    project: Annotated[str, typer.Option(help="Project whose jobs the nodes take all the same (default: none).")] = "",
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Reason, for people.")] = "",
    notice: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Time before the begin in which only jobs start that end by then, or `none` (24h)."
        ),
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Set a window, in place of the one of its name.

    Jobs that run when it begins run on. Before that, nodes take only jobs whose limit on run time ends by then.

    Examples:
      muster windows add disks --node gpu-1 --node gpu-2 --from 2026-12-01T18:00 --to 2026-12-02T08:00
      muster windows add demo --label rack=r7 --project vision --from now --to 8h
    """
    now = datetime.now(UTC)
    window = Window(
        name=name,
        begins=moment_of(begins, now, "--from"),
        ends=moment_of(ends, now, "--to"),
        nodes=tuple(map(NodeId, node or ())),
        labels=labels_of(label or (), "--label"),
        project=project,
        reason=reason,
        notice=_notice(notice),
    )
    async with session_of(context).client() as client:
        kept = await client.windows.put(window)
    if output.for_people:
        say(f"window {kept.name} is set")
    else:
        say_lines(text_of(kept, output))


@windows.command("remove")
@answers
async def remove(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the window.")],
    *,
    output: Output = Format.TABLE,
) -> None:
    """Remove a window, so that its nodes take jobs again.

    Examples:
      muster windows remove disks
      muster windows remove demo -o json
    """
    async with session_of(context).client() as client:
        gone = await client.windows.remove(name)
    if output.for_people:
        say(f"window {gone.name} is removed")
    else:
        say_lines(text_of(gone, output))


def _notice(text: str | None) -> timedelta:
    if text is None:
        return DEFAULT_NOTICE
    return timedelta() if text == _NONE else parsed_span(text)
