"""What whoever works with an attachment sees of it, whatever carries its frames."""

from typing import Protocol

from muster.domain.attachments.frame import (
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentSignal,
    AttachmentSize,
    FrameOfCommand,
)

FrameToExecution = AttachmentInput | AttachmentInputEnd | AttachmentSignal | AttachmentSize
"""What a client sends on an attachment."""


class AttachmentStream(Protocol):
    """An attachment that is open; one task receives, and one sends."""

    async def send(self, frame: FrameToExecution) -> None:
        """Send a frame; waits while the other side deals with too little. After the end it does nothing.

        Data of a frame has at most LARGEST_CHANNEL_DATA bytes.
        """
        ...

    async def receive(self) -> FrameOfCommand:
        """The next frame: AttachmentOpened first, unless nothing was opened; AttachmentEnded last, again and again."""
        ...

    async def close(self) -> None:
        """Hang up, if it has not ended; a command hears SIGHUP then."""
        ...
