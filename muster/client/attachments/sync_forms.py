"""An attachment, and a forwarded port, for programs without an event loop."""

from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from muster.client.attachments.attachment import Attachment
from muster.client.attachments.port_forward import PortForward
from muster.client.attachments.stream import FrameToExecution
from muster.domain.attachments.frame import FrameOfCommand
from muster.domain.attachments.request import AttachmentPass

_Answer = TypeVar("_Answer")


class LoopRunner(Protocol):
    """A thread with an event loop, which runs a coroutine and waits for it."""

    def run(self, coroutine: Coroutine[Any, Any, _Answer]) -> _Answer:
        """What a coroutine returns or raises."""
        ...


class SyncAttachment:
    """An open attachment; use it with `with`, or close it."""

    def __init__(self, own: Attachment, loop: LoopRunner) -> None:
        self._own = own
        self._loop = loop

    @property
    def shown(self) -> AttachmentPass:
        """What the coordinator said of it: its name, its job and its rank."""
        return self._own.shown

    def send(self, frame: FrameToExecution) -> None:
        """Send a frame; waits while the other side deals with too little. After the end it does nothing."""
        self._loop.run(self._own.send(frame))

    def receive(self) -> FrameOfCommand:
        """The next frame; the last one is AttachmentEnded, which every later call gives again."""
        return self._loop.run(self._own.receive())

    def close(self) -> None:
        """Hang up, if it has not ended; closing twice is harmless."""
        self._loop.run(self._own.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class SyncPortForward:
    """A port here that leads to one of an execution, until it is closed; use it with `with`."""

    def __init__(self, own: PortForward, loop: LoopRunner) -> None:
        self._own = own
        self._loop = loop

    @property
    def address(self) -> str:
        """Where it listens, as HOST:PORT."""
        return self._own.address

    @property
    def port(self) -> int:
        """The port at which it listens."""
        return self._own.port

    def close(self) -> None:
        """Listen no more, and end all connections."""
        self._loop.run(self._own.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
