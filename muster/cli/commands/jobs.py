"""Commands that look at jobs: jobs, show, why."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from muster.cli.context import answers, session_of
from muster.cli.options import JobName, JobSearch, Labels, Mine, Output, Phases, Projects, Users, labels_of
from muster.cli.output.documents import Format, text_of
from muster.cli.output.job_rows import COLUMNS, MORE_COLUMNS, job_row
from muster.cli.output.plain.columns import lines_of
from muster.cli.output.screen import is_drawn, print_dim, say_lines, screen
from muster.domain.errors import MusterError
from muster.domain.jobs.view import JobView

if TYPE_CHECKING:
    from muster.client.client import Client

_WATCHED_EVERY = 2.0
"""Seconds between two looks of `--watch`."""
_ASKED_NODES = 32
"""Most nodes that are asked for the numbers of their GPUs."""


class SortKey(StrEnum):
    """What the list of jobs is sorted by."""

    SUBMITTED = "submitted"
    RAN = "ran"
    WORKERS = "workers"
    PRIORITY = "priority"


@answers
async def jobs(
    context: typer.Context,
    *,
    everything: Annotated[bool, typer.Option("--all", "-a", help="List all jobs, not only the newest.")] = False,
    phase: Phases = None,
    name: Annotated[str, typer.Option(metavar="TEXT", help="Only jobs whose name contains this text.")] = "",
    mine: Mine = False,
    user: Users = None,
    project: Projects = None,
    label: Labels = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only jobs submitted since `2h` ago, or since an ISO time.")
    ] = None,
    limit: Annotated[
        int, typer.Option("-n", min=1, metavar="COUNT", help="Number of jobs to list (default: 20).")
    ] = 20,
    sort: Annotated[SortKey, typer.Option(help="Order of the list: newest, longest running or largest first.")] = (
        SortKey.SUBMITTED
    ),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print ids alone, one on each line.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show the list again every 2 s, until Ctrl-C.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """List jobs, newest first.

    Examples:
      muster jobs --phase running --phase queued
      muster stop $(muster jobs -q --name sweep --since 1h)
    """
    from muster.cli.commands.logs import since_from

    earliest = None if since is None else since_from(since, datetime.now(UTC))
    wanted = JobSearch(
        phase or (),
        name,
        mine=mine,
        owners=user or (),
        projects=project or (),
        labels=labels_of(label or (), "--label"),
    )
    asked = _Asked(wanted=wanted, since=earliest, limit=None if everything else limit, sort=sort)
    async with session_of(context).client() as client:
        if not watch:
            await _list(client, asked, output, quiet=quiet)
            return
        while True:
            if sys.stdout.isatty():
                screen().clear()
            await _list(client, asked, output, quiet=quiet)
            await asyncio.sleep(_WATCHED_EVERY)


class _Asked(NamedTuple):
    """The jobs that are to be listed."""

    wanted: JobSearch
    since: datetime | None
    limit: int | None
    sort: SortKey


async def _list(client: "Client", asked: _Asked, output: Format, *, quiet: bool) -> None:
    # One more than is shown tells whether there are more.
    most = None if asked.limit is None or asked.sort is not SortKey.SUBMITTED else asked.limit + 1
    found = await _found(client, asked, most)
    now = datetime.now(UTC)
    found.sort(key=lambda job: _sorted_by(job, asked.sort, now))
    shown = found if asked.limit is None else found[: asked.limit]
    if quiet:
        say_lines("".join(f"{job.id}\n" for job in shown), flush=True)
    elif not output.for_people:
        say_lines(text_of(shown, output), flush=True)
    else:
        _print_table(shown, now, wide=output is Format.WIDE)
    if len(shown) < len(found):
        print_dim("there are more; --all lists them")


async def _found(client: "Client", asked: _Asked, most: int | None) -> list[JobView]:
    """The jobs, newest first; those before `since` are not read."""
    found: list[JobView] = []
    async for job in asked.wanted.search(client, limit=most):
        if asked.since is not None and job.submitted_at < asked.since:
            break
        found.append(job)
    return found


def _sorted_by(job: JobView, key: SortKey, now: datetime) -> float:
    match key:
        case SortKey.SUBMITTED:
            return -job.submitted_at.timestamp()
        case SortKey.RAN:
            began = job.attempts[-1].released_at if job.attempts else None
            return 0.0 if began is None else -((job.ended_at or now) - began).total_seconds()
        case SortKey.WORKERS:
            return -float(job.spec.size)
        case SortKey.PRIORITY:
            return -float(job.spec.priority)


def _print_table(jobs: Sequence[JobView], now: datetime, *, wide: bool = False) -> None:
    if not is_drawn(sys.stdout):
        rows = [job_row(job, now, wide=wide) for job in jobs]
        if all(cell.isascii() and cell.isprintable() for row in rows for cell in row):
            columns = (*COLUMNS, *MORE_COLUMNS) if wide else COLUMNS
            say_lines("".join(f"{line}\n" for line in lines_of(columns, rows, None)), flush=True)
            return
    from muster.cli.output.jobs import jobs_table

    screen(whole=wide).print(jobs_table(jobs, now, wide=wide))


@answers
async def show(
    context: typer.Context,
    job: JobName,
    *,
    attempt: Annotated[
        int | None, typer.Option(min=1, max=2**31 - 1, help="Number of the attempt to show (default: the newest).")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Show a job with its executions, timings and first failure.

    Of more than 8 executions those that are alike share a line; `-o wide` lists each.

    Examples:
      muster show train
      muster show j7k2 --attempt 2 -o wide
    """
    async with session_of(context).client() as client:
        found = await client.jobs.get(job, attempt=attempt)
        numbers = await _gpu_numbers(client, found) if output is Format.TABLE else {}
    if not output.for_people:
        say_lines(text_of(found, output))
        return
    from muster.cli.output.jobs import job_details

    wide = output is Format.WIDE
    screen(whole=wide).print(job_details(found, datetime.now(UTC), only=attempt, whole=wide, gpus=numbers))


async def _gpu_numbers(client: "Client", job: JobView) -> Mapping[str, int]:
    """The number on its node of each GPU that the job has, as far as that is known and not too many nodes are asked."""
    members = [each for attempt in job.attempts for each in attempt.executions if each.gpus and each.node]
    nodes = sorted({str(each.node) for each in members})
    if not nodes or len(nodes) > _ASKED_NODES:
        return {}
    try:
        found = await asyncio.gather(*(client.nodes.get(name) for name in nodes))
    except MusterError:  # a node that has gone, or that this caller may not see
        return {}
    return {gpu.uuid: gpu.index for node in found for gpu in node.inventory.gpus}


@answers
async def why(context: typer.Context, job: JobName, *, output: Output = Format.TABLE) -> None:
    """Say what a job waits for, or what went wrong.

    Examples:
      muster why train
      muster why j7k2 -o json
    """
    async with session_of(context).client() as client:
        explained = await client.jobs.why(job)
    if not output.for_people:
        say_lines(text_of(explained, output))
        return
    from muster.cli.output.jobs import explanation

    screen(whole=output is Format.WIDE).print(explanation(explained, datetime.now(UTC)))
