"""Arguments and options that several commands share, and how they are completed in the shell."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias

import typer

from muster.cli.context import CliContext, session_of
from muster.cli.output.documents import Format
from muster.domain.errors import MusterError
from muster.domain.jobs.lifecycle import JobPhase

if TYPE_CHECKING:
    from muster.client.client import Client
    from muster.domain.jobs.view import JobView

_COMPLETION_LIMIT = 1.0
"""Seconds that the coordinator has to answer while somebody waits for the shell."""
_COMPLETED = 50
"""Jobs that are offered."""


def complete_jobs(context: typer.Context, incomplete: str) -> Sequence[tuple[str, str]]:
    """Ids and names of jobs that begin with what was typed, newest first; none if nobody answers in time."""
    with suppress(MusterError, TimeoutError):
        return asyncio.run(_jobs_like(_completing(context), incomplete))
    return ()


def complete_nodes(context: typer.Context, incomplete: str) -> Sequence[tuple[str, str]]:
    """Names of nodes that begin with what was typed; none if nobody answers in time."""
    with suppress(MusterError, TimeoutError):
        return asyncio.run(_nodes_like(_completing(context), incomplete))
    return ()


def _completing(context: typer.Context) -> CliContext:
    # While completing, the callback that makes the session does not run.
    given = context.find_root().params
    if not given:
        return session_of(context)
    return CliContext(**{option: given[option] for option in CliContext._fields if option in given})


async def _jobs_like(session: CliContext, incomplete: str) -> Sequence[tuple[str, str]]:
    async with asyncio.timeout(_COMPLETION_LIMIT), session.client(timeout=_COMPLETION_LIMIT) as client:
        jobs = [job async for job in client.jobs.list(limit=_COMPLETED)]
    ids = [(str(job.id), f"{job.spec.name}, {job.phase}") for job in jobs]
    names = {job.spec.name: f"{job.id}, {job.phase}" for job in reversed(jobs)}
    return [(word, note) for word, note in (*ids, *names.items()) if word.startswith(incomplete)]


async def _nodes_like(session: CliContext, incomplete: str) -> Sequence[tuple[str, str]]:
    async with asyncio.timeout(_COMPLETION_LIMIT), session.client(timeout=_COMPLETION_LIMIT) as client:
        nodes = await client.nodes.list()
    return [(node.name, node.state) for node in nodes if node.name.startswith(incomplete)]


def time_of(text: str) -> datetime | timedelta | None:
    """The time (local without a zone) or the length of time that somebody wrote; None: it is neither."""
    from muster.jobfile.errors import FieldError
    from muster.jobfile.quantity import parse_duration

    with suppress(FieldError):
        return parse_duration(text)
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(text).astimezone(UTC)
    return None


def labels_of(said: Sequence[str], option: str) -> Mapping[str, str]:
    """Labels written as NAME=VALUE; raises typer.BadParameter for an entry without =."""
    pairs = [text.partition("=") for text in said]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise typer.BadParameter(f"write NAME=VALUE, not {name!r}", param_hint=option)
    return {name: value for name, _, value in pairs}


Signers: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--signer",
        metavar="sha256:...|FILE",
        envvar="MUSTER_BUNDLE_SIGNER",
        help="Key that must have signed the bundle: its fingerprint, or a file with its public half; may be repeated.",
    ),
]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Check the job and print it with all its settings, without submitting it.")
]
QueueAnyway: TypeAlias = Annotated[
    bool, typer.Option("--queue-anyway", help="Queue the job even if no present node could ever run it.")
]
JobName: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        help="Id, unique beginning of an id, or name of a job (the newest of that name).",
        autocompletion=complete_jobs,
    ),
]
Phases: TypeAlias = Annotated[list[JobPhase] | None, typer.Option(help="Only jobs in this phase; may be repeated.")]
Mine: TypeAlias = Annotated[bool, typer.Option("--mine", help="Only jobs that you have submitted.")]
Users: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--user", metavar="ACCOUNT", help="Only jobs that this account has submitted; may be repeated."),
]
Projects: TypeAlias = Annotated[
    list[str] | None, typer.Option("--project", help="Only jobs of this project; may be repeated.")
]
Labels: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="NAME=VALUE", help="Only jobs with this label: `paper=icml`; may be repeated."),
]


class JobSearch(NamedTuple):
    """The jobs that options describe."""

    phases: Sequence[JobPhase] = ()
    name: str = ""
    mine: bool = False
    owners: Sequence[str] = ()
    projects: Sequence[str] = ()
    labels: Mapping[str, str] = MappingProxyType({})

    def search(self, client: "Client", *, limit: int | None = None) -> "AsyncIterator[JobView]":
        """These jobs, newest first."""
        return client.jobs.list(
            phases=self.phases,
            name_contains=self.name,
            mine=self.mine,
            owners=self.owners,
            projects=self.projects,
            labels=self.labels,
            limit=limit,
        )


Output: TypeAlias = Annotated[
    Format, typer.Option("--output", "-o", help="Form of the answer; `wide` has every column and cuts nothing.")
]
