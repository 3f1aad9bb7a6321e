"""Files copied to and from executions, one or several at once, and how that is told."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from muster.cli.exit_codes import ExitCode, code_of_error
from muster.cli.output.screen import screen
from muster.cli.streams import sentence_of
from muster.client.attachments.places import LocalPlace, Place, RemotePlace, execution_meant, name_at_target
from muster.client.files.byte_stream import ByteStream
from muster.client.files.copying import OnTransfer, TransferProgress, TransferResult
from muster.client.files.local_tree import LocalTree
from muster.client.files.plan import NotCopied, PlanRules
from muster.client.files.sftp import SftpClient, sftp_over
from muster.client.files.transfers import ClashError, CopySource, copy_all, sync_trees
from muster.client.services.copies import tree_of
from muster.domain.errors import MusterError
from muster.domain.quantity import counted, size_text
from muster.transfer.ignore_rules import IgnoreRules

RANKS_COPIED_AT_ONCE = 8
"""Executions to or from which files are copied at once."""

OpenFiles = Callable[[str, int | None], Awaitable[ByteStream]]
"""Opens the files of a job: of a rank, or of the lowest that runs."""

Ranks = Sequence[int | None]
"""Ranks that are meant; None is the lowest that runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTransfer:
    """What came of it for one rank."""

    rank: int | None
    """None: the lowest that ran."""
    files: int = 0
    bytes: int = 0
    links: int = 0
    directories: int = 0
    adjusted: int = 0
    removed: int = 0
    unchanged: int = 0
    left_out: tuple[NotCopied, ...] = ()
    failed: tuple[NotCopied, ...] = ()
    error: str = ""
    """Why it came to an end; empty: it did not."""
    code: int = 0
    """The exit code that it gives."""

    @property
    def sentence(self) -> str:
        """What was done, in a line for people."""
        if self.error:
            return self.error
        done = [counted(self.files, "file"), size_text(self.bytes)] if self.files else []
        done += [counted(self.links, "link")] if self.links else []
        done += ["verified"] if self.files else []
        parts = [", ".join(done) or "nothing to copy"]
        parts += [f"{self.removed} removed"] if self.removed else []
        parts += [f"{self.adjusted} with another mode or time"] if self.adjusted else []
        parts += [f"{self.unchanged} unchanged"] if self.unchanged else []
        parts += [f"{len(self.failed)} not copied"] if self.failed else []
        return "; ".join(parts)


async def copied(
    sources: Sequence[Place],
    target: Place,
    open_files: OpenFiles,
    ranks: Ranks,
    *,
    times: bool = True,
    line: "TransferLine | None" = None,
) -> list[RankTransfer]:
    """Copy to or from each rank. From several ranks, each has a directory of its number in the target."""
    job, _ = execution_meant(sources, target)
    several = len(ranks) > 1

    async def one(rank: int | None, tell: OnTransfer) -> TransferResult:
        async with _connected(open_files, job, rank) as client:
            given = [CopySource(tree=tree_of(each, client), name=name_at_target(each)) for each in sources]
            place, into = tree_of(target, client), target.path.endswith("/")
            if several and isinstance(target, LocalPlace):
                place, into = LocalTree(Path(target.path) / str(rank)), True
            return await copy_all(given, place, into=into, times=times, on_progress=tell)

    if several and isinstance(target, LocalPlace):
        await asyncio.to_thread(Path(target.path).mkdir, exist_ok=True)
    return await _in_ranks(ranks, one, line)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncWanted:
    """Two directories that are to be alike."""

    local: LocalPlace
    remote: RemotePlace
    down: bool = False
    """Whether the local one is changed."""
    rules: PlanRules = field(default_factory=PlanRules)
    excluded: tuple[str, ...] = ()


