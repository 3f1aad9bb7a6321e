"""The command top."""

from collections.abc import Sequence
from contextlib import aclosing, closing, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.exit_codes import ExitCode
from muster.cli.options import complete_jobs, complete_nodes
from muster.cli.output.documents import Format, line_of, text_of
from muster.cli.output.metrics.samples import SamplesSeen
from muster.cli.output.screen import is_terminal, print_dim, say_lines, screen

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from rich.console import RenderableType

    from muster.client.client import Client
    from muster.domain.jobs.view import JobView
    from muster.domain.telemetry.sample import NodeSample

_NONE = "nobody has told what is used so far; nodes tell every 10 s"


@answers
async def top(
    context: typer.Context,
    job: Annotated[
        str | None,
        typer.Argument(
            metavar="[JOB]",
            help="Id, unique beginning of an id, or name of a job, whose ranks are shown (default: nodes).",
            autocompletion=complete_jobs,
        ),
    ] = None,
    *,
    node: Annotated[
        list[str] | None,
        typer.Option("--node", metavar="NODE", help="Only this node; repeat for more.", autocompletion=complete_nodes),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Show what is used now, and end.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on, also where nobody looks; a document for each batch.")
    ] = False,
    output: Annotated[Format, typer.Option("--output", "-o", help="Form of the answer.")] = Format.TABLE,
) -> ExitCode:
    """Show what ranks of a job, or nodes, use of GPUs, CPUs and memory.

    At a terminal the table is drawn again as samples come, until the job has ended or Ctrl-C. A GPU has a bar, by the
    part of the time in which something ran on it.

    Examples:
      muster top
      muster top train
    """
    if job is not None and node:
        raise typer.BadParameter("a job has its own nodes, so none is named beside it", param_hint="--node")
    if once and follow:
        raise typer.BadParameter("it shows what is used now, and ends", param_hint="--once")
    async with session_of(context).client() as client:
        seen = SamplesSeen(None if job is None else await client.jobs.get(job))
        if not follow and (once or not is_terminal() or not output.for_people):
            seen.hear(await _newest(client, seen.job, node or ()))
            _print_once(seen, output)
            return ExitCode.SUCCESS
        told = _batches(client, seen.job, node or ())
        following = _follow(client, seen, told, output)
        if seen.job is None:
            await following
            return ExitCode.SUCCESS
        from muster.cli.follow import attend

        return ExitCode.SUCCESS if await attend(client, seen.job, following) else ExitCode.INTERRUPTED


async def _newest(client: "Client", job: "JobView | None", nodes: Sequence[str]) -> "Iterable[NodeSample]":
    return await (client.telemetry.of_nodes(nodes) if job is None else client.telemetry.of_job(job))


def _batches(
    client: "Client", job: "JobView | None", nodes: Sequence[str]
) -> "AsyncGenerator[tuple[NodeSample, ...], None]":
    return client.telemetry.follow_nodes(nodes) if job is None else client.telemetry.follow_job(job)


async def _follow(
    client: "Client", seen: SamplesSeen, told: "AsyncGenerator[tuple[NodeSample, ...], None]", output: Format
) -> bool:
    """Show samples as they come; True once the job has ended."""
    live = _LiveTable() if is_terminal() and output.for_people else None
    with nullcontext() if live is None else closing(live):
        async with aclosing(told) as batches:
            async for batch in batches:
                seen.hear(batch)
                if seen.job is not None and seen.is_elsewhere(batch):
                    seen.job = await client.jobs.get(seen.job.id)
                if live is not None:
                    live.show(seen.table())
                elif batch:
                    _print_batch(seen, output)
    return True


def _print_once(seen: SamplesSeen, output: Format) -> None:
    if not output.for_people:
        say_lines(text_of(seen.rows(), output))
    elif seen.samples:
        screen(whole=output is Format.WIDE).print(seen.table())
    else:
        print_dim(_NONE)


def _print_batch(seen: SamplesSeen, output: Format) -> None:
    if output.for_people:
        screen().print(seen.table())
        return
    head = "- " if output is Format.YAML else ""
    for row in seen.rows():
        say_lines(head + line_of(row), flush=True)


class _LiveTable:
    """A table that is drawn again in its place, and stays as it was last."""

    def __init__(self) -> None:
        from rich.live import Live

        self._live = Live(console=screen(), auto_refresh=False)

    def show(self, table: "RenderableType") -> None:
        """Draw it in place of the one before."""
        self._live.start()
        self._live.update(table, refresh=True)

    def close(self) -> None:
        """Leave it as it is; harmless when repeated."""
        self._live.stop()
