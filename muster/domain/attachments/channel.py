"""One end of the frames of an attachment, which outlive the streams that carry them.

Frames are numbered, and kept until the other end has dealt with them. On each new stream both ends say first what has
come; then each sends again what the other has not got. What the other end has not consumed is bounded, so that whoever
produces more has to wait.
"""

from collections import deque
from dataclasses import dataclass

from muster.domain.attachments.frame import (
    AttachmentErrorOutput,
    AttachmentFrame,
    AttachmentInput,
    AttachmentOutput,
)

CHANNEL_WINDOW = 1024 * 1024
"""Bytes that one end keeps of what the other has not consumed."""

FRAME_OVERHEAD = 64
"""Bytes that a frame counts beside its data, as frames without data are kept, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelHello:
    """The first message of each end on each stream."""

    received: int
    """The number of the last frame that came; 0: none has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelConsumed:
    """Everything up to a frame is dealt with."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedFrame:
    """A frame with its place among those of its end, from 1 on."""

    number: int
    frame: AttachmentFrame


ChannelMessage = ChannelHello | ChannelConsumed | NumberedFrame


class ChannelError(ValueError):
    """The other end says what cannot be: it is of another attachment."""


class Channel:
    """One end; knows nothing of streams but when a new one begins.

    The caller sends what the methods return, in that order, on the stream that is open; without one it drops it.
    """

    def __init__(self, window: int = CHANNEL_WINDOW) -> None:
        self._window = window
        self._sent = 0
        self._kept: deque[NumberedFrame] = deque()
        self._kept_bytes = 0
        self._greeted = False
        """Whether the other end has said on this stream what has come."""
        self._received = 0
        self._consumed = 0
        self._told = 0
        """The number up to which the other end knows that all is consumed."""
        self._untold_bytes = 0

    @property
    def room(self) -> bool:
        """Whether another frame may be sent; false until enough of those before is consumed."""
        return self._kept_bytes < self._window

    @property
    def settled(self) -> bool:
        """Whether the other end has dealt with all that was sent."""
        return not self._kept

    def hello(self) -> ChannelHello:
        """The first message on a new stream; the stream before, if there was one, counts no more."""
        self._greeted = False
        return ChannelHello(received=self._received)

    def send(self, frame: AttachmentFrame) -> list[ChannelMessage]:
        """Give a frame its number and keep it; what to send now, nothing where the stream has not begun."""
        self._sent += 1
        numbered = NumberedFrame(number=self._sent, frame=frame)
        self._kept.append(numbered)
        self._kept_bytes += frame_bytes(frame)
        return [numbered] if self._greeted else []

    def greeted(self, hello: ChannelHello) -> list[ChannelMessage]:
        """Take in what the other end says first; gives what it has not got. Raises ChannelError."""
        kept_from = self._sent - len(self._kept)
        if not kept_from <= hello.received <= self._sent:
            raise ChannelError(f"frame {hello.received} has come there; {kept_from} to {self._sent} were sent last")
        self._greeted = True
        self._told = self._consumed
        self._untold_bytes = 0
        again: list[ChannelMessage] = [each for each in self._kept if each.number > hello.received]
        return [ChannelConsumed(number=self._consumed), *again] if self._consumed else again

    def acknowledged(self, consumed: ChannelConsumed) -> None:
        """Keep no longer what the other end has dealt with. Raises ChannelError."""
        if consumed.number > self._sent:
            raise ChannelError(f"frame {consumed.number} is consumed there; {self._sent} was sent last")
        while self._kept and self._kept[0].number <= consumed.number:
            self._kept_bytes -= frame_bytes(self._kept.popleft().frame)

    def take(self, numbered: NumberedFrame) -> AttachmentFrame | None:
        """The frame, for whoever deals with it; None: it has come before. Raises ChannelError."""
        if numbered.number > self._received + 1:
            raise ChannelError(f"frame {numbered.number} came after frame {self._received}")
        if numbered.number <= self._received:
            return None
        self._received = numbered.number
        return numbered.frame

    def consume(self, frame: AttachmentFrame) -> list[ChannelMessage]:
        """Note that the next frame is dealt with; what to send now: nothing, until there is much to tell."""
        self._consumed += 1
        self._untold_bytes += frame_bytes(frame)
        return self.tell() if self._untold_bytes * 4 >= self._window else []

    def tell(self) -> list[ChannelMessage]:
        """What to send where all is quiet, so that the other end keeps nothing for long."""
        if not self._greeted or self._told == self._consumed:
            return []
        self._told, self._untold_bytes = self._consumed, 0
        return [ChannelConsumed(number=self._consumed)]


def frame_bytes(frame: AttachmentFrame) -> int:
    """The bytes that a frame counts in the window."""
    match frame:
        case AttachmentInput(data=data) | AttachmentOutput(data=data) | AttachmentErrorOutput(data=data):
            return FRAME_OVERHEAD + len(data)
        case _:
            return FRAME_OVERHEAD
