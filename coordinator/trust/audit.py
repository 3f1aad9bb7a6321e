"""The audit log's way in: orders are written down a moment later, many at once, so that no launch waits for them."""

import asyncio
from dataclasses import replace

from coordinator.trust.places import place_of
from coordinator.trust.registry import Registry
from muster.domain.access import AuditEntry

LINGER = 1.0
"""Seconds that an entry may wait for others; one that shows a change of trust is written with the change itself."""
WINDOW = 60.0
REFUSALS = 20
"""In one window of seconds so many refusals of one peer at one call are kept in full; of more, the number."""
PEERS = 10_000
"""Most pairs of peer and call that are counted; beyond it all counting starts anew."""
TEXT = 200
"""Most characters of a field: what a stranger sends must not fill the disk."""


class AuditLog:
    """Takes entries without waiting; `run` writes them down."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._waiting: list[AuditEntry] = []
        self._news = asyncio.Event()
        self._refusals: dict[tuple[str, str], _Count] = {}

    def note(self, entry: AuditEntry) -> None:
        """Have an entry written down."""
        self._waiting.append(shortened(entry))
        self._news.set()

    def note_refusal(self, entry: AuditEntry) -> None:
        """Have a refusal written down, unless the peer was refused the same too often just now."""
        if len(self._refusals) > PEERS:
            self._refusals.clear()
        count = self._refusals.setdefault((place_of(entry.origin), entry.what), _Count())
        now = entry.at.timestamp()
        more = count.suppressed
        if count.take(now):
            suffix = f" ({more} more like it were not listed)" if more and count.kept == 1 else ""
            self.note(replace(entry, result=entry.result + suffix))

    async def run(self) -> None:
        """Write until cancelled; what waits then is for `flush`."""
        while True:
            await self._news.wait()
            await asyncio.sleep(LINGER)
            self._news.clear()
            await self.flush()

    async def flush(self) -> None:
        """Write down all that waits."""
        batch, self._waiting = self._waiting, []
        if batch:
            await self._registry.note(batch)


class _Count:
    """How often one peer was refused one call in the present window."""

    def __init__(self) -> None:
        self.since = float("-inf")
        self.kept = 0
        self.suppressed = 0

    def take(self, now: float) -> bool:
        """Whether one more is kept."""
        if now - self.since >= WINDOW:
            self.since, self.kept, self.suppressed = now, 0, 0
        if self.kept >= REFUSALS:
            self.suppressed += 1
            return False
        self.kept += 1
        return True


def shortened(entry: AuditEntry) -> AuditEntry:
    """The entry with no field longer than anybody reads."""
    return replace(
        entry,
        who=entry.who[:TEXT],
        what=entry.what[:TEXT],
        target=entry.target[:TEXT],
        result=entry.result[:TEXT],
    )
