"""The event loop that all synchronous clients of a process share, in a thread of its own.

It works wherever the caller is: in a script, in a thread, and in a notebook whose own loop is running.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncGenerator, Coroutine
from concurrent.futures import wait
from contextlib import suppress
from typing import Any, ClassVar, TypeVar
from weakref import WeakSet

from muster.client.blocking.stream import LOOKS_UP_EVERY, SyncStream
from muster.client.client import Client

_END_WITHIN = 5.0
"""Seconds that the end of a program waits for the loop to end."""

_Answer = TypeVar("_Answer")


class LoopThread:
    """A thread with an event loop that runs until the program ends."""

    _shared: ClassVar["LoopThread | None"] = None
    _made: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self.process = os.getpid()
        """The process in which it runs."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="muster", daemon=True)
        self._thread.start()
        self._open: WeakSet[Client] = WeakSet()
        atexit.register(self._end)

    @classmethod
    def shared(cls) -> "LoopThread":
        """The one of this process; after a fork a new one, as threads do not come along."""
        with cls._made:
            if cls._shared is None or cls._shared.process != os.getpid():
                cls._shared = cls()
            return cls._shared

    def run(self, coroutine: Coroutine[Any, Any, _Answer]) -> _Answer:
        """What a coroutine returns or raises; Ctrl-C ends the wait and cancels it."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("a callback of a synchronous client cannot ask the client itself; use another thread")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            while wait((future,), LOOKS_UP_EVERY).not_done:
                pass
            return future.result()
        finally:
            future.cancel()  # of one that has ended nothing is left to cancel

    def stream(self, source: AsyncGenerator[_Answer, None]) -> SyncStream[_Answer]:
        """The items of an asynchronous iterator, one after the other."""
        return SyncStream(self._loop, source)

    def open(self, client: Client) -> None:
        """Open a client, and close it when the program ends, if nobody has by then."""
        self.run(client.open())
        self._open.add(client)

    def close(self, client: Client) -> None:
        """Close a client."""
        self._open.discard(client)
        self.run(client.close())

    def _end(self) -> None:
        if self.process == os.getpid():
            for client in tuple(self._open):
                with suppress(Exception):
                    asyncio.run_coroutine_threadsafe(client.close(), self._loop).result(_END_WITHIN)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_END_WITHIN)
