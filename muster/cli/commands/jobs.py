"""Commands about jobs that are there: jobs, show, why, stop, delete, wait."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from muster.cli.context import answers, report, session_of
from muster.cli.exit_codes import ExitCode, code_of_job
from muster.cli.options import JobName, JobNames, Output, labels_of
from muster.cli.output.documents import Format, text_of
from muster.cli.output.job_rows import HEADERS, job_row
from muster.cli.output.plain.table import plain_table
from muster.cli.output.screen import PIPE_WIDTH, is_drawn, print_dim, say, say_lines, screen
from muster.domain.errors import MusterError, UnavailableError
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import JobView


@answers
async def jobs(  # noqa: PLR0913 - one for each option
    context: typer.Context,
    *,
    everything: Annotated[bool, typer.Option("--all", "-a", help="All of them, not only the newest.")] = False,
    phase: Annotated[list[JobPhase] | None, typer.Option(help="Only jobs in this phase; may be repeated.")] = None,
    name: Annotated[str, typer.Option(help="Only jobs whose name contains this.")] = "",
    mine: Annotated[bool, typer.Option("--mine", help="Only jobs that you submitted.")] = False,
    user: Annotated[
        list[str] | None,
        typer.Option(metavar="ACCOUNT", help="Only jobs that this account submitted; may be repeated."),
    ] = None,
    project: Annotated[list[str] | None, typer.Option(help="Only jobs of this project; may be repeated.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Only jobs with this label: `paper=icml`; may be repeated."),
    ] = None,
    limit: Annotated[int, typer.Option("-n", min=1, help="At most so many.")] = 20,
    output: Output = Format.TABLE,
) -> None:
    """List jobs, newest first."""
    labels = labels_of(label or (), "--label")
    async with session_of(context).client() as client:
        # One more than is shown tells whether there are more.
        asked = None if everything else limit + 1
        jobs = client.jobs.list(
            phases=phase or (),
            name_contains=name,
            mine=mine,
            owners=user or (),
            projects=project or (),
            labels=labels,
            limit=asked,
        )
        found = [job async for job in jobs]
    shown = found if everything else found[:limit]
    if output is not Format.TABLE:
        say_lines(text_of(shown, output))
        return
    _print_table(shown, datetime.now(UTC))
    if len(shown) < len(found):
        print_dim("there are more; --all lists them")


def _print_table(jobs: Sequence[JobView], now: datetime) -> None:
    plain = None if is_drawn(sys.stdout) else plain_table(HEADERS, [job_row(job, now) for job in jobs], PIPE_WIDTH)
    if plain is not None:
        say_lines(plain, flush=True)
        return
    from muster.cli.output.jobs import jobs_table  # noqa: PLC0415 - Rich only where it makes a difference

    screen().print(jobs_table(jobs, now))


@answers
async def show(
    context: typer.Context,
    job: JobName,
    *,
    attempt: Annotated[
        int | None, typer.Option(min=1, max=2**31 - 1, help="Only this attempt, however old it is.")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Show a job with its executions, timings and first failure."""
    async with session_of(context).client() as client:
        found = await client.jobs.get(job, attempt=attempt)
    if output is not Format.TABLE:
        say_lines(text_of(found, output))
        return
    from muster.cli.output.jobs import job_details  # noqa: PLC0415

    screen().print(job_details(found, datetime.now(UTC), only=attempt))


@answers
async def why(context: typer.Context, job: JobName, *, output: Output = Format.TABLE) -> None:
    """Say what a job waits for, or what went wrong."""
    async with session_of(context).client() as client:
        explained = await client.jobs.why(job)
    if output is not Format.TABLE:
        say_lines(text_of(explained, output))
        return
    from muster.cli.output.jobs import explanation  # noqa: PLC0415

    screen().print(explanation(explained))


@answers
async def stop(context: typer.Context, jobs: JobNames) -> ExitCode:
    """Stop jobs. Executions get SIGTERM, and SIGKILL after the grace period."""
    async with session_of(context).client() as client:

        async def stop_one(job: str) -> str:
            stopped = await client.jobs.stop(job)
            return f"{stopped.id} ({stopped.spec.name}) {stopped.phase}"

        return await _each(jobs, stop_one)


@answers
async def delete(
    context: typer.Context,
    jobs: JobNames,
    *,
    force: Annotated[bool, typer.Option("--force", help="Stop them first if they have not ended.")] = False,
) -> ExitCode:
    """Forget ended jobs, their history and their logs."""
    async with session_of(context).client() as client:

        async def delete_one(job: str) -> str:
            return f"{await client.jobs.delete(job, force=force)} deleted"

        return await _each(jobs, delete_one)


@answers
async def wait(
    context: typer.Context,
    job: JobName,
    *,
    within: Annotated[str | None, typer.Option("--timeout", help="Give up after this time (`90s`, `10m`).")] = None,
    output: Output = Format.TABLE,
) -> ExitCode:
    """Wait until a job has ended; the exit code says how. Ctrl-C leaves the job alone."""
    from muster.cli.follow import attend, print_verdict  # noqa: PLC0415
    from muster.jobfile.quantity import parse_duration  # noqa: PLC0415

    limit = parse_duration(within) if within else None
    async with session_of(context).client() as client:
        known = await client.jobs.get(job)
        try:
            async with asyncio.timeout(limit.total_seconds() if limit else None):
                ended = await attend(client, known, client.jobs.wait(known))
        except TimeoutError:
            raise UnavailableError(f"{known.spec.name} ({known.id}) has not ended within {within}") from None
    if ended is None:
        return ExitCode.INTERRUPTED
    if output is not Format.TABLE:
        say_lines(text_of(ended, output))
        return code_of_job(ended.phase)
    print_verdict(ended)
    return code_of_job(ended.phase)


async def _each(names: Sequence[str], act: Callable[[str], Awaitable[str]]) -> ExitCode:
    """Act on one after the other, whatever becomes of the others; the first error decides the exit code."""
    code = ExitCode.SUCCESS
    for name in names:
        try:
            say(await act(name))
        except MusterError as error:
            sys.stdout.flush()
            failed = report(error)
            code = code or failed
    return code
