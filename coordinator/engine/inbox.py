"""The events and questions that wait for the engine, and who waits for the answers."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Generic, TypeAlias, TypeVar

from coordinator.core.answers import Answer
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import Event
from coordinator.core.turn.batching import BATCH
from muster.domain.errors import MusterError, UnavailableError

T = TypeVar("T")

QUEUE = 20_000
"""Most waiting events; who has more waits."""


class AskedEvents:
    """Events, most often one, and who waits for their answers."""

    def __init__(self, events: Sequence[Event], answer: "asyncio.Future[list[Answer]] | None") -> None:
        self.events = events
        self.answer = answer

    @property
    def waited_for(self) -> bool:
        """Whether somebody waits for the answers."""
        return self.answer is not None

    def reply(self, answers: list[Answer], cluster: Cluster, now: datetime) -> None:
        """Tell whoever waits what came of the events."""
        del cluster, now
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(answers)

    def refuse(self, error: MusterError) -> None:
        """Nothing came of them, or nobody will say what did."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # counts as heard: `apply_and_query` may hear it of its question instead


class AskedQuestion(Generic[T]):
    """Something to be read once everything before it is durable."""

    def __init__(self, read: Callable[[Cluster, datetime], T], answer: "asyncio.Future[T]") -> None:
        self.read = read
        self.answer = answer

    events: Sequence[Event] = ()
    waited_for = True

    def reply(self, answers: list[Answer], cluster: Cluster, now: datetime) -> None:
        """Read and answer, unless nobody waits any more; a fault is the asker's to handle."""
        del answers
        if self.answer.done():
            return
        try:
            self.answer.set_result(self.read(cluster, now))
        except Exception as error:  # noqa: BLE001 - handed on to the asker, the engine goes on
            self.answer.set_exception(error)

    def refuse(self, error: MusterError) -> None:
        """Tell whoever waits that it will not be read."""
        if not self.answer.done():
            self.answer.set_exception(error)


Request: TypeAlias = AskedEvents | AskedQuestion[object]
"""What the engine is asked for, whatever the type of the answer."""


class EngineInbox:
    """Requests in the order in which they came; refuses them once the engine has ended."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Request] = asyncio.Queue(QUEUE)
        self._ended = False

    @property
    def waiting(self) -> int:
        """How many requests stand in line."""
        return self._queue.qsize()

    async def put(self, request: Request) -> None:
        """Have a request stand in line; waits for room."""
        await self._queue.put(request)
        if self._ended:  # asked here, as the engine may have ended while this waited for room
            self._refuse_all()

    def wake(self) -> None:
        """Have the engine look round; one whose inbox is full does so anyway."""
        with suppress(asyncio.QueueFull):
            self._queue.put_nowait(AskedEvents((), None))

    async def batch(self, until: float | None) -> list[Request]:
        """All that waits: at least one, or nothing if that time of the loop comes first."""
        batch: list[Request] = []
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                batch.append(await self._queue.get())
        while len(batch) < BATCH and not self._queue.empty():
            batch.append(self._queue.get_nowait())
        return batch

    def end(self, taken: Sequence[Request]) -> None:
        """Leave nobody waiting, neither for what was `taken` nor for what comes from now on."""
        self._ended = True
        for request in taken:
            request.refuse(_has_ended())
        self._refuse_all()

    def _refuse_all(self) -> None:
        while not self._queue.empty():
            self._queue.get_nowait().refuse(_has_ended())


def _has_ended() -> UnavailableError:
    """The refusal after the end; what was committed last is told by the next engine."""
    return UnavailableError("the coordinator has ended; ask again once it is back")
