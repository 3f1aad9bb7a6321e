"""The command attach, and main programs that people talk to: their terminal, their input and their log."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from muster.cli.commands.inside.execute import Rank, Wait, attached, until_running, variables
from muster.cli.commands.submit import Wish, submitted
from muster.cli.context import CliContext, answers, session_of
from muster.cli.exit_codes import ExitCode, code_of_job
from muster.cli.options import JobName
from muster.cli.output.screen import print_dim
from muster.domain.attachments.request import CommandRequest, MainProgramRequest
from muster.domain.errors import ConflictError, InvalidJobError, MusterError, first_of
from muster.domain.jobs.interactive import MainProgramStreams
from muster.domain.jobs.job import JobSpec

if TYPE_CHECKING:
    from muster.client.client import Client
    from muster.domain.jobs.view import JobView


@answers
async def attach(
    context: typer.Context,
    job: JobName,
    *,
    rank: Annotated[
        int | None, typer.Option(min=0, help="The rank of the execution (default: rank 0, and the log of all).")
    ] = None,
    shell: Annotated[
        str | None, typer.Option("--shell", metavar="NAME", help="Take up this kept shell, and no main program.")
    ] = None,
    wait: Wait = False,
) -> int:
    """Attach to the main program of a running job.

    A job with `tty: true` gives its terminal, and `~.` at the beginning of a line leaves it. All other jobs show their
    log, and one with `stdin: true` reads what you type. Ctrl-C leaves that, and the job goes on. The exit code is that
    of the job.

    Examples:
      muster attach train
      muster attach dev --shell work
    """
    async with session_of(context).client() as client:
        if shell is not None:
            return await _take_up(client, job, rank, shell)
        if wait:
            await until_running(client, job, rank or 0)
        view = await client.jobs.get(job)
        streams = view.spec.main_program if rank in {None, 0} else None
        if streams is MainProgramStreams.TTY and not view.phase.ended:
            return await _at_its_terminal(client, view)
        _tell_what_comes(view, rank, streams)
        return await _following(client, view, rank, feeds=streams is MainProgramStreams.STDIN)


async def run_with_main_program(session: CliContext, spec: JobSpec, wish: Wish) -> int:
    """Submit a job whose main program of rank 0 has this terminal, or what comes on stdin; the exit code of the job."""
    from muster.cli.attaching.following import LEFT_CODE
    from muster.cli.attaching.terminal import has_terminal
    from muster.cli.follow import follow, print_verdict

    if spec.tty and not has_terminal():
        raise InvalidJobError("-t needs a terminal on stdin and stdout; -i alone passes on what comes on stdin")
    async with session.client() as client:
        job = await submitted(client, spec, wish)
        if spec.tty:
            await until_running(client, job.id, 0)
            with suppress(ConflictError):  # rank 0 has ended already, and its log tells what it printed
                if await _at_its_terminal(client, job) == LEFT_CODE:
                    return LEFT_CODE
                ended = await client.jobs.wait(job.id)
                print_verdict(ended, err=True)
                return code_of_job(ended)
            return await follow(client, job, stops=True)
        async with asyncio.TaskGroup() as tasks:
            feeding = tasks.create_task(_fed_once_it_runs(client, job.id), name="input of rank 0")
            try:
                return await follow(client, job, stops=True)
            finally:
                feeding.cancel()


async def _take_up(client: "Client", job: str, rank: Rank, name: str) -> int:
    """Take up a kept shell that is there; its exit code."""
    from muster.cli.attaching.terminal import has_terminal, terminal_size

    if not has_terminal():
        raise InvalidJobError("a shell needs a terminal; `muster exec JOB -- sh` runs commands that come on stdin")
    names = [each.name for each in await client.attachments.kept(job, rank=rank)]
    if name not in names:
        raise ConflictError(
            f"{job} has no kept shell {name} there, but {', '.join(names) or 'none at all'}; "
            f"`muster shell {job} --keep {name}` opens one"
        )
    env = variables((), terminal=True)
    request = CommandRequest(env=env, terminal=terminal_size(), has_input=True, kept=name)
    return await attached(client, job, rank, request, wait=False, greets=True)


async def _at_its_terminal(client: "Client", job: "JobView") -> int:
    """Join the standard streams with the terminal of rank 0; the exit code of its main program."""
    from muster.cli.attaching.following import LEFT_CODE, BreakNotice, joined, tell_notice
    from muster.cli.attaching.terminal import has_terminal, terminal_size

    at_one = has_terminal()
    request = MainProgramRequest(terminal=terminal_size() if at_one else None)
    opening = client.attachments.open(job.id, request, rank=0, on_break=BreakNotice(10), on_notice=tell_notice)
    async with await opening as stream:
        if at_one:
            print_dim(f"the terminal of rank 0 of {job.spec.name}; ~. leaves, ~? lists more")
        code = await joined(stream, terminal=at_one, has_input=True, leaves=True)
    if code == LEFT_CODE:
        print_dim(f"left {job.spec.name} ({job.id}), which goes on; `muster attach {job.id}` comes back to it")
    return code


def _tell_what_comes(job: "JobView", rank: int | None, streams: MainProgramStreams | None) -> None:
    whose = "of all ranks" if rank is None else f"of rank {rank}"
    if streams is MainProgramStreams.STDIN:
        print_dim(f"rank 0 of {job.spec.name} reads what you type, and Ctrl-D ends that; the log {whose} follows")
    elif job.spec.main_program is not None and rank:
        print_dim(f"only rank 0 of {job.spec.name} has a terminal or an input; the log {whose} follows")
    else:
        print_dim(f"{job.spec.name} has neither `tty` nor `stdin`; the log {whose} follows")


async def _following(client: "Client", job: "JobView", rank: int | None, *, feeds: bool) -> int:
    """Show the log until it is complete, and give rank 0 what comes on stdin; the exit code of the job."""
    from muster.cli.follow import attend, follow_logs
    from muster.cli.output.log_printer import style_for

    lines = client.jobs.logs(job, ranks=() if rank is None else frozenset({rank}), follow=True)
    async with asyncio.TaskGroup() as tasks:
        feeding = tasks.create_task(_fed(client, job.id), name="input of rank 0") if feeds else None
        try:
            if await attend(client, job, follow_logs(client, job, lines, style_for(job))) is None:
                return ExitCode.INTERRUPTED
        finally:
            if feeding is not None:
                feeding.cancel()
    latest = await client.jobs.get(job.id)
    return code_of_job(latest) if latest.phase.ended else ExitCode.SUCCESS


async def _fed_once_it_runs(client: "Client", job: str) -> None:
    with suppress(MusterError):  # whoever follows the job tells what is wrong with it
        await until_running(client, job, 0, tells=False)
        await _fed(client, job)


async def _fed(client: "Client", job: str) -> None:
    """Give rank 0 what comes on stdin; what stands against it is told once, and the log goes on."""
    from muster.cli.attaching.following import BreakNotice, fed, tell_notice
    from muster.client.attachments.finished import raise_if_broken
    from muster.domain.attachments.frame import AttachmentEnded

    try:
        opening = client.attachments.open(
            job, MainProgramRequest(), rank=0, on_break=BreakNotice(10), on_notice=tell_notice
        )
        async with await opening as stream, asyncio.TaskGroup() as tasks:
            feeding = tasks.create_task(fed(stream), name="standard input")
            while not isinstance(frame := await stream.receive(), AttachmentEnded):
                pass
            feeding.cancel()
            raise_if_broken(frame)
    except* MusterError as group:
        print_dim(f"nothing more goes to rank 0: {first_of(group)}")
