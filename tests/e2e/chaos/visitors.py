"""People who attach to what runs while things break: what they get is right to the byte, and whatever ends says why."""

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from muster.client.attachments.attachment import Attachment
from muster.client.client import Client
from muster.domain.attachments.frame import (
    LARGEST_CHANNEL_DATA,
    AttachmentEnded,
    AttachmentErrorOutput,
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentOutput,
    AttachmentTrouble,
)
from muster.domain.attachments.request import CommandRequest
from muster.domain.errors import MusterError
from muster.domain.ids import JobId
from muster.domain.jobs.lifecycle import State
from tests.e2e.chaos.story import Story

MOST_AT_ONCE = 3
"""Visits at a time: the testbed is one small machine."""

PAUSE = 1.0
"""Seconds between two looks at what could be visited."""

VISIT_WITHIN = 240.0
"""Seconds after which a visit hangs: far longer than any fault lasts, and than bytes take after it."""

PIECES = (1, 20, 200)
"""How many pieces a visit sends; each is followed by a rest, so that many faults come in between."""
REST = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What came of one attachment."""

    where: str
    """The execution, for people."""
    sent: int
    """Bytes that the visitor has sent."""
    got: int
    """Bytes that came back."""
    right: bool
    """Whether what came back is what was sent first, byte for byte."""
    errors: bytes
    """What was printed beside that."""
    end: AttachmentEnded


def wrongs(visit: Visit) -> Sequence[str]:
    """What must not be, in words."""
    found = []
    if not visit.right:
        found.append("what came back is not what was sent")
    if visit.end == AttachmentEnded(code=0) and visit.got != visit.sent:
        found.append(f"ended well after {visit.got} of {visit.sent} bytes")
    if visit.end.trouble and not visit.end.text:
        found.append(f"ended ({visit.end.trouble}), and nobody says why")
    if visit.end.trouble is AttachmentTrouble.NOT_STARTED:
        found.append(f"could not be started: {visit.end.text}")
    return [f"visit of {visit.where}: {each}" for each in found]


class Visitors:
    """People who attach `cat` to executions that run, send random bytes, and compare what comes back."""

    def __init__(self, client: Client, story: Story, chance: Random) -> None:
        self._client = client
        self._story = story
        self._chance = chance

    async def come(self, until: float) -> None:
        """Visit what runs until some time, and wait until all have left."""
        visits = set[asyncio.Task[None]]()
        async with asyncio.TaskGroup() as tasks:
            while self._story.now < until:
                if len(visits) < MOST_AT_ONCE and (found := await self._somewhere()) is not None:
                    visit = tasks.create_task(self._visit(*found), name=f"visit of {found}")
                    visits.add(visit)
                    visit.add_done_callback(visits.discard)
                await asyncio.sleep(PAUSE)

    async def _somewhere(self) -> tuple[JobId, int] | None:
        """An execution that runs, as far as the coordinator can be asked."""
        with suppress(MusterError):
            running = [
                (view.id, each.rank)
                async for job in self._client.jobs.list(limit=50)
                if not job.phase.ended
                for view in [await self._client.jobs.get(job.id)]
                if view.attempts
                for each in view.attempts[-1].executions
                if each.state is State.RUNNING
            ]
            return self._chance.choice(running) if running else None
        return None

    async def _visit(self, job: JobId, rank: int) -> None:
        where = f"rank {rank} of {job}"
        pieces = [self._chance.randbytes(LARGEST_CHANNEL_DATA) for _ in range(min(self._chance.choice(PIECES), 8))]
        rounds = self._chance.choice(PIECES)
        request = CommandRequest(words=("cat",), has_input=True)
        try:
            async with asyncio.timeout(VISIT_WITHIN):
                async with await self._client.attachments.open(job, request, rank=rank) as attachment:
                    visit = await self._exchanged(attachment, where, [pieces[n % len(pieces)] for n in range(rounds)])
        except TimeoutError:
            self._story.find(f"visit of {where}: neither ended nor failed within {VISIT_WITHIN:.0f} s")
            return
        except MusterError as error:
            self._story.tell(f"visit of {where}: {error}", counted="visits that were refused")
            return
        for wrong in wrongs(visit):
            self._story.find(wrong)
        how = visit.end.text or f"exit code {visit.end.code}"
        ended = str(visit.end.trouble) or ("well" if visit.end.code == 0 else "with another exit code")
        self._story.tell(
            f"visit of {where}: {visit.got} of {visit.sent} bytes, {how}", counted=f"visits ended: {ended}"
        )
        self._story.counts["megabytes that came back to visitors"] += visit.got // 1_000_000

    async def _exchanged(self, attachment: Attachment, where: str, pieces: Sequence[bytes]) -> Visit:
        sending = asyncio.get_running_loop().create_task(_sent(attachment, pieces), name=f"input of {where}")
        whole, got, size, errors = b"".join(pieces), hashlib.sha256(), 0, b""
        try:
            while not isinstance(frame := await attachment.receive(), AttachmentEnded):
                if isinstance(frame, AttachmentOutput):
                    got.update(frame.data)
                    size += len(frame.data)
                elif isinstance(frame, AttachmentErrorOutput):
                    errors += frame.data
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        right = got.digest() == hashlib.sha256(whole[:size]).digest() and size <= len(whole)
        return Visit(where=where, sent=len(whole), got=size, right=right, errors=errors, end=frame)


async def _sent(attachment: Attachment, pieces: Sequence[bytes]) -> None:
    for piece in pieces:
        await attachment.send(AttachmentInput(data=piece))
        await asyncio.sleep(REST)
    await attachment.send(AttachmentInputEnd())
