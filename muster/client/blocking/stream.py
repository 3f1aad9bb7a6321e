"""An asynchronous iterator as an ordinary one."""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from types import TracebackType
from typing import Generic, Self, TypeVar

_AHEAD = 256
"""Items that are fetched before anybody asks for them: one by one they would each cost a change of threads."""

LOOKS_UP_EVERY = 0.5
"""Seconds after which a thread that waits looks up, as Python then sees a Ctrl-C. It does not see one that came in the
moment between its last look and the wait of the operating system, which such a signal no longer interrupts."""

_Item = TypeVar("_Item")


class SyncStream(Iterator[_Item], Generic[_Item]):
    """What a client sends one after the other; close one that is left before its end, or use it with `with`.

    >>> with client.jobs.watch("hello") as views:
    ...     for job in views:
    ...         print(job.phase)
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, source: AsyncGenerator[_Item, None]) -> None:
        self._fetched = _Fetched(loop, source)

    def next(self, timeout: float | None = None) -> _Item:
        """The next item; StopIteration after the last, TimeoutError when none comes within `timeout` seconds.

        >>> line = client.jobs.logs("hello", follow=True).next(timeout=60)
        """
        return self._fetched.take(timeout)

    def close(self) -> None:
        """Have nothing more sent; a closed stream is at its end.

        views.close()
        """
        self._fetched.close()

    def __next__(self) -> _Item:
        return self._fetched.take(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class _Fetched(Generic[_Item]):
    """The items between the loop that fetches them and the thread that takes them.

    It does not know the stream, so that a stream which nobody has any more is closed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, source: AsyncGenerator[_Item, None]) -> None:
        self._loop = loop
        self._source = source
        self._items: deque[_Item] = deque()
        self._changed = threading.Condition()
        self._wanted = asyncio.Event()
        self._fetching: asyncio.Task[None] | None = None
        self._begun = self._over = False
        self._error: Exception | None = None

    def take(self, timeout: float | None) -> _Item:
        if not self._begun:
            self._begun = True
            self._loop.call_soon_threadsafe(self._begin)
        with self._changed:
            self._wait(timeout)
            if self._items:
                item = self._items.popleft()
                if len(self._items) == _AHEAD // 2:
                    self._loop.call_soon_threadsafe(self._wanted.set)
                return item
            error, self._error = self._error, None
        if error is not None:
            raise error
        raise StopIteration

    def _wait(self, timeout: float | None) -> None:
        """Until something is there, or nothing more comes; the lock is held."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        while not (self._items or self._over):
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"nothing came within {timeout} s")
            self._changed.wait(min(left, LOOKS_UP_EVERY))

    def close(self) -> None:
        with self._changed:
            running = self._begun and not self._over
            self._begun = self._over = True
            self._items.clear()
        if running and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._cancel)

    def _begin(self) -> None:
        if not self._over:
            self._fetching = self._loop.create_task(self._fetch(), name="a stream of a synchronous client")

    def _cancel(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()

    async def _fetch(self) -> None:
        error: Exception | None = None
        try:
            async with aclosing(self._source) as source:
                async for item in source:
                    if self._add(item):
                        self._wanted.clear()
                        await self._wanted.wait()
        except Exception as problem:  # noqa: BLE001 - whoever reads the stream gets it
            error = problem
        finally:
            with self._changed:
                self._over, self._error = True, error
                self._changed.notify_all()

    def _add(self, item: _Item) -> bool:
        """Whether there are enough for now."""
        with self._changed:
            if not self._over:
                self._items.append(item)
            self._changed.notify()
            return len(self._items) >= _AHEAD
