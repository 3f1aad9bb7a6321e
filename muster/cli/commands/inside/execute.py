"""The commands exec and shell: programs and terminals in running executions."""

import os
from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from muster.cli.context import answers, session_of
from muster.cli.exit_codes import ExitCode
from muster.cli.options import JobName, Output
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import print_dim, say, say_lines
from muster.domain.errors import InvalidJobError

if TYPE_CHECKING:
    from muster.client.client import Client
    from muster.domain.attachments.request import CommandRequest

RANKS_AT_ONCE = 64
"""Ranks in which one command runs at once."""

Rank: TypeAlias = Annotated[
    int | None, typer.Option(min=0, help="The rank of the execution (default: the lowest that runs).")
]
Wait: TypeAlias = Annotated[
    bool, typer.Option("--wait", help="Wait until the execution runs, if it is queued or being prepared.")
]
Env: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--env", "-e", metavar="NAME[=VALUE]", help="Environment variable of the program; may be repeated."),
]
Workdir: TypeAlias = Annotated[
    str, typer.Option("--workdir", "-w", metavar="DIR", help="Working directory (default: that of the job's program).")
]


@answers
async def execute(
    context: typer.Context,
    job: JobName,
    words: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="Program to run, and its arguments.")],
    *,
    rank: Annotated[
        str | None, typer.Option(help="Ranks in which it runs: `0,2-3` (default: the lowest that runs).")
    ] = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Run it in every execution that runs.")] = False,
    terminal: Annotated[
        bool | None,
        typer.Option("--tty/--no-tty", "-t/-T", help="Give it a terminal (default: if you sit at one)."),
    ] = None,
    has_input: Annotated[
        bool | None,
        typer.Option("--stdin/--no-stdin", "-i/-I", help="Pass on what comes on stdin (default: for a single rank)."),
    ] = None,
    env: Env = None,
    workdir: Workdir = "",
    wait: Wait = False,
    at_once: Annotated[
        int, typer.Option("--at-once", min=1, max=1000, help="Most ranks in which it runs at the same time.")
    ] = RANKS_AT_ONCE,
    output: Output = Format.TABLE,
) -> int:
    """Run a command in running executions of a job.

    The exit code is that of the command; of several ranks, the highest one.

    Examples:
      muster exec train -- nvidia-smi
      muster exec train --all -- df -h /scratch
    """
    from muster.cli.attaching.terminal import has_terminal, terminal_size
    from muster.domain.attachments.request import CommandRequest

    several = everywhere or (rank is not None and not rank.strip().isdecimal()) or not output.for_people
    wants_terminal = has_terminal() and not several if terminal is None else terminal
    if wants_terminal and several:
        raise InvalidJobError("a terminal leads to a single rank; leave out -t, or name one rank")
    if several and has_input:
        raise InvalidJobError("what comes on stdin goes to a single rank; leave out -i, or name one rank")
    request = CommandRequest(
        words=tuple(words),
        env=variables(env or (), terminal=wants_terminal),
        workdir=workdir,
        terminal=terminal_size() if wants_terminal else None,
        has_input=wants_terminal or (has_input is not False and not several),
    )
    async with session_of(context).client() as client:
        if several:
            ranks = await meant_ranks(client, job, rank)
            return await _in_several(client, job, ranks, request, at_once=at_once, output=output)
        return await attached(client, job, int(rank) if rank is not None else None, request, wait=wait)


@answers
async def shell(
    context: typer.Context,
    job: JobName,
    *,
    rank: Rank = None,
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep", metavar="NAME", help="Keep the shell under this name when you leave; the same name comes back."
        ),
    ] = None,
    end: Annotated[str | None, typer.Option("--end", metavar="NAME", help="End this kept shell.")] = None,
    lists: Annotated[bool, typer.Option("--list", help="List the kept shells of every rank, or of one.")] = False,
    wait: Wait = False,
    output: Output = Format.TABLE,
) -> int:
    """Open a shell in a running execution.

    It is the login shell of the execution's user, else bash, else sh. `~.` at the beginning of a line leaves it.

    Examples:
      muster shell train --rank 2
      muster shell dev --keep work
    """
    from muster.cli.attaching.terminal import has_terminal, terminal_size
    from muster.domain.attachments.request import CommandRequest

    if sum((keep is not None, end is not None, lists)) > 1:
        raise InvalidJobError("--keep, --end and --list do different things; leave out all but one")
    if lists or end is not None:
        async with session_of(context).client() as client:
            if end is not None:
                await client.attachments.end_kept(job, end, rank=rank)
                say(f"{end} is ended")
                return ExitCode.SUCCESS
            from muster.cli.commands.inside.kept_shells import list_kept

            await list_kept(client, job, await meant_ranks(client, job, None if rank is None else str(rank)), output)
            return ExitCode.SUCCESS
    if not has_terminal():
        raise InvalidJobError("a shell needs a terminal; `muster exec JOB -- sh` runs commands that come on stdin")
    request = CommandRequest(
        env=variables((), terminal=True), terminal=terminal_size(), has_input=True, kept=keep or ""
    )
    async with session_of(context).client() as client:
        return await attached(client, job, rank, request, wait=wait, greets=True)


