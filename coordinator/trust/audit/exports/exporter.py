"""Hands the audit log on as it happens, from the database, so that nothing is lost while somebody does not take it."""

import asyncio
import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from coordinator.trust.records import AuditWish
from coordinator.trust.registry import Registry
from muster.domain.errors import MusterError
from muster.domain.fleet.access import AuditEntry
from muster.trust.files import write_private

log = logging.getLogger(__name__)

LOOK_EVERY = 1.0
"""Seconds between two looks for new entries."""
AT_ONCE = 500
"""Most entries that are handed on at a time, and kept in memory for that."""
FIRST_RETRY, LONGEST_RETRY = 1.0, 60.0
"""Seconds between two tries with somebody who does not take entries; they double."""


class Sink(Protocol):
    """Somebody who is handed entries. Synchronous, with limits in time of its own; called from a thread."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def written(self) -> int | None:
        """The number of the last entry it has; None: it cannot say."""
        ...

    def write(self, entries: Sequence[AuditEntry]) -> None:
        """Take entries, in order; raises OSError where it did not take all of them."""
        ...

    def close(self) -> None:
        """Let go."""
        ...


class Exporter:
    """Hands every entry to one sink, oldest first; over restarts at least once each."""

    def __init__(self, registry: Registry, sink: Sink, note: Path) -> None:
        """`note`: the file that says how far the sink has got."""
        self._registry = registry
        self._sink = sink
        self._note = note
        self._failing = ""
        self.number = 0
        """The last entry that was handed on."""

    async def run(self) -> None:
        """Hand on until cancelled."""
        pause, begun = FIRST_RETRY, False
        try:
            while True:
                try:
                    if not begun:
                        await self.begin()
                        begun = True
                    await self.hand_on()
                except (OSError, MusterError) as error:
                    self._complain(str(error))
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, LONGEST_RETRY)
                    continue
                pause = FIRST_RETRY
                await asyncio.sleep(LOOK_EVERY)
        finally:
            self._sink.close()

    async def hand_on(self) -> None:
        """Hand on all that is new."""
        while entries := await self._registry.audit(AuditWish(oldest_first=True, beyond=self.number, limit=AT_ONCE)):
            await asyncio.to_thread(self._write, entries)
            self.number = entries[-1].number
        if self._failing:
            log.warning("the audit log is exported again", extra={"to": self._sink.name})
            self._failing = ""

    async def begin(self) -> None:
        """Go on where the last run ended; after a restore of an older database, from the oldest entry."""
        written = await asyncio.to_thread(self._sink.written)
        reached = self._noted() if written is None else written
        newest = await self._registry.audit(AuditWish(limit=1))
        if reached > (newest[-1].number if newest else 0):
            log.warning("the audit log is older than its export and is exported anew", extra={"to": self._sink.name})
            reached = 0
        self.number = reached

    def _write(self, entries: Sequence[AuditEntry]) -> None:
        self._sink.write(entries)
        write_private(self._note, json.dumps({"to": self._sink.name, "number": entries[-1].number}).encode())

    def _noted(self) -> int:
        with suppress(OSError, ValueError, KeyError, TypeError):
            said = json.loads(self._note.read_bytes())
            return int(said["number"]) if said["to"] == self._sink.name else 0
        return 0

    def _complain(self, cause: str) -> None:
        if cause != self._failing:  # the same again is no news
            log.warning("the audit log cannot be exported", extra={"to": self._sink.name, "cause": cause})
        self._failing = cause
