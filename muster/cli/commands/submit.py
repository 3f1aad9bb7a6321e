"""The commands submit and schema, and how a job that was described is made."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from muster.cli.context import CliContext, answers, session_of
from muster.cli.exit_codes import ExitCode
from muster.cli.file_hint import MISSING_FILE_CODES, forgotten_files
from muster.cli.options import DryRun, Output, QueueAnyway
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import print_dim, say, say_lines
from muster.domain.errors import InvalidJobError, JobsRefusedError, MusterError, UnavailableError
from muster.domain.fault import spell
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.rules.warnings import warnings
from muster.jobfile import job_schema

if TYPE_CHECKING:
    from muster.cli.job_files import Described
    from muster.client.client import Client
    from muster.domain.jobs.view import JobView
    from muster.jobfile.presets.job_document import JobDocument

_ON_ITS_WAY = 0.001
"""Seconds after which a question has left this program."""


class Wish(NamedTuple):
    """What is to become of a job that is made."""

    follow: bool
    dry_run: bool
    queue_anyway: bool
    output: Format
    stops: bool = False
    """Whether Ctrl-C stops the job."""


@answers
async def submit(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Job files; `-` is stdin. Each may hold several jobs (`---` between them).",
            allow_dash=True,
        ),
    ],
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Stay with the job until it ends; Ctrl-C leaves it alone.")
    ] = False,
    dry_run: DryRun = False,
    queue_anyway: QueueAnyway = False,
    git: Annotated[
        str | None,
        typer.Option(
            metavar="URL[@REF]",
            help="Git repository whose branch, tag or commit REF is `code`, whatever the file says.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Replace a value of the file: `resources.gpus=2`, `roles[0].count=3`, `image=null`.",
        ),
    ] = None,
    output: Output = Format.TABLE,
) -> int:
    """Submit job files and print the ids of their jobs.

    All jobs are accepted, or none is.

    Examples:
      muster submit job.yaml
      muster submit -f job.yaml --set workers=8 --set env.MODE=fast
    """
    from muster.cli.job_files import read_jobs

    overrides = overrides_of(settings or ())
    if git is not None:
        from muster.cli.run_document import git_code

        overrides = {"code": git_code(git), **overrides}
    jobs = read_jobs(files, overrides)
    if follow and len(jobs) > 1:
        raise typer.BadParameter(f"stays with one job; these are {len(jobs)}", param_hint="--follow")
    wish = Wish(follow=follow, dry_run=dry_run, queue_anyway=queue_anyway, output=output)
    if len(jobs) == 1:
        try:
            code = await make(session_of(context), jobs[0].spec, wish)
        except InvalidJobError as error:
            raise jobs[0].located(error) from None
        _hint_at_files(code, jobs[0].spec, files)
        return code
    return await _make_all(session_of(context), jobs, wish)


def _hint_at_files(code: int, spec: "JobSpec | JobDocument", files: Sequence[Path]) -> None:
    """Say of files that are here and are named in the command how they get to the nodes."""
    if code not in MISSING_FILE_CODES or not isinstance(spec, JobSpec):
        return
    for word in forgotten_files(spec, dict.fromkeys((Path(), *(file.parent for file in files)))):
        print_dim(
            f"hint: the file {word} is here, and no execution got it; "
            "`files:` of the job file sends it along, and `mounts:` shows a directory of the node"
        )


def schema() -> None:
    """Print the JSON Schema of job files, for editors.

    Examples:
      muster schema > job.schema.json
      muster schema | jq .properties
    """
    import json

    say_lines(json.dumps(job_schema(), indent=2) + "\n")


async def make(session: CliContext, spec: "JobSpec | JobDocument", wish: Wish) -> int:
    """Submit a job, or only check it, and stay with it if that is wished; gives the exit code."""
    _warn(spec)
    if wish.dry_run:
        return await _check(session, spec, wish)
    async with session.client() as client:
        job = await submitted(client, spec, wish)
        if not isinstance(spec, JobSpec):
            _warn(job.spec)
        if not wish.follow:
            say_lines(text_of(job, wish.output) if not wish.output.for_people else f"{job.id}\n", flush=True)
            say(f"{job.spec.name} is accepted; `muster logs -f {job.id}` follows it", err=True)
            return ExitCode.SUCCESS
        from muster.cli.follow import follow

        return await follow(client, job, stops=wish.stops)


def _warn(spec: "JobSpec | JobDocument") -> None:
    """Say what is allowed and most probably not meant; of values to be joined with presets nothing is known yet."""
    if not isinstance(spec, JobSpec):
        return
    for each in warnings(spec):
        say(f"warning: {spec.name}: {spell(each.path[2:])} {each.message}", err=True)


async def submitted(client: "Client", spec: "JobSpec | JobDocument", wish: Wish) -> "JobView":
    """The job, accepted; what it takes to read that, and to stay with it, is loaded while the coordinator stores it."""
    spec = await with_code(client, spec)
    try:
        async with asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(
                client.jobs.submit(spec, queue_anyway=wish.queue_anyway), name=f"submit {spec.name}"
            )
            await asyncio.wait([asked], timeout=_ON_ITS_WAY)
            import muster.wire.jobs  # noqa: F401 - loaded while the coordinator answers

            if wish.follow:
                from muster.cli import follow  # noqa: F401 - loaded while the coordinator answers
    except ExceptionGroup as group:  # of the one task
        raise group.exceptions[0] from None
    return asked.result()


async def with_code(client: "Client", spec: "JobSpec | JobDocument", *, send: bool = True) -> "JobSpec | JobDocument":
    """The job with the folders that it brings along sent, which is told on stderr."""
    folders = set(_folders(spec))
    if not folders:
        return spec
    from muster.cli.commands.data.uploading import uploaded

    for folder in sorted(folders) if send else ():
        say((await uploaded(client, Path(folder), spec.project)).sentence, err=True)
    if not isinstance(spec, JobSpec):
        return await client.data.with_folders(spec, send=send)
    return await client.data.with_code(spec, send=send)


def _folders(spec: "JobSpec | JobDocument") -> Iterable[str]:
    if not isinstance(spec, JobSpec):
        return spec.folders
    return (role.code.folder for role in spec.roles if role.code is not None and role.code.folder)


async def _check_document(session: CliContext, document: "JobDocument", wish: Wish) -> int:
    """Print the job that a document and its presets make, and what comes from which of them."""
    async with session.client() as client:
        job = await _tried(client, document, wish)
    _warn(job.spec)
    say_lines(text_of(job.spec, Format.JSON if wish.output is Format.JSON else Format.YAML), flush=True)
    for key, origin in sorted(job.origins.items()):
        print_dim(f"{key}: from {origin}")
    say(f"the job is valid and {client.address} would take it", err=True)
    return ExitCode.SUCCESS


async def _tried(client: "Client", document: "JobDocument", wish: Wish) -> "JobView":
    whole = await with_code(client, document, send=False)
    return await client.jobs.submit(whole, queue_anyway=wish.queue_anyway, dry_run=True)


async def _check(session: CliContext, spec: "JobSpec | JobDocument", wish: Wish) -> int:
    """Print what would be sent; where a coordinator answers, it says whether it would take it."""
    if not isinstance(spec, JobSpec):
        return await _check_document(session, spec, wish)
    say_lines(text_of(spec, Format.JSON if wish.output is Format.JSON else Format.YAML), flush=True)
    try:
        async with session.client() as client:
            spec = await with_code(client, spec, send=False)
            await client.jobs.submit(spec, queue_anyway=wish.queue_anyway, dry_run=True)
    except UnavailableError as error:
        say(f"the job is valid; whether it fits was not checked: {error}", err=True)
    else:
        say(f"the job is valid and {client.address} would take it", err=True)
    return ExitCode.SUCCESS


async def _make_all(session: CliContext, jobs: "Sequence[Described]", wish: Wish) -> int:
    from muster.wire.checks import MAX_JOBS

    specs = [job.spec for job in jobs]
    for spec in specs:
        _warn(spec)
    plain = _plain(specs)
    if wish.dry_run and plain is not None:
        say_lines(_all_texts(plain, wish.output), flush=True)
    try:
        async with session.client() as client:
            specs = [await with_code(client, spec, send=not wish.dry_run) for spec in specs]
            if wish.dry_run or len(specs) > MAX_JOBS:  # so many are not accepted all at once
                await client.jobs.submit_many(specs, queue_anyway=wish.queue_anyway, dry_run=True)
            if wish.dry_run:
                await _print_made(client, specs, wish)
            else:
                _print_ids(jobs, await client.jobs.submit_many(specs, queue_anyway=wish.queue_anyway), wish)
    except JobsRefusedError as error:
        if error.accepted:
            _print_ids(jobs, error.accepted, wish)
        raise _located(error, jobs) from error
    except UnavailableError as error:
        if not wish.dry_run:
            raise
        say(f"the {len(jobs)} jobs are valid; whether they fit was not checked: {error}", err=True)
    else:
        taken = f"valid and {client.address} would take them" if wish.dry_run else "accepted; `muster jobs` lists them"
        say(f"the {len(jobs)} jobs are {taken}", err=True)
    return ExitCode.SUCCESS


def _plain(specs: "Sequence[JobSpec | JobDocument]") -> Sequence[JobSpec] | None:
    """The jobs, if none of them is still to be joined with presets."""
    plain = [spec for spec in specs if isinstance(spec, JobSpec)]
    return plain if len(plain) == len(specs) else None


async def _print_made(client: "Client", specs: "Sequence[JobSpec | JobDocument]", wish: Wish) -> None:
    """Print the jobs that documents and their presets make, where there are such; others were printed before."""
    if _plain(specs) is None:
        made = [spec if isinstance(spec, JobSpec) else (await _tried(client, spec, wish)).spec for spec in specs]
        say_lines(_all_texts(made, wish.output), flush=True)


def _print_ids(jobs: "Sequence[Described]", ids: Sequence[str], wish: Wish) -> None:
    if wish.output.for_people:
        say_lines("".join(f"{each}\n" for each in ids), flush=True)
        return
    accepted = [{"id": id_, "name": job.spec.name} for id_, job in zip(ids, jobs, strict=False)]
    say_lines(text_of(accepted, wish.output), flush=True)


def _all_texts(specs: Sequence[JobSpec], form: Format) -> str:
    if form is Format.JSON:
        return text_of(specs, form)
    return "---\n".join(text_of(spec, Format.YAML) for spec in specs)


def _located(error: JobsRefusedError, jobs: "Sequence[Described]") -> MusterError:
    """What was refused, by file and line, as an error of the kind of the first."""
    accepted = f"the first {len(error.accepted)} of {len(jobs)} jobs were" if error.accepted else "none of the jobs was"
    lines = [_line_of(jobs[place], each) for place, each in error.refused.items()]
    kind = type(next(iter(error.refused.values())))
    return kind("\n".join([f"{accepted} accepted", *lines]))


def _line_of(job: "Described", error: MusterError) -> str:
    located = job.located(error)
    return f"{job.where}: {job.spec.name}: {error}" if located is error else str(located)


def overrides_of(settings: Sequence[str]) -> Mapping[str, Any]:
    """The values of `--set KEY=VALUE` by key."""
    pairs = [setting.partition("=") for setting in settings]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise typer.BadParameter(f"{key!r} has no value; write it like resources.gpus=2", param_hint="--set")
    return {key: value for key, _, value in pairs}
