"""Bytes to and from what serves files, whatever carries them."""

import asyncio
from contextlib import suppress
from typing import Protocol, assert_never

from muster.client.attachments.finished import raise_if_broken
from muster.client.attachments.stream import AttachmentStream
from muster.client.files.transfer_error import FilesLostError
from muster.domain.attachments.frame import (
    LARGEST_CHANNEL_DATA,
    AttachmentEnded,
    AttachmentErrorOutput,
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentKeptShells,
    AttachmentNotice,
    AttachmentOpened,
    AttachmentOutput,
    AttachmentOutputEnd,
)
from muster.domain.errors import MusterError

_ENDING = 2.0
"""Seconds in which a server that is asked nothing more ends."""

_MOST_TOLD = 1024
"""Bytes of what is said on standard error that are shown."""


class ByteStream(Protocol):
    """A way to `muster-inside files`; one task reads, and one writes."""

    async def read(self) -> bytes:
        """The next piece; nothing at the end."""
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes; waits while the other side does not read."""
        ...

    async def close(self) -> None:
        """Hang up."""
        ...


class AttachmentBytes:
    """The bytes of an attachment of the kind files."""

    def __init__(self, attachment: AttachmentStream) -> None:
        self._attachment = attachment
        self._said = bytearray()

    async def read(self) -> bytes:
        """The next piece; nothing at the end. Raises MusterError where the attachment ended before the server did."""
        while True:
            frame = await self._attachment.receive()
            match frame:
                case AttachmentOutput():
                    if frame.data:
                        return frame.data
                case AttachmentErrorOutput():
                    self._said += frame.data[: _MOST_TOLD - len(self._said)]
                case AttachmentOpened() | AttachmentNotice() | AttachmentKeptShells():
                    pass
                case AttachmentOutputEnd():
                    return b""
                case AttachmentEnded():
                    raise_if_broken(frame)
                    if frame.code or frame.text:
                        said = self._said.decode(errors="replace").strip()
                        raise FilesLostError(frame.text or said or f"the server of files ended with code {frame.code}")
                    return b""
                case _:
                    assert_never(frame)

    async def write(self, data: bytes) -> None:
        """Send bytes; waits while the other side does not read."""
        for at in range(0, len(data), LARGEST_CHANNEL_DATA):
            await self._attachment.send(AttachmentInput(data=data[at : at + LARGEST_CHANNEL_DATA]))

    async def close(self) -> None:
        """Have the server end, which ends with what it is asked; hang up where it does not."""
        with suppress(TimeoutError, MusterError):
            async with asyncio.timeout(_ENDING):
                await self._attachment.send(AttachmentInputEnd())
                while await self.read():
                    pass
                while not isinstance(await self._attachment.receive(), AttachmentEnded):
                    pass
        await self._attachment.close()
