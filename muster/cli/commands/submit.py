"""Commands that make jobs: submit, run, schema."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from muster.cli.context import CliContext, answers, session_of
from muster.cli.exit_codes import ExitCode
from muster.cli.options import Output, labels_of
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import print_dim, say, say_lines
from muster.cli.run_document import RunFlags, run_document
from muster.cli.streams import has_unread_input
from muster.domain.errors import InvalidJobError, JobsRefusedError, MusterError, UnavailableError
from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.job import JobSpec, Network, Packing
from muster.domain.jobs.lifecycle import SuccessRule
from muster.jobfile import job_from, job_schema

if TYPE_CHECKING:
    from muster.cli.job_files import Described
    from muster.client.client import Client
    from muster.domain.jobs.view import JobView

_ON_ITS_WAY = 0.001
"""Seconds after which a question has left this program."""


class _Wish(NamedTuple):
    """What is to become of a job that is made."""

    follow: bool
    dry_run: bool
    queue_anyway: bool
    output: Format
    stops: bool = False
    """Whether Ctrl-C stops the job."""


@answers
async def submit(  # noqa: PLR0913 - one for each option
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Job files; - is stdin. Each may hold several jobs.", allow_dash=True),
    ],
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Stay with it; Ctrl-C leaves it alone.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check it and print what would be sent.")] = False,
    queue_anyway: Annotated[
        bool,
        typer.Option("--queue-anyway", help="Accept it even if no present node could ever run it."),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Replace a value of the file: `resources.gpus=2`."),
    ] = None,
    output: Output = Format.TABLE,
) -> ExitCode:
    """Submit the jobs that files describe, all or none of them, and print their ids."""
    from muster.cli.job_files import read_jobs  # noqa: PLC0415 - `muster run` does without

    jobs = read_jobs(files, _overrides(settings or ()))
    if follow and len(jobs) > 1:
        raise typer.BadParameter(f"stays with one job; these are {len(jobs)}", param_hint="--follow")
    wish = _Wish(follow=follow, dry_run=dry_run, queue_anyway=queue_anyway, output=output)
    if len(jobs) == 1:
        return await _make(session_of(context), jobs[0].spec, wish)
    return await _make_all(session_of(context), jobs, wish)


@answers
async def run(  # noqa: PLR0913 - one for each option
    context: typer.Context,
    command: Annotated[list[str] | None, typer.Argument(metavar="[--] COMMAND...", help="What to run.")] = None,
    *,
    workers: Annotated[int, typer.Option("--workers", "-N", min=1, help="How many executions.")] = 1,
    gpus: Annotated[int | None, typer.Option(help="GPUs of each.")] = None,
    gpu_model: Annotated[str | None, typer.Option(help="Part of the model name of every GPU: `H100`.")] = None,
    cpus: Annotated[str | None, typer.Option(help="CPUs of each: `2`, `0.5`.")] = None,
    memory: Annotated[str | None, typer.Option(help="Memory of each: `16Gi`.")] = None,
    shm: Annotated[str | None, typer.Option(help="Size of /dev/shm in the container.")] = None,
    image: Annotated[str | None, typer.Option(help="Container image; without it a plain process.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the job; made from the command otherwise.")] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env", "-e", metavar="NAME[=VALUE]", help="Environment variable; a bare name takes its value here."
        ),
    ] = None,
    port: Annotated[
        list[str] | None,
        typer.Option("--port", "-p", metavar="NAME[=NUMBER]", help="A port of each, leased or fixed."),
    ] = None,
    mount: Annotated[
        list[str] | None,
        typer.Option(metavar="/SOURCE:/TARGET[:rw]", help="A directory or file of the node, seen in the container."),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[VARIABLE=]NAME[:KEY]",
            help="A secret of the project: as files in /muster/secrets/NAME, or in a variable.",
        ),
    ] = None,
    workdir: Annotated[str | None, typer.Option(help="Working directory.")] = None,
    user: Annotated[str | None, typer.Option(help="Who runs in the container: `1000:1000`.")] = None,
    network: Annotated[Network | None, typer.Option(help="The node's network, or a private one per container.")] = None,
    placement: Annotated[Packing | None, typer.Option(help="On as few nodes as possible, or as many.")] = None,
    max_per_node: Annotated[int | None, typer.Option(help="At most so many executions on one node.")] = None,
    priority: Annotated[int | None, typer.Option(help="Higher goes first; -1000 to 1000.")] = None,
    project: Annotated[str | None, typer.Option(help="The project of the job (default: your only project).")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A label to find the job by: `paper=icml`; may be repeated."),
    ] = None,
    success: Annotated[SuccessRule | None, typer.Option(help="Who must end well.")] = None,
    check_in_timeout: Annotated[str | None, typer.Option(help="Limit for preparing: `10m`.")] = None,
    lost_after: Annotated[str | None, typer.Option(help="How long a node may be silent: `90s`, `1h`.")] = None,
    on_disconnect: Annotated[
        OnDisconnect | None, typer.Option(help="What goes on where nobody hears of the coordinator.")
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Only submit it, and print its id.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check it and print what would be sent.")] = False,
    queue_anyway: Annotated[
        bool,
        typer.Option("--queue-anyway", help="Accept it even if no present node could ever run it."),
    ] = False,
    output: Output = Format.TABLE,
) -> ExitCode:
    """Run a command on every worker and stay with it. The first Ctrl-C stops the job, the second leaves at once."""
    if has_unread_input():
        raise InvalidJobError(
            "data waits on stdin, which does not reach a job: send it as a file of a job file (`files`), or write "
            "`< /dev/null` behind the command if it is not for the job"
        )
    flags = RunFlags(
        command=command or (),
        workers=workers,
        name=name,
        image=image,
        workdir=workdir,
        user=user,
        env=env or (),
        ports=port or (),
        mounts=mount or (),
        secrets=secret or (),
        gpus=gpus,
        gpu_model=gpu_model,
        cpus=cpus,
        memory=memory,
        shm=shm,
        network=network,
        placement=placement,
        priority=priority,
        project=project,
        labels=labels_of(label, "--label") if label else None,
        success=success,
        max_per_node=max_per_node,
        check_in_timeout=check_in_timeout,
        lost_after=lost_after,
        on_disconnect=on_disconnect,
    )
    spec = job_from(run_document(flags, os.environ), "muster run")
    wish = _Wish(follow=not detach, stops=True, dry_run=dry_run, queue_anyway=queue_anyway, output=output)
    code = await _make(session_of(context), spec, wish)
    if has_unread_input():
        print_dim("warning: what has come on stdin since the start did not reach the job")
    return code


def schema() -> None:
    """Print the JSON Schema of job files, for editors."""
    import json  # noqa: PLC0415 - `muster run` does without

    say_lines(json.dumps(job_schema(), indent=2) + "\n")


async def _make(session: CliContext, spec: JobSpec, wish: _Wish) -> ExitCode:
    if wish.dry_run:
        return await _check(session, spec, wish)
    async with session.client() as client:
        job = await _submitted(client, spec, wish)
        if not wish.follow:
            say_lines(text_of(job, wish.output) if wish.output is not Format.TABLE else f"{job.id}\n", flush=True)
            say(f"{spec.name} is accepted; `muster logs -f {job.id}` follows it", err=True)
            return ExitCode.SUCCESS
        from muster.cli.follow import follow  # noqa: PLC0415

        return await follow(client, job, stops=wish.stops)


async def _submitted(client: "Client", spec: JobSpec, wish: _Wish) -> "JobView":
    """The job, accepted; what it takes to read that, and to stay with it, is loaded while the coordinator stores it."""
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(client.jobs.submit(spec, queue_anyway=wish.queue_anyway), name=f"submit {spec.name}")
        await asyncio.wait([asked], timeout=_ON_ITS_WAY)
        import muster.wire.jobs  # noqa: F401, PLC0415

        if wish.follow:
            from muster.cli import follow  # noqa: F401, PLC0415
    return asked.result()


async def _check(session: CliContext, spec: JobSpec, wish: _Wish) -> ExitCode:
    """Print what would be sent; where a coordinator answers, it says whether it would take it."""
    say_lines(text_of(spec, Format.JSON if wish.output is Format.JSON else Format.YAML), flush=True)
    try:
        async with session.client() as client:
            await client.jobs.submit(spec, queue_anyway=wish.queue_anyway, dry_run=True)
    except UnavailableError as error:
        say(f"the job is valid; whether it fits was not checked: {error}", err=True)
    else:
        say(f"the job is valid and {client.address} would take it", err=True)
    return ExitCode.SUCCESS


async def _make_all(session: CliContext, jobs: "Sequence[Described]", wish: _Wish) -> ExitCode:
    from muster.wire.checks import MAX_JOBS  # noqa: PLC0415

    specs = [job.spec for job in jobs]
    if wish.dry_run:
        say_lines(_all_texts(specs, wish.output), flush=True)
    try:
        async with session.client() as client:
            if wish.dry_run or len(specs) > MAX_JOBS:  # so many are not accepted all at once
                await client.jobs.submit_many(specs, queue_anyway=wish.queue_anyway, dry_run=True)
            if not wish.dry_run:
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


def _print_ids(jobs: "Sequence[Described]", ids: Sequence[str], wish: _Wish) -> None:
    if wish.output is Format.TABLE:
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
    lines = [f"{jobs[place].where}: {jobs[place].spec.name}: {each}" for place, each in error.refused.items()]
    kind = type(next(iter(error.refused.values())))
    return kind("\n".join([f"{accepted} accepted", *lines]))


def _overrides(settings: Sequence[str]) -> Mapping[str, str]:
    pairs = [setting.partition("=") for setting in settings]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise typer.BadParameter(f"{key!r} has no value; write it like resources.gpus=2", param_hint="--set")
    return {key: value for key, _, value in pairs}
