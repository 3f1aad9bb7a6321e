"""An attachment of a client: frames over the relay, for as long as whoever opened it wants."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from muster.carrying.carrier import ChannelCarrier
from muster.carrying.channel_end import ChannelEnd, ChannelLostError
from muster.client.attachments.stream import FrameToExecution
from muster.domain.attachments.frame import (
    AttachmentEnded,
    AttachmentErrorOutput,
    AttachmentKeptShells,
    AttachmentNotice,
    AttachmentOpened,
    AttachmentOutput,
    AttachmentOutputEnd,
    AttachmentTrouble,
    FrameOfCommand,
)
from muster.domain.attachments.request import AttachmentPass

HANGING_UP = 2.0
"""Seconds in which the other end hears that this one hangs up; what has not heard it then hears it from the relay."""

LOST_ATTACHMENT_CODE = 255
"""Exit code of a command of which nobody heard how it ended."""


class Attachment:
    """An open attachment; use it with `async with`, or close it."""

    def __init__(
        self,
        shown: AttachmentPass,
        end: ChannelEnd,
        carrier: ChannelCarrier,
        on_notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Begin to carry; `on_notice` is told each notice for the people who are attached, when its turn comes."""
        self.shown = shown
        """What the coordinator said of it: its name, its job and its rank."""
        self._end = end
        self._carrier = carrier
        self._on_notice = on_notice
        self._ended: AttachmentEnded | None = None
        self._carrying = asyncio.get_running_loop().create_task(carrier.run(), name=f"carry {shown.attachment}")

    async def send(self, frame: FrameToExecution) -> None:
        """Send a frame; waits while the other side deals with too little. After the end it does nothing."""
        if self._ended is None:
            with suppress(ChannelLostError):
                await self._end.send(frame)

    async def receive(self) -> FrameOfCommand:
        """The next frame; the last one is AttachmentEnded, which every later call gives again."""
        while self._ended is None:
            try:
                frame = await self._end.receive()
            except ChannelLostError as lost:
                trouble = AttachmentTrouble.CLOSED if lost.closed else AttachmentTrouble.LOST
                self._ended = AttachmentEnded(code=LOST_ATTACHMENT_CODE, trouble=trouble, text=str(lost))
                break
            match frame:
                case AttachmentEnded():
                    self._ended = frame
                case AttachmentNotice(text=text):
                    self._on_notice(text)
                case (
                    AttachmentOpened()
                    | AttachmentOutput()
                    | AttachmentErrorOutput()
                    | AttachmentOutputEnd()
                    | AttachmentKeptShells()
                ):
                    return frame
                case _:
                    pass  # what only this side says
        return self._ended

    async def close(self) -> None:
        """Hang up, if it has not ended; closing twice is harmless."""
        if self._carrying.done():
            return
        try:
            if self._ended is None:
                with suppress(ChannelLostError, TimeoutError):
                    async with asyncio.timeout(HANGING_UP):
                        await self._end.send(AttachmentEnded(code=0))
                        await self._end.settled()
                self._ended = AttachmentEnded(code=LOST_ATTACHMENT_CODE, text="closed here")
            self._end.dealt()
            self._end.tell()
            await self._carrier.leave()
        finally:
            self._carrying.cancel()
            await asyncio.gather(self._carrying, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
