"""What goes down to an agent, one message after the other."""

import asyncio
from contextlib import suppress
from typing import Any, Protocol

from coordinator.rpc.streams import LAST_WRITE


class StreamEnded(Exception):  # noqa: N818 - not an error: it ends the tasks of one stream
    """The agent or the engine ended the stream."""


class Writer(Protocol):
    """The end of a stream on which messages are written; gRPC loses messages of concurrent writers."""

    async def write(self, message: Any) -> None:  # noqa: ANN401 - any message
        """Write a message; waits for a peer that does not read."""


class Downlink:
    """The stream to one agent.

    Who is about to cancel the tasks that write ends it first: a message on its way must not be given up. That costs
    less than a task for each message, which nobody would cancel.
    """

    def __init__(self, stream: Writer, patience: float = LAST_WRITE) -> None:
        """`patience`: seconds that the end waits for a message that is on its way."""
        self._stream = stream
        self._patience = patience
        self._writing = asyncio.Lock()
        self._ended = False

    async def send(self, message: object) -> None:
        """Write a message; waits for an agent that does not read. Raises StreamEnded once the stream is to end."""
        async with self._writing:
            if self._ended:
                raise StreamEnded
            await self._stream.write(message)

    async def end(self) -> None:
        """Write nothing more, and wait for the message that is on its way, as gRPC takes no status before."""
        self._ended = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience), self._writing:
                pass
