"""One stream of objects into the depot: parts in order, many small objects brought to the disk together."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from coordinator.depot.limits import COMMITTED_BYTES, COMMITTED_TOGETHER
from muster.transfer.objects import ArrivingObject, ObjectFiles, WrongContentError, commit_all

_AT_ONCE = 64 * 1024
"""Bytes that are written sooner than a thread has begun to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectPart:
    """A part of an object, as it arrives."""

    digest: str
    size: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectOutcome:
    """What has become of an object."""

    digest: str
    stored: bool
    offset: int = 0
    """Where it is not stored: the place from which it must be sent."""


class ObjectsInHand:
    """The objects that some stream takes in; each is written by one of them alone."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    async def hold(self, digest: str) -> None:
        """Wait until nobody else writes the object."""
        lock, waiting = self._locks.get(digest, (None, 0))
        lock = lock or asyncio.Lock()
        self._locks[digest] = (lock, waiting + 1)
        try:
            await lock.acquire()
        except BaseException:
            self._count_down(digest)
            raise

    def let_go(self, digest: str) -> None:
        """Let the next one write the object."""
        self._locks[digest][0].release()
        self._count_down(digest)

    def is_held(self, digest: str) -> bool:
        """Whether some stream writes the object."""
        return digest in self._locks

    def _count_down(self, digest: str) -> None:
        lock, waiting = self._locks[digest]
        if waiting == 1:
            del self._locks[digest]
        else:
            self._locks[digest] = (lock, waiting - 1)


class Taking:
    """One stream; it holds the object that arrives, and those that are whole and not yet on the disk."""

    def __init__(self, objects: ObjectFiles, hands: ObjectsInHand, allow: Callable[[str, int], None]) -> None:
        """`allow` is asked about each object that is new here, and raises where it must not be taken."""
        self._objects = objects
        self._hands = hands
        self._allow = allow
        self._current: tuple[str, ArrivingObject] | None = None
        self._answered: ObjectOutcome | None = None
        """What was said last: parts that were sent before it was heard are passed over."""
        self._whole: list[tuple[str, ArrivingObject]] = []
        self._whole_bytes = 0

    async def take(self, parts: Iterable[ObjectPart]) -> list[ObjectOutcome]:
        """Take parts in; what is known of objects by now. Raises what `allow` raises, or OSError."""
        outcomes: list[ObjectOutcome] = []
        for part in parts:
            if not self._is_late(part):
                outcomes += await self._take(part)
        if len(self._whole) >= COMMITTED_TOGETHER or self._whole_bytes >= COMMITTED_BYTES:
            outcomes += await self.settle()
        return outcomes

    async def settle(self) -> list[ObjectOutcome]:
        """Bring all objects to the disk that are whole."""
        whole = self._whole
        if not whole:
            return []
        await asyncio.to_thread(commit_all, [each for _, each in whole])
        self._release_whole()
        return [ObjectOutcome(digest=digest, stored=True) for digest, _ in whole]

    def close(self) -> None:
        """Leave what has arrived for whoever goes on with it."""
        self._leave_current()
        self._release_whole()

    async def _take(self, part: ObjectPart) -> list[ObjectOutcome]:
        self._answered = None
        outcomes: list[ObjectOutcome] = []
        if self._current is None or self._current[0] != part.digest:
            outcomes = await self._begin(part)
        if self._current is None:
            return outcomes
        digest, arriving = self._current
        if part.offset != arriving.offset:
            return [*outcomes, self._answer(digest, stored=False, offset=arriving.offset)]
        try:
            if len(part.data) > _AT_ONCE:
                await asyncio.to_thread(arriving.write, part.data)
            else:
                arriving.write(part.data)
            if arriving.offset == part.size:
                arriving.check()
                self._whole.append(self._current)
                self._whole_bytes += part.size
                self._current = None
        except WrongContentError:
            outcomes.append(self._answer(digest, stored=False))
        return outcomes

    async def _begin(self, part: ObjectPart) -> list[ObjectOutcome]:
        """Begin with another object; nothing is held while another stream is waited for, so none waits for ever."""
        self._leave_current()
        outcomes: list[ObjectOutcome] = []
        if self._hands.is_held(part.digest):
            outcomes = await self.settle()
        await self._hands.hold(part.digest)
        try:
            arriving = await self._opened(part)
        except BaseException:
            self._hands.let_go(part.digest)
            raise
        if arriving is not None:
            self._current = (part.digest, arriving)
            return outcomes
        self._hands.let_go(part.digest)
        return [*outcomes, self._answer(part.digest, stored=True)]

    async def _opened(self, part: ObjectPart) -> ArrivingObject | None:
        """The object, to be written; None: it is here already. What has arrived before is hashed in a thread."""
        if self._objects.use(part.digest) is not None:
            return None
        self._allow(part.digest, part.size)
        if self._objects.begun(part.digest):
            return await asyncio.to_thread(self._objects.arriving, part.digest, part.size)
        return self._objects.arriving(part.digest, part.size)

    def _is_late(self, part: ObjectPart) -> bool:
        """Whether a part was sent before its sender has heard what was said of the object."""
        said = self._answered
        return said is not None and part.digest == said.digest and (said.stored or part.offset != said.offset)

    def _answer(self, digest: str, *, stored: bool, offset: int = 0) -> ObjectOutcome:
        """Say something of an object before all of it was sent."""
        self._leave_current()
        self._answered = ObjectOutcome(digest=digest, stored=stored, offset=offset)
        return self._answered

    def _leave_current(self) -> None:
        if self._current is not None:
            digest, arriving = self._current
            self._current = None
            arriving.close()
            self._hands.let_go(digest)

    def _release_whole(self) -> None:
        for digest, arriving in self._whole:
            arriving.close()
            self._hands.let_go(digest)
        self._whole, self._whole_bytes = [], 0
