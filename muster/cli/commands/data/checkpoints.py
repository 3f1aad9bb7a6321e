"""The commands for what jobs have saved: which checkpoints there are, getting one, and which of them stay."""

from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from muster.cli.commands.data.short_list import ShortList
from muster.cli.commands.logs import ranks_from
from muster.cli.context import answers, session_of
from muster.cli.options import JobName, Output
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import clear_status, draw_share, say, say_lines, screen
from muster.domain.data.checkpoint import CheckpointView
from muster.domain.quantity import counted, size_text

checkpoints = typer.Typer(
    name="checkpoints", cls=ShortList, no_args_is_help=True, subcommand_metavar="[JOB | COMMAND ...]"
)

CheckpointName: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="Name of the checkpoint.")]
SavedBy: TypeAlias = Annotated[
    int | None, typer.Option("--attempt", min=1, help="Attempt that saved it (default: the newest with one).")
]


@checkpoints.callback()
def what_jobs_have_saved() -> None:
    """List what a job has saved, get it, and say what of it stays.

    Examples:
      muster checkpoints train
      muster checkpoints get train
    """


@checkpoints.command("list")
@answers
async def list_checkpoints(context: typer.Context, job: JobName, *, output: Output = Format.TABLE) -> None:
    """List the checkpoints of a job that are stored, the newest first.

    The next attempt begins with the first one that is whole and not bad.

    Examples:
      muster checkpoints train
      muster checkpoints list j7k2 -o json
    """
    async with session_of(context).client() as client:
        saved = await client.checkpoints.of(job)
    if not output.for_people:
        say_lines(text_of(saved, output))
        return
    from muster.cli.commands.data.checkpoints_table import checkpoints_table

    screen(whole=output is Format.WIDE).print(checkpoints_table(saved.checkpoints))
    for trouble in saved.troubles:
        say(f"rank {trouble.rank}: its newest one is not stored: {trouble.why}", err=True)


@checkpoints.command("get")
@answers
async def get_checkpoint(
    context: typer.Context,
    job: JobName,
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Name of the checkpoint (default: the newest whole one).")
    ] = "",
    *,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Directory for it (default: NAME-JOB-checkpoints).")
    ] = None,
    rank: Annotated[str | None, typer.Option("--rank", help="Only these ranks: `0,2-3` (default: all).")] = None,
    attempt: SavedBy = None,
    output: Output = Format.TABLE,
) -> None:
    """Get a checkpoint.

    The part of each rank lies in a directory with its number, unless one rank alone saves. Every file is compared
    with its SHA-256. After a break the same command goes on where it was.

    Examples:
      muster checkpoints get train
      muster checkpoints get j7k2 epoch-3 --to saved --rank 0
    """
    ranks = ranks_from(rank) if rank is not None else ()
    async with session_of(context).client() as client:
        saved = await client.checkpoints.of(job)
        into = to if to is not None else Path(f"{saved.job_name}-{saved.job}-checkpoints")
        came = await client.checkpoints.get(
            saved.job, into, name=name, attempt=attempt or 0, ranks=ranks, told=partial(draw_share, "getting")
        )
    clear_status()
    if output.for_people:
        what = f"{came.checkpoint.id}: {counted(came.files, 'file')}, {size_text(came.bytes)}"
        say(f"{what}: {came.fetched} fetched; they are in {into}")
    else:
        say_lines(text_of(came, output))


@checkpoints.command("pin")
@answers
async def pin_checkpoint(
    context: typer.Context,
    job: JobName,
    name: CheckpointName,
    *,
    attempt: SavedBy = None,
    output: Output = Format.TABLE,
) -> None:
    """Keep a checkpoint until it is unpinned, or its job deleted.

    Examples:
      muster checkpoints pin train epoch-3
      muster checkpoints pin j7k2 epoch-3 --attempt 1
    """
    async with session_of(context).client() as client:
        _tell(await client.checkpoints.pin(job, name, attempt=attempt or 0), "is pinned", output)


@checkpoints.command("unpin")
@answers
async def unpin_checkpoint(
    context: typer.Context,
    job: JobName,
    name: CheckpointName,
    *,
    attempt: SavedBy = None,
    output: Output = Format.TABLE,
) -> None:
    """Keep a checkpoint no longer than others.

    It goes at once if there are as many newer ones as the job keeps.

    Examples:
      muster checkpoints unpin train epoch-3
      muster checkpoints unpin j7k2 epoch-3 --attempt 1
    """
    async with session_of(context).client() as client:
        _tell(await client.checkpoints.unpin(job, name, attempt=attempt or 0), "is not pinned any more", output)


@checkpoints.command("remove")
@answers
async def remove_checkpoint(
    context: typer.Context,
    job: JobName,
    name: CheckpointName,
    *,
    attempt: SavedBy = None,
    output: Output = Format.TABLE,
) -> None:
    """Remove a checkpoint, so that no attempt begins with it.

    The one with which the present attempt began stays.

    Examples:
      muster checkpoints remove train epoch-2
      muster checkpoints remove j7k2 epoch-2 --attempt 1 -o json
    """
    async with session_of(context).client() as client:
        _tell(await client.checkpoints.remove(job, name, attempt=attempt or 0), "is removed", output)


def _tell(checkpoint: CheckpointView, what: str, output: Format) -> None:
    if output.for_people:
        say(f"checkpoint {checkpoint.id} {what}")
    else:
        say_lines(text_of(checkpoint, output))
