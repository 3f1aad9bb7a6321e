"""What an SSH client sends on one channel, until the execution takes it; no more of it than a bound."""

import asyncio
from collections import deque
from collections.abc import Callable

from muster.client.attachments.stream import FrameToExecution
from muster.domain.attachments.frame import LARGEST_CHANNEL_DATA, AttachmentInput, AttachmentSignal, AttachmentSize

MOST_PIECES_WAITING = 1024 * 1024
"""Bytes of a channel that wait here; then the client is not read, and SSH has it wait."""

MOST_SIGNALS_WAITING = 64
"""Signals of a channel that wait; further ones are for a program that does not react anyway."""


class Inflow:
    """Frames in order, many small pieces of data as one; whoever puts them never waits."""

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """`pause` and `resume` say whether the client is read."""
        self._pause = pause
        self._resume = resume
        self._frames: deque[FrameToExecution] = deque()
        self._waiting = 0
        self._signals = 0
        self._paused = False
        self._ended = False
        self._changed = asyncio.Event()

    def put(self, frame: FrameToExecution) -> None:
        """Add a frame."""
        match frame:
            case AttachmentInput(data=data):
                self._waiting += len(data)
                if self._waiting >= MOST_PIECES_WAITING and not self._paused:
                    self._paused = True
                    self._pause()
            case AttachmentSize() if self._frames and isinstance(self._frames[-1], AttachmentSize):
                self._frames.pop()  # only the last size counts
            case AttachmentSignal():
                if self._signals == MOST_SIGNALS_WAITING:
                    return
                self._signals += 1
            case _:
                pass
        self._frames.append(frame)
        self._changed.set()

    def end(self) -> None:
        """Say that nothing more comes."""
        self._ended = True
        self._changed.set()

    async def take(self) -> FrameToExecution | None:
        """The next frame; None once nothing more comes."""
        while not self._frames:
            if self._ended:
                return None
            self._changed.clear()
            await self._changed.wait()
        frame = self._frames.popleft()
        if isinstance(frame, AttachmentSignal):
            self._signals -= 1
        if not isinstance(frame, AttachmentInput):
            return frame
        return AttachmentInput(data=self._joined(frame.data))

    def _joined(self, first: bytes) -> bytes:
        """A piece of data with those behind it that fit into one frame."""
        pieces, size = [first], len(first)
        while self._frames and isinstance(following := self._frames[0], AttachmentInput):
            if size + len(following.data) > LARGEST_CHANNEL_DATA:
                break
            self._frames.popleft()
            pieces.append(following.data)
            size += len(following.data)
        self._waiting -= size
        if self._paused and self._waiting <= MOST_PIECES_WAITING // 2:
            self._paused = False
            self._resume()
        return b"".join(pieces) if len(pieces) > 1 else first
