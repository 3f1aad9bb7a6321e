"""The commands for what jobs have left: which files there are, and getting them."""

from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from muster.cli.commands.data.short_list import ShortList
from muster.cli.commands.logs import ranks_from
from muster.cli.context import answers, session_of
from muster.cli.options import JobName, Output
from muster.cli.output.documents import Format, SheetFormat, text_of
from muster.cli.output.screen import clear_status, draw_share, say, say_lines, screen
from muster.domain.data.outputs import JobOutputs, OutputsStage
from muster.domain.errors import UnknownNameError
from muster.domain.quantity import counted, size_text

NOTES_SHOWN = 5
"""Ranks of which it is said why something of theirs was not stored."""


outputs = typer.Typer(name="outputs", cls=ShortList, no_args_is_help=True, subcommand_metavar="[JOB | COMMAND ...]")

Ranks: TypeAlias = Annotated[str | None, typer.Option("--rank", help="Only these ranks: `0,2-3` (default: all).")]
AttemptNumber: TypeAlias = Annotated[
    int | None, typer.Option("--attempt", min=1, help="Number of the attempt (default: the newest).")
]


@outputs.callback()
def what_jobs_have_left() -> None:
    """List what a job has left in its outputs directories, and get it.

    Examples:
      muster outputs train
      muster outputs get train
    """


@outputs.command("list")
@answers
async def list_outputs(
    context: typer.Context,
    job: JobName,
    *,
    rank: Ranks = None,
    attempt: AttemptNumber = None,
    output: Annotated[
        SheetFormat, typer.Option("--output", "-o", help="Form of the answer; `csv` is for spreadsheets.")
    ] = SheetFormat.TABLE,
) -> None:
    """List the files that a job has left and that are stored.

    As `json` and `yaml` each has the metadata that user code has left of it, in place of the files with these.

    Examples:
      muster outputs train
      muster outputs list j7k2 --rank 0 -o csv
    """
    ranks = ranks_from(rank) if rank is not None else ()
    async with session_of(context).client() as client:
        left = await client.outputs.of(job, attempt=attempt or 0, ranks=ranks)
        told = output in {SheetFormat.JSON, SheetFormat.YAML}
        files = await client.outputs.list(left, metadata=told)
    from muster.cli.commands.data.outputs_table import outputs_csv, outputs_table

    match output:
        case SheetFormat.CSV:
            say_lines(outputs_csv(files))
        case SheetFormat.JSON | SheetFormat.YAML:
            say_lines(text_of(files, Format(output.value)))
        case SheetFormat.TABLE | SheetFormat.WIDE:
            screen(whole=output is SheetFormat.WIDE).print(outputs_table(files))
    _tell_rest(left)


@outputs.command("get")
@answers
async def get_outputs(
    context: typer.Context,
    job: JobName,
    pattern: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATTERN]...", help="Only files with these names, like `**/*.pt` (default: all)."),
    ] = None,
    *,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Directory for them (default: NAME-JOB).")
    ] = None,
    rank: Ranks = None,
    attempt: AttemptNumber = None,
) -> None:
    """Get the files that a job has left.

    Those of each rank lie in a directory with its number, unless the job has one execution alone. Every file is
    compared with its SHA-256. After a break the same command goes on where it was, and what is there already is not
    fetched again.

    Examples:
      muster outputs get train
      muster outputs get j7k2 'plots/**' model.pt --to results --rank 0
    """
    ranks = ranks_from(rank) if rank is not None else ()
    async with session_of(context).client() as client:
        left = await client.outputs.of(job, attempt=attempt or 0, ranks=ranks)
        if not any(each.outputs.tree for each in left.ranks):
            _tell_rest(left)
            raise UnknownNameError(f"attempt {left.attempt} of job {left.job} has no outputs that are stored")
        into = to if to is not None else Path(f"{left.job_name}-{left.job}")
        came = await client.outputs.get(left, into, only=pattern or (), told=partial(draw_share, "getting"))
    clear_status()
    _tell_rest(left)
    say(f"{counted(came.files, 'file')}, {size_text(came.bytes)}: {came.fetched} fetched; they are in {into}")


@outputs.command("retry")
@answers
async def retry_outputs(
    context: typer.Context,
    job: JobName,
    *,
    rank: Ranks = None,
    attempt: AttemptNumber = None,
    output: Output = Format.TABLE,
) -> None:
    """Have outputs stored that lie on their nodes alone.

    Nodes that are away do it once they are back. `muster outputs JOB` tells what becomes of it.

    Examples:
      muster outputs retry train
      muster outputs retry j7k2 --rank 0,2-3 --attempt 1
    """
    ranks = ranks_from(rank) if rank is not None else ()
    async with session_of(context).client() as client:
        retry = await client.outputs.retry(job, attempt=attempt or 0, ranks=ranks)
    if not output.for_people:
        say_lines(text_of(retry, output))
        return
    many = counted(len(retry.ranks), "rank")
    say(
        f"outputs of {many} of attempt {retry.attempt} are stored again; `muster outputs {retry.job}` tells how it goes"
    )
    for each in retry.refused:
        say(f"rank {each.rank}: {each.why}", err=True)


def _tell_rest(left: JobOutputs) -> None:
    """Say what is not stored, and why."""
    notes = [
        f"rank {each.rank}: {_NOTES[each.outputs.stage]}{each.outputs.left_out or ''}{_because(each.outputs.why)}"
        for each in left.ranks
        if each.outputs.stage is not OutputsStage.STORED or each.outputs.left_out
    ]
    notes += [f"rank {each.rank}: its outputs lie in {each.store}" for each in left.ranks if each.store]
    for note in notes[:NOTES_SHOWN]:
        say(note, err=True)
    if len(notes) > NOTES_SHOWN:
        say(f"and {counted(len(notes) - NOTES_SHOWN, 'rank')} more", err=True)


def _because(why: str) -> str:
    return f" ({why})" if why else ""


_NOTES = {
    OutputsStage.LIVE: "it still runs, so more may follow",
    OutputsStage.STORING: "its outputs are on their way",
    OutputsStage.STORED: "entries that were left out: ",
    OutputsStage.ON_NODE: "its outputs were not stored and lie on its node",
    OutputsStage.LOST: "its outputs were not stored before its node went away",
    OutputsStage.UNWANTED: "it did not succeed, and its job wants outputs of success alone (outputs.on)",
    OutputsStage.EXPIRED: "its outputs are not there any more",
    OutputsStage.STORING_AGAIN: "its node stores its outputs again, once it is there",
}
