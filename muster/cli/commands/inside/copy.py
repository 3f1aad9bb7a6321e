"""The commands cp and sync: files to and from running executions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from muster.cli.context import answers, session_of
from muster.cli.options import Output
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines
from muster.domain.errors import ConflictError, InvalidJobError

if TYPE_CHECKING:
    from muster.cli.attaching.transfers import OpenFiles, Ranks, RankTransfer
    from muster.client.attachments.places import RemotePlace
    from muster.client.client import Client

_MOST_NAMED = 20
"""Files that are named of those that were not copied."""

_MINUTES = 1.0
"""Minutes for which an interrupted connection is tried again, as the coordinator has it for files."""

RankOfFiles: TypeAlias = Annotated[
    str | None, typer.Option(help="Ranks that are meant: `0,2-3` (default: the lowest that runs).")
]
EveryRank: TypeAlias = Annotated[bool, typer.Option("--all", help="Every execution that runs is meant.")]


@answers
async def copy(
    context: typer.Context,
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE... TARGET",
            help="Files and directories; those of an execution are JOB:PATH or JOB:RANK:PATH, a local one ./a:b.",
        ),
    ],
    *,
    rank: RankOfFiles = None,
    everywhere: EveryRank = False,
    times: Annotated[
        bool, typer.Option("--times/--no-times", help="Keep the times of files (default), or let them be new.")
    ] = True,
    output: Output = Format.TABLE,
) -> int:
    """Copy files to running executions, and from them.

    Each file takes its place when it is whole, and is compared with its source. From several ranks, each gets a
    directory of its number in TARGET.

    Examples:
      muster cp train.py data dev:/scratch
      muster cp --all train:/muster/outputs results
    """
    from muster.cli.attaching.transfers import copied, transfer_line
    from muster.client.attachments.places import execution_meant, place_of

    *sources, target = [place_of(text) for text in places]
    if not sources:
        raise InvalidJobError("say what to copy and where: muster cp SOURCE... TARGET")
    execution_meant(sources, target)
    remote = _remote(*sources, target)
    async with session_of(context).client() as client:
        ranks = await _ranks(client, remote, rank, everywhere=everywhere)
        with transfer_line() as line:
            done = await copied(sources, target, _opener(client), ranks, times=times, line=line)
    return _tell(done, output)


@answers
async def sync(
    context: typer.Context,
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Directory of this machine.")],
    there: Annotated[str, typer.Argument(metavar="JOB:DIR", help="Directory there: JOB:PATH or JOB:RANK:PATH.")],
    *,
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove what only the directory has that is changed.")
    ] = False,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="PATTERN", help="Leave out what fits, as in .gitignore; may be repeated."),
    ] = None,
    down: Annotated[bool, typer.Option("--down", help="Make DIR like JOB:DIR, and not the other way round.")] = False,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace what is newer or of another kind in the directory that is changed."),
    ] = False,
    rank: RankOfFiles = None,
    everywhere: EveryRank = False,
    output: Output = Format.TABLE,
) -> int:
    """Make a directory of running executions like one of this machine.

    Only what differs is sent: by size and time, then by content. Rules of .gitignore and .musterignore in DIR count.

    Examples:
      muster sync . dev:/workspace --delete
      muster sync results train:/muster/outputs --down --all
    """
    from muster.cli.attaching.transfers import SyncWanted, synced, transfer_line
    from muster.client.attachments.places import LocalPlace, RemotePlace, place_of
    from muster.client.files.plan import PlanRules

    local, remote = place_of(directory), place_of(there)
    if not isinstance(local, LocalPlace) or not isinstance(remote, RemotePlace):
        raise InvalidJobError(
            "write the directory of this machine first: muster sync DIR JOB:DIR; --down turns it around"
        )
    wanted = SyncWanted(
        local=local,
        remote=remote,
        down=down,
        rules=PlanRules(delete=delete, overwrite=overwrite),
        excluded=tuple(exclude or ()),
    )
    async with session_of(context).client() as client:
        ranks = await _ranks(client, remote, rank, everywhere=everywhere)
        with transfer_line() as line:
            done = await synced(wanted, _opener(client), ranks, line)
    return _tell(done, output)


def _remote(*places: object) -> "RemotePlace":
    from muster.client.attachments.places import RemotePlace

    return next(each for each in places if isinstance(each, RemotePlace))


async def _ranks(client: "Client", place: "RemotePlace", said: str | None, *, everywhere: bool) -> "Ranks":
    """The ranks that are meant; of `--all` those that run."""
    ways = [place.rank is not None, said is not None, everywhere]
    if sum(ways) > 1:
        raise InvalidJobError("say the rank once: in JOB:RANK:PATH, with --rank, or --all")
    if said is None and not everywhere:
        return [place.rank]
    from muster.cli.commands.inside.execute import meant_ranks

    ranks = await meant_ranks(client, place.job, said)
    if not ranks:
        raise ConflictError(f"no execution of {place.job} runs; `muster show {place.job}` tells more")
    return ranks


def _opener(client: "Client") -> "OpenFiles":
    from muster.cli.attaching.following import BreakNotice
    from muster.client.files.byte_stream import AttachmentBytes, ByteStream
    from muster.domain.attachments.request import FilesRequest

    notice = BreakNotice(_MINUTES)

    async def open_files(job: str, rank: int | None) -> ByteStream:
        return AttachmentBytes(await client.attachments.open(job, FilesRequest(), rank=rank, on_break=notice))

    return open_files


def _tell(done: "Sequence[RankTransfer]", output: Format) -> int:
    """Say what was done; the highest exit code."""
    if not output.for_people:
        say_lines(text_of(done, output))
        return max(each.code for each in done)
    for each in done:
        which = f"rank {each.rank}: " if len(done) > 1 else ""
        for what, paths in (("left out", each.left_out), ("not copied", each.failed)):
            for one in paths[:_MOST_NAMED]:
                say(f"{which}{what}: {one.path}: {one.why}", err=True)
            if len(paths) > _MOST_NAMED:
                say(f"{which}{what}: {len(paths) - _MOST_NAMED} more", err=True)
        say(f"{which}{each.sentence}", err=bool(each.error))
    return max(each.code for each in done)
