"""Commands that end jobs or wait for their end: stop, delete, wait. Each takes jobs by name, or all that fit."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias

import typer

from muster.cli.context import answers, report, session_of
from muster.cli.exit_codes import ExitCode, code_of_job
from muster.cli.options import JobSearch, Labels, Mine, Output, Phases, Projects, complete_jobs, labels_of
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines
from muster.domain.errors import InvalidJobError, MusterError, UnavailableError
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.visible_text import visible

if TYPE_CHECKING:
    from muster.client.client import Client
    from muster.domain.jobs.view import JobView

_NAMED = 10
"""Jobs that a question names."""
_LIVE = tuple(phase for phase in JobPhase if not phase.ended)
_ENDED = tuple(phase for phase in JobPhase if phase.ended)

Jobs: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[JOB...]",
        help="Ids, unique beginnings of ids, or names of jobs (the newest of that name).",
        autocompletion=complete_jobs,
    ),
]
All: TypeAlias = Annotated[bool, typer.Option("--all", "-a", help="All jobs to which the command applies.")]
Name: TypeAlias = Annotated[str, typer.Option(metavar="TEXT", help="All jobs whose name contains this text.")]
Yes: TypeAlias = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask before acting on jobs not given by name.")
]


class _Choice(NamedTuple):
    """The jobs that a command line means."""

    jobs: Sequence[str]
    wanted: JobSearch
    everything: bool

    @property
    def is_search(self) -> bool:
        """Whether the jobs are to be looked for."""
        return self.everything or any(self.wanted)


def _choice(
    jobs: list[str] | None,
    *,
    everything: bool,
    name: str,
    phase: list[JobPhase] | None,
    mine: bool,
    project: list[str] | None,
    label: list[str] | None,
) -> _Choice:
    labels = labels_of(label or (), "--label")
    return _Choice(
        jobs or (), JobSearch(phase or (), name, mine=mine, projects=project or (), labels=labels), everything
    )


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
    yes: Yes = False,
) -> int:
    """Stop jobs. Executions get SIGTERM, and SIGKILL after the grace period.

    Examples:
      muster stop train
      muster stop --name sweep --phase queued
    """
    choice = _choice(jobs, everything=everything, name=name, phase=phase, mine=mine, project=project, label=label)
    async with session_of(context).client() as client:

        async def stop_one(job: str) -> str:
            stopped = await client.jobs.stop(job)
            return f"{stopped.id} ({stopped.spec.name}) {stopped.phase}"

        return await _each(await _chosen(client, choice, _LIVE, "stop", yes=yes), stop_one)


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
    choice = _choice(jobs, everything=everything, name=name, phase=phase, mine=mine, project=project, label=label)
    async with session_of(context).client() as client:

        async def delete_one(job: str) -> str:
            return f"{await client.jobs.delete(job, force=force)} deleted"

        phases = tuple(JobPhase) if force else _ENDED
        return await _each(await _chosen(client, choice, phases, "delete", yes=yes), delete_one)


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

    choice = _choice(jobs, everything=everything, name=name, phase=phase, mine=mine, project=project, label=label)
    limit = span_of(within)
    async with session_of(context).client() as client:
        names = await _chosen(client, choice, _LIVE, "wait for", yes=True)
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


async def _chosen(
    client: "Client", choice: _Choice, phases: Sequence[JobPhase], verb: str, *, yes: bool
) -> Sequence[str]:
    """The jobs that are meant; those that were only described are asked about first, unless `yes`."""
    if choice.jobs and choice.is_search:
        raise InvalidJobError(f"name the jobs to {verb}, or describe them (--all, --name, --phase …), not both")
    if not choice.jobs and not choice.is_search:
        raise InvalidJobError(
            f"say which jobs to {verb}: JOB, --name TEXT, --phase PHASE, --mine, --label NAME=VALUE, or --all"
        )
    if choice.jobs:
        return choice.jobs
    fitting = [phase for phase in phases if not choice.wanted.phases or phase in choice.wanted.phases]
    wanted = choice.wanted._replace(phases=fitting)
    found = [job async for job in wanted.search(client)] if fitting else []
    if not found:
        say(f"there are no jobs to {verb}", err=True)
    elif not yes:
        _ask(found, verb)
    return [job.id for job in found]


def _ask(found: "Sequence[JobView]", verb: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidJobError(f"nobody is there to be asked whether to {verb} {len(found)} jobs; say --yes")
    names = ", ".join(f"{visible(job.spec.name)} ({job.id})" for job in found[:_NAMED])
    more = ", …" if len(found) > _NAMED else ""
    typer.confirm(f"{verb.capitalize()} {len(found)} jobs: {names}{more}?", abort=True, err=True)


async def _each(names: Sequence[str], act: Callable[[str], Awaitable[str]]) -> int:
    """Act on one after the other, whatever becomes of the others; the first error decides the exit code."""
    code = 0
    for name in names:
        try:
            say(await act(name))
        except MusterError as error:
            sys.stdout.flush()
            failed = report(error)
            code = code or failed
    return code
