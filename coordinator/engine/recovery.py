"""The way back after a failure of the store: what it holds is read before anything new is taken in."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor

from coordinator.store.store import Snapshot, Store, StoreError

log = logging.getLogger(__name__)

REST = 1.0
"""Seconds between a failure of the store and the next look at it, until it can be read again."""


class StoreRecovery:
    """Reads a store that has failed until it answers, and says meanwhile why nothing can be stored."""

    def __init__(self, store: Store, rest: float = REST) -> None:
        self._store = store
        self._rest = rest
        self._reading: asyncio.Task[Snapshot] | None = None
        self.reason = ""
        """Why the store could not keep or read what it was last asked for."""

    @property
    def under_way(self) -> bool:
        """Whether the store has failed, and what it holds was not taken since."""
        return self._reading is not None

    def begin(self, error: StoreError, writer: Executor, finished: Callable[[], None]) -> None:
        """Read in the thread that writes; calls `finished` once there is something to take."""
        self._note(error)
        self._reading = asyncio.create_task(self._stored(writer), name="store")
        self._reading.add_done_callback(lambda _: finished())

    def take(self) -> Snapshot | None:
        """What the store holds, which ends the recovery; None: it has not answered yet."""
        if self._reading is None or not self._reading.done():
            return None
        held, self._reading = self._reading.result(), None
        return held

    def cancel(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()

    def _note(self, error: StoreError) -> None:
        self.reason = f"the coordinator can store nothing new: {error}"

    async def _stored(self, writer: Executor) -> Snapshot:
        """What the store holds; asked for after each rest until there is an answer."""
        told = ""
        while True:
            await asyncio.sleep(self._rest)
            try:
                return await asyncio.get_running_loop().run_in_executor(writer, self._store.load)
            except StoreError as error:
                self._note(error)
                if str(error) != told:  # once a second it is no news
                    log.warning("the state cannot be read; trying once a second", extra={"cause": str(error)})
                    told = str(error)
