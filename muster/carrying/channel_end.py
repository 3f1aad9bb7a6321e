"""One end of a channel for programs: frames go in and come out; what the streams under it do is not seen."""

import asyncio
from collections.abc import Callable

from muster.domain.attachments.channel import (
    Channel,
    ChannelConsumed,
    ChannelHello,
    ChannelMessage,
    NumberedFrame,
)
from muster.domain.attachments.frame import AttachmentFrame

QUIET = 0.05
"""Seconds after which the other end is told what is dealt with, where nothing else told it."""

Outgoing = asyncio.Queue[ChannelMessage]
"""What is to be written on one stream; the window of the channel bounds it."""


class ChannelLostError(Exception):
    """A channel is at its end before everything was said; the sentence says why, for people."""

    def __init__(self, why: str, *, closed: bool = False) -> None:
        """`closed`: somebody has closed it, or has taken the right to it away."""
        super().__init__(why)
        self.closed = closed


class ChannelEnd:
    """A channel with back-pressure; one task sends and one receives, while a third one carries."""

    def __init__(self) -> None:
        self._channel = Channel()
        self._outgoing: Outgoing | None = None
        """None: there is no stream."""
        self._incoming: asyncio.Queue[AttachmentFrame | ChannelLostError] = asyncio.Queue()
        """Frames that have come; what the other end may send ahead bounds it."""
        self._dealing: AttachmentFrame | None = None
        """The frame that was received last, and that whoever received it deals with."""
        self._moved = asyncio.Event()
        """Set when the other end has dealt with something, or the channel is lost."""
        self._quiet: asyncio.TimerHandle | None = None
        self._lost: ChannelLostError | None = None

    # for whoever uses it

    async def send(self, frame: AttachmentFrame) -> None:
        """Send a frame; waits while the other end deals with too little. Raises ChannelLostError."""
        await self._until(lambda: self._channel.room)
        self._write(self._channel.send(frame))

    async def receive(self) -> AttachmentFrame:
        """The next frame. The one before counts as dealt with from here on. Raises ChannelLostError."""
        self.dealt()
        if self._lost is not None and self._incoming.empty():
            raise self._lost
        frame = await self._incoming.get()
        if isinstance(frame, ChannelLostError):
            raise frame
        self._dealing = frame
        return frame

    def dealt(self) -> None:
        """Say that the frame that was received last is dealt with."""
        frame, self._dealing = self._dealing, None
        if frame is not None:
            self._write(self._channel.consume(frame))
            if self._quiet is None:
                self._quiet = asyncio.get_running_loop().call_later(QUIET, self._tell)

    async def settled(self) -> None:
        """Wait until the other end has dealt with all that was sent. Raises ChannelLostError."""
        await self._until(lambda: self._channel.settled)

    def tell(self) -> None:
        """Tell the other end now what is dealt with."""
        self._write(self._channel.tell())

    # for whoever carries it

    def begin(self) -> Outgoing:
        """There is a new stream; what to write on it, message by message."""
        self._outgoing = Outgoing()
        self._outgoing.put_nowait(self._channel.hello())
        return self._outgoing

    def broke(self) -> None:
        """There is no stream any more."""
        self._outgoing = None

    def hear(self, message: ChannelMessage) -> None:
        """Take in a message of the stream. Raises ChannelError."""
        match message:
            case ChannelHello():
                self._write(self._channel.greeted(message))
            case ChannelConsumed():
                self._channel.acknowledged(message)
                self._moved.set()
            case NumberedFrame():
                frame = self._channel.take(message)
                if frame is not None:
                    self._incoming.put_nowait(frame)

    def lose(self, why: str, *, closed: bool = False) -> None:
        """No stream will come any more; whoever sends, receives or waits hears why, and whether that was decided."""
        if self._lost is None:
            self._lost = ChannelLostError(why, closed=closed)
            self._incoming.put_nowait(self._lost)
            self._moved.set()
            self._cancel_timer()

    async def _until(self, so_far: Callable[[], bool]) -> None:
        while True:
            if self._lost is not None:
                raise self._lost
            if so_far():
                return
            self._moved.clear()
            await self._moved.wait()

    def _write(self, messages: list[ChannelMessage]) -> None:
        if self._outgoing is not None:
            for message in messages:
                self._outgoing.put_nowait(message)

    def _tell(self) -> None:
        self._quiet = None
        self.tell()

    def _cancel_timer(self) -> None:
        if self._quiet is not None:
            self._quiet.cancel()
            self._quiet = None
