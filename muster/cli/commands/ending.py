"""Commands that end jobs or wait for their end: stop, delete, wait. Each takes jobs by name, or all that fit."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.exit_codes import ExitCode, code_of_job
from muster.cli.job_choice import ENDED_PHASES, LIVE_PHASES, All, Jobs, Name, Yes, act_on_each, choice_of, chosen
from muster.cli.options import Labels, Mine, Output, Phases, Projects
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say_lines
from muster.domain.errors import UnavailableError
from muster.domain.jobs.lifecycle import JobPhase

if TYPE_CHECKING:
    from muster.client.client import Client
    from muster.domain.jobs.view import JobView


@answers
async def stop(
    context: typer.Context,
    jobs: Jobs = None,
    *,
    everything: All = False,
    name: Name = "",
    phase: Phases = None,
    mine: Mine = False,
    project: Projects = None,
    label: Labels = None,
    now: Annotated[bool, typer.Option("--now", help="Do not store outputs; they stay on the nodes.")] = False,
    yes: Yes = False,
) -> int:
    """Stop jobs. Executions get SIGTERM, and SIGKILL after the grace period.

    Examples:
      muster stop train
      muster stop --name sweep --phase queued
    """
    choice = choice_of(jobs, everything=everything, name=name, phase=phase, mine=mine, project=project, label=label)
    async with session_of(context).client() as client:

        async def stop_one(job: str) -> str:
            stopped = await client.jobs.stop(job, now=now)
            return f"{stopped.id} ({stopped.spec.name}) {stopped.phase}"

        return await act_on_each(await chosen(client, choice, LIVE_PHASES, "stop", yes=yes), stop_one)


@answers
async def delete(
    context: typer.Context,
    jobs: Jobs = None,
    *,
    everything: All = False,
    name: Name = "",
    phase: Phases = None,
    mine: Mine = False,
    project: Projects = None,
    label: Labels = None,
    force: Annotated[bool, typer.Option("--force", help="Stop jobs first that have not ended.")] = False,
    yes: Yes = False,
) -> int:
    """Delete ended jobs with their history and logs.

    Examples:
      muster delete train
      muster delete --all --phase failed --yes
    """
    choice = choice_of(jobs, everything=everything, name=name, phase=phase, mine=mine, project=project, label=label)
    async with session_of(context).client() as client:

        async def delete_one(job: str) -> str:
            return f"{await client.jobs.delete(job, force=force)} deleted"

        phases = tuple(JobPhase) if force else ENDED_PHASES
        return await act_on_each(await chosen(client, choice, phases, "delete", yes=yes), delete_one)


@answers
async def wait(
    context: typer.Context,
    jobs: Jobs = None,
    *,
    everything: All = False,
    name: Name = "",
    phase: Phases = None,
    mine: Mine = False,
    project: Projects = None,
    label: Labels = None,
    within: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="Longest wait: `90s`, `10m` (default: no limit).")
    ] = None,
    output: Output = Format.TABLE,
) -> int:
    """Wait until jobs have ended. Ctrl-C leaves them alone.

    The exit code is that of the program that failed first, else 0, or 6 where a job was stopped.

    Examples:
      muster wait train --timeout 10m
      muster wait --all
    """
    from muster.cli.commands.tokens import span_of

    choice = choice_of(jobs, everything=everything, name=name, phase=phase, mine=mine, project=project, label=label)
    limit = span_of(within)
    async with session_of(context).client() as client:
        names = await chosen(client, choice, LIVE_PHASES, "wait for", yes=True)
        known = [await client.jobs.get(each) for each in names]
        try:
            async with asyncio.timeout(limit.total_seconds() if limit else None):
                ended = await _ended(client, known, quiet=not output.for_people)
        except TimeoutError:
            first = f"{known[0].spec.name} ({known[0].id}) has" if len(known) == 1 else f"the {len(known)} jobs have"
            raise UnavailableError(f"{first} not ended within {within}") from None
    if ended is None:
        return ExitCode.INTERRUPTED
    if not output.for_people:
        say_lines(text_of(ended[0] if len(ended) == 1 and not choice.is_search else ended, output))
    return next((code for code in map(code_of_job, ended) if code), ExitCode.SUCCESS)


async def _ended(client: "Client", known: "Sequence[JobView]", *, quiet: bool) -> "Sequence[JobView] | None":
    """The jobs in the order in which they have ended, each told as it ends; None if Ctrl-C ended the wait."""
    from muster.cli.follow import attend, print_verdict

    if len(known) == 1:
        alone = await attend(client, known[0], client.jobs.wait(known[0]))
        if alone is not None and not quiet:
            print_verdict(alone)
        return None if alone is None else [alone]
    ended = []
    for each in asyncio.as_completed([client.jobs.wait(job) for job in known]):
        ended.append(await each)
        if not quiet:
            print_verdict(ended[-1])
    return ended