def variables(said: Sequence[str], *, terminal: bool) -> tuple[str, ...]:
    """Variables as a command gets them: NAME alone has the value that it has here, and a terminal its kind."""
    given = []
    for each in said:
        name, equals, _ = each.partition("=")
        if not name:
            raise typer.BadParameter(f"write NAME=VALUE, not {each!r}", param_hint="--env")
        if equals:
            given.append(each)
        elif name in os.environ:
            given.append(f"{name}={os.environ[name]}")
        else:
            raise typer.BadParameter(f"{name} has no value here; write {name}=VALUE", param_hint="--env")
    if terminal and not any(each.startswith("TERM=") for each in given):
        given.append(f"TERM={os.environ.get('TERM', 'xterm')}")
    return tuple(given)


async def attached(
    client: "Client", job: str, rank: int | None, request: "CommandRequest", *, wait: bool, greets: bool = False
) -> int:
    """Run a command, or open a shell, in one execution, joined with this program; the exit code."""
    from muster.cli.attaching.following import BreakNotice, joined, tell_notice

    if wait:
        await until_running(client, job, rank)
    notice = BreakNotice(10)
    opening = client.attachments.open(job, request, rank=rank, on_break=notice, on_notice=tell_notice)
    async with await opening as stream:
        if greets:
            await _greet(client, stream.shown.job, stream.shown.rank)
        return await joined(
            stream, terminal=request.terminal is not None, has_input=request.has_input, leaves=bool(request.kept)
        )


async def until_running(client: "Client", job: str, rank: int | None, *, tells: bool = True) -> None:
    """Wait until an execution runs, or its job has ended; says on stderr what it waits for, if it `tells`."""
    from muster.domain.jobs.lifecycle import State

    known = await client.jobs.get(job)
    told = ""
    async with aclosing(client.jobs.watch(known)) as views:
        async for view in views:
            members = view.attempts[-1].executions if view.attempts else ()
            meant = [each for each in members if rank in {None, each.rank}]
            if any(each.state is State.RUNNING for each in meant):
                return
            if tells and view.summary != told:
                told = view.summary
                say(f"{view.spec.name}: {told}", err=True, flush=True)


async def _greet(client: "Client", job: str, rank: int) -> None:
    view = await client.jobs.get(job)
    here = next((each for each in view.attempts[-1].executions if each.rank == rank), None)
    others = [each for each in await client.attachments.list(job) if each.rank == rank]
    gpus = f", {len(here.gpus)} GPUs" if here is not None and here.gpus else ""
    beside = f"; {len(others) - 1} others are attached" if len(others) > 1 else ""
    print_dim(
        f"rank {rank} of {view.spec.name} on {here.node if here else '?'}{gpus}{beside}; ~. leaves, ~? lists more"
    )
    if any(role.secrets for role in view.spec.roles):
        print_dim("the job has secrets, and what you print here is not masked as its log is")


async def meant_ranks(client: "Client", job: str, said: str | None) -> list[int]:
    """The ranks that are meant; of `--all` those that run."""
    from muster.cli.commands.logs import ranks_from
    from muster.domain.jobs.lifecycle import State

    if said is not None:
        return sorted(ranks_from(said))
    view = await client.jobs.get(job)
    members = view.attempts[-1].executions if view.attempts else ()
    ended = [each.rank for each in members if each.state is not State.RUNNING]
    if ended:
        print_dim(f"{len(ended)} of {len(members)} executions do not run: rank {', '.join(map(str, ended[:20]))}")
    return [each.rank for each in members if each.state is State.RUNNING]


async def _in_several(
    client: "Client", job: str, ranks: Sequence[int], request: "CommandRequest", *, at_once: int, output: Format
) -> int:
    from muster.cli.attaching.several import run_in_ranks

    def show(lines: bytes, err: bool) -> None:
        say_lines(lines.decode(errors="surrogateescape"), err=err, flush=True)

    results = await run_in_ranks(client, job, ranks, request, at_once=at_once, show=show if output.for_people else None)
    if not output.for_people:
        say_lines(text_of(results, output))
    return max((each.code for each in results), default=int(ExitCode.SUCCESS))
