"""One command in several executions at once: whole lines with the rank before them, and the highest exit code."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from muster.cli.attaching.following import NoticeOnce
from muster.client.attachments.attachment import Attachment
from muster.client.attachments.finished import error_of_end
from muster.client.client import Client
from muster.domain.attachments.frame import AttachmentEnded, AttachmentErrorOutput, AttachmentOutput
from muster.domain.attachments.ranked_lines import RankedLines
from muster.domain.attachments.request import AttachmentRequest
from muster.domain.errors import ExhaustedError, MusterError

NOT_REACHED_CODE = 255
"""Exit code that counts for a rank in which the command did not run to its end."""

MOST_KEPT = 1024 * 1024
"""Bytes of output of one rank that are kept for `-o json`."""

Print = Callable[[bytes, bool], None]
"""Prints whole lines; with True those that were printed as errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankResult:
    """What came of the command in one rank."""

    rank: int
    code: int
    trouble: str
    """Why it did not run to its end; empty: it did."""
    output: str
    error_output: str
    cut: bool
    """Whether it printed more than is kept."""


async def run_in_ranks(
    client: Client,
    job: str,
    ranks: Sequence[int],
    request: AttachmentRequest,
    *,
    at_once: int,
    show: Print | None,
) -> list[RankResult]:
    """What came of the command in each rank, by rank; so many run at once. `show` None: output is kept instead."""
    turns, on_notice = asyncio.Semaphore(at_once), NoticeOnce()

    async def in_one(rank: int) -> RankResult:
        async with turns:
            return await _run(partial(_opened, client, job, rank, request, on_notice), rank, show)

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(in_one(rank), name=f"rank {rank}") for rank in sorted(ranks)]
    return [each.result() for each in running]


async def _run(opened: Callable[[], Awaitable[Attachment]], rank: int, show: Print | None) -> RankResult:
    kept = _Kept() if show is None else _Shown(rank, show)
    trouble = ""
    try:
        async with await opened() as stream:
            while not isinstance(frame := await stream.receive(), AttachmentEnded):
                match frame:
                    case AttachmentOutput(data=data):
                        kept.take(data, err=False)
                    case AttachmentErrorOutput(data=data):
                        kept.take(data, err=True)
            error = error_of_end(frame)
            code, trouble = (frame.code, frame.text) if error is None else (NOT_REACHED_CODE, str(error))
    except MusterError as error:
        code, trouble = NOT_REACHED_CODE, str(error)
    kept.end(trouble)
    return RankResult(
        rank=rank,
        code=code,
        trouble=trouble,
        output=kept.text(err=False),
        error_output=kept.text(err=True),
        cut=kept.cut,
    )


async def _opened(client: Client, job: str, rank: int, request: AttachmentRequest, on_notice: NoticeOnce) -> Attachment:
    """The attachment, opened as fast as the coordinator lets this account open them."""
    while True:
        try:
            return await client.attachments.open(job, request, rank=rank, on_notice=on_notice)
        except ExhaustedError as error:
            if error.retry_after is None:
                raise
            await asyncio.sleep(error.retry_after)


class _Kept:
    """Output for a document."""

    def __init__(self) -> None:
        self._pieces = (bytearray(), bytearray())
        self.cut = False

    def take(self, data: bytes, *, err: bool) -> None:
        piece = self._pieces[err]
        room = MOST_KEPT - len(piece)
        self.cut = self.cut or len(data) > room
        piece += data[:room]

    def end(self, trouble: str) -> None:
        """Nothing is held."""

    def text(self, *, err: bool) -> str:
        return self._pieces[err].decode(errors="replace")


class _Shown(_Kept):
    """Output that is printed line by line as it comes."""

    def __init__(self, rank: int, show: Print) -> None:
        super().__init__()
        self._rank = rank
        self._lines = (RankedLines(rank), RankedLines(rank))
        self._show = show

    def take(self, data: bytes, *, err: bool) -> None:
        if lines := self._lines[err].feed(data):
            self._show(lines, err)

    def end(self, trouble: str) -> None:
        for err in (False, True):
            if lines := self._lines[err].end():
                self._show(lines, bool(err))
        if trouble:
            self._show(f"[{self._rank}] {trouble}\n".encode(errors="replace"), True)