async def synced(
    wanted: SyncWanted, open_files: OpenFiles, ranks: Ranks, line: "TransferLine | None" = None
) -> list[RankTransfer]:
    """Make directories alike, in each rank. From several ranks, each has a directory of its number here."""
    here, apart = Path(wanted.local.path), wanted.down and len(ranks) > 1

    async def one(rank: int | None, tell: OnTransfer) -> TransferResult:
        async with _connected(open_files, wanted.remote.job, rank) as client:
            try:
                return await sync_trees(
                    LocalTree(here / str(rank) if apart else here),
                    tree_of(wanted.remote, client),
                    down=wanted.down,
                    rules=wanted.rules,
                    ignored=IgnoreRules(wanted.excluded),
                    on_progress=tell,
                )
            except ClashError as error:
                hint = "--overwrite replaces what is there, --exclude leaves it alone"
                raise ClashError(f"{error}; {hint}", error.clashes) from None

    if apart:
        await asyncio.to_thread(here.mkdir, exist_ok=True)
    return await _in_ranks(ranks, one, line)


class TransferLine:
    """The sum of what several copies tell, for whoever looks on."""

    def __init__(self, show: Callable[[TransferProgress], None]) -> None:
        self._show = show
        self._told: dict[int | None, TransferProgress] = {}

    def of(self, rank: int | None) -> OnTransfer:
        """Takes in how far one copy is."""

        def tell(now: TransferProgress) -> None:
            self._told[rank] = now
            all_told = self._told.values()
            self._show(
                TransferProgress(
                    files=sum(each.files for each in all_told),
                    all_files=sum(each.all_files for each in all_told),
                    size=sum(each.size for each in all_told),
                    all_size=sum(each.all_size for each in all_told),
                )
            )

        return tell


@contextmanager
def transfer_line() -> Iterator[TransferLine]:
    """A line on stderr for people who look on; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield TransferLine(lambda _: None)
        return
    from rich.progress import DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    named = TextColumn("{task.description}", markup=False)
    with Progress(named, DownloadColumn(), TransferSpeedColumn(), console=screen(err=True), transient=True) as shown:
        line = shown.add_task("looks at files", total=None)

        def show(now: TransferProgress) -> None:
            about = f"{now.files} of {counted(now.all_files, 'file')}"
            shown.update(line, description=about, completed=now.size, total=now.all_size)

        yield TransferLine(show)


async def _in_ranks(
    ranks: Ranks, one: Callable[[int | None, OnTransfer], Awaitable[TransferResult]], line: TransferLine | None
) -> list[RankTransfer]:
    """What came of it for each rank; what goes wrong for a single one is raised."""
    shown = line or TransferLine(lambda _: None)
    if len(ranks) == 1:
        return [_told(ranks[0], await one(ranks[0], shown.of(ranks[0])))]
    turns = asyncio.Semaphore(RANKS_COPIED_AT_ONCE)

    async def in_turn(rank: int | None) -> RankTransfer:
        async with turns:
            try:
                return _told(rank, await one(rank, shown.of(rank)))
            except MusterError as error:
                return RankTransfer(rank=rank, error=str(error), code=code_of_error(error))
            except OSError as error:
                return RankTransfer(rank=rank, error=sentence_of(error), code=ExitCode.JOB_FAILED)

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(in_turn(rank), name=f"files of rank {rank}") for rank in ranks]
    return [each.result() for each in running]


def _told(rank: int | None, result: TransferResult) -> RankTransfer:
    return RankTransfer(
        rank=rank,
        files=result.files,
        bytes=result.size,
        links=result.links,
        directories=result.directories,
        adjusted=result.adjusted,
        removed=result.removed,
        unchanged=result.unchanged,
        left_out=result.left_out,
        failed=result.failed,
        code=ExitCode.JOB_FAILED if result.failed else ExitCode.SUCCESS,
    )


@asynccontextmanager
async def _connected(open_files: OpenFiles, job: str, rank: int | None) -> AsyncIterator[SftpClient]:
    async with sftp_over(await open_files(job, rank)) as client:
        yield client
