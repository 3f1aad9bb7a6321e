"""The jobs that a command line means: by name, or all that fit, about which somebody is asked first."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias

import typer

from muster.cli.context import report
from muster.cli.options import JobSearch, complete_jobs, labels_of
from muster.cli.output.screen import say
from muster.domain.errors import InvalidJobError, MusterError
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.visible_text import visible

if TYPE_CHECKING:
    from muster.client.client import Client
    from muster.domain.jobs.view import JobView

LIVE_PHASES = tuple(phase for phase in JobPhase if not phase.ended)
ENDED_PHASES = tuple(phase for phase in JobPhase if phase.ended)
UNPLACED_PHASES = (JobPhase.WAITING, JobPhase.QUEUED)
"""Jobs without nodes so far."""

_NAMED = 10
"""Jobs that a question names."""

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


class JobChoice(NamedTuple):
    """The jobs that a command line means."""

    jobs: Sequence[str]
    wanted: JobSearch
    everything: bool

    @property
    def is_search(self) -> bool:
        """Whether the jobs are to be looked for."""
        return self.everything or any(self.wanted)


def choice_of(  # noqa: PLR0913 - a parameter for each option
    jobs: list[str] | None,
    *,
    everything: bool,
    name: str,
    phase: list[JobPhase] | None,
    mine: bool,
    project: list[str] | None,
    label: list[str] | None,
) -> JobChoice:
    """The jobs that these options mean."""
    labels = labels_of(label or (), "--label")
    return JobChoice(
        jobs or (), JobSearch(phase or (), name, mine=mine, projects=project or (), labels=labels), everything
    )


async def chosen(
    client: "Client", choice: JobChoice, phases: Sequence[JobPhase], verb: str, *, yes: bool
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


async def act_on_each(names: Sequence[str], act: Callable[[str], Awaitable[str]]) -> int:
    """Act on one after the other, whatever becomes of the others, and say what came of it.

    The first error decides the exit code.
    """
    code = 0
    for name in names:
        try:
            told = await act(name)
            if told:
                say(told)
        except MusterError as error:
            sys.stdout.flush()
            failed = report(error)
            code = code or failed
    return code
