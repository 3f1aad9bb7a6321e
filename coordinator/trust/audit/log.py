"""The audit log's way in: entries are written many at once; whoever needs one on the disk waits for that."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from coordinator.trust.places import place_of
from coordinator.trust.registry import Registry
from muster.domain.errors import ExhaustedError, MusterError
from muster.domain.fleet.access import AuditEntry
from muster.domain.visible_text import visible

log = logging.getLogger(__name__)

LINGER = 1.0
"""Seconds that an entry may wait for others if nobody waits for it; others are written at once, many together."""
REFUSALS_WINDOW = 60.0
REFUSALS = 20
"""Refusals of one peer at one call that are kept in full in one window; more of them are counted."""
PEERS = 10_000
"""Most pairs of peer and call that are counted; beyond it all counting starts anew."""
TEXT = 200
"""Most characters of a field: what a stranger sends must not fill the disk."""
MOST_UNWRITTEN = 20_000
"""Most entries in memory while they cannot be written; others are counted. Refusals get half of it."""
WRITTEN_AT_ONCE = 2_000
"""Most entries of one transaction."""
AUDIT_PAUSE, LONGEST_AUDIT_PAUSE = 1.0, 15.0
"""Seconds between tries to write what could not be written; they double."""
LOST = "audit.lost"
"""The operation that an entry about lost entries names; the coordinator does it by itself."""


@dataclass(slots=True)
class _Losses:
    """Entries for which there was no room in memory."""

    count: int = 0
    since: datetime | None = None
    until: datetime | None = None

    def add(self, entry: AuditEntry) -> None:
        """Count one more."""
        self.count += 1
        self.since = self.since or entry.at
        self.until = entry.at

    def without(self, told: int) -> "_Losses":
        """Losses of which the audit log does not tell yet."""
        return _Losses(self.count - told, self.until, self.until) if self.count > told else _Losses()

    def entry(self, cause: str) -> AuditEntry:
        """What the audit log says of them."""
        assert self.since is not None
        assert self.until is not None
        span = f"from {self.since:%Y-%m-%dT%H:%M:%SZ} to {self.until:%Y-%m-%dT%H:%M:%SZ}"
        result = f"lost {span}: {cause}"
        return AuditEntry(at=self.until, who="", what=LOST, target=f"{self.count} entries", origin="", result=result)


class AuditLog:
    """Takes entries without waiting; `run` writes them down, and so does whoever waits for theirs.

    Entries that cannot be written stay in memory, up to a bound, and are tried again.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._waiting: deque[AuditEntry] = deque()
        self._taken = 0
        """How many entries have come in."""
        self._written = 0
        """How many of them are on the disk."""
        self._losses = _Losses()
        self._cause = ""
        """Why nothing can be written; empty: it can."""
        self._writing: asyncio.Task[MusterError | None] | None = None
        self._news = asyncio.Event()
        self._refusals: dict[tuple[str, str], _Count] = {}

    def note(self, entry: AuditEntry) -> None:
        """Have an entry written down."""
        self._take(entry, MOST_UNWRITTEN)

    def note_refusal(self, entry: AuditEntry) -> None:
        """Have a refusal written down, unless the peer was refused the same too often just now."""
        if len(self._refusals) > PEERS:
            self._refusals.clear()
        count = self._refusals.setdefault((place_of(entry.origin), entry.what), _Count())
        now = entry.at.timestamp()
        more = count.suppressed
        if count.take(now):
            suffix = f" ({more} more like it were not listed)" if more and count.kept == 1 else ""
            self._take(replace(entry, result=entry.result + suffix), MOST_UNWRITTEN // 2)

    async def run(self) -> None:
        """Write until cancelled; what waits then is for `flush`."""
        pause = AUDIT_PAUSE
        while True:
            await self._news.wait()
            await asyncio.sleep(LINGER)
            self._news.clear()
            if await self.flush():
                pause = AUDIT_PAUSE
                continue
            self._tell()
            self._news.set()
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_AUDIT_PAUSE)

    async def flush(self) -> bool:
        """Try to write down all that waits; False: it waits on."""
        with suppress(ExhaustedError):
            await self.kept()
            return True
        return False

    async def kept(self) -> None:
        """Wait until all that was noted so far is on the disk; ExhaustedError if it cannot be written now."""
        mark = self._taken
        while self._written < mark:
            if self._writing is None:
                self._writing = asyncio.create_task(self._write(), name="audit log")
            # Shielded, as others wait for the same: whoever goes away must not take their entries along.
            error = await asyncio.shield(self._writing)
            if error is not None and self._written < mark:
                raise ExhaustedError(f"the audit log cannot be written, and without it nothing is confirmed: {error}")

    def report_unwritten(self) -> None:
        """Say how many entries end with this process."""
        if self._waiting or self._losses.count:
            self._tell()

    def _take(self, entry: AuditEntry, most: int) -> None:
        if len(self._waiting) >= most:
            self._losses.add(entry)
            return
        self._waiting.append(shortened(entry))
        self._taken += 1
        self._news.set()

    async def _write(self) -> MusterError | None:
        """Write all that waits, many entries in one transaction; what went wrong, if something did."""
        try:
            while self._waiting:
                batch = list(islice(self._waiting, WRITTEN_AT_ONCE))
                losses = [self._losses.entry(self._cause)] if self._losses.count else []
                counted = self._losses.count
                await self._registry.note([*map(shortened, losses), *batch])
                self._have_written(batch, counted)
        except MusterError as error:
            first, self._cause = not self._cause, str(error)
            if first:
                self._tell()
            return error
        finally:
            self._writing = None
        return None

    def _have_written(self, batch: Sequence[AuditEntry], lost: int) -> None:
        for _ in batch:
            self._waiting.popleft()
        self._written += len(batch)
        self._losses = self._losses.without(lost)
        if self._cause:
            log.warning("the audit log is written again", extra={"waiting": len(self._waiting), "lost": lost})
            self._cause = ""

    def _tell(self) -> None:
        about = {"cause": self._cause, "waiting": len(self._waiting), "lost": self._losses.count}
        log.error("the audit log cannot be written", extra=about)


class _Count:
    """How often one peer was refused one call in the present window."""

    def __init__(self) -> None:
        self.since = float("-inf")
        self.kept = 0
        self.suppressed = 0

    def take(self, now: float) -> bool:
        """Whether one more is kept."""
        if now - self.since >= REFUSALS_WINDOW:
            self.since, self.kept, self.suppressed = now, 0, 0
        if self.kept >= REFUSALS:
            self.suppressed += 1
            return False
        self.kept += 1
        return True


def shortened(entry: AuditEntry) -> AuditEntry:
    """The entry with no field longer than anybody reads, and with nothing in it that a database refuses."""
    return replace(
        entry,
        who=_storable(entry.who),
        what=_storable(entry.what),
        target=_storable(entry.target),
        origin=_storable(entry.origin),
        result=_storable(entry.result),
    )


def _storable(text: str) -> str:
    """The visible characters of a text, up to a bound: a terminal shows and a database takes them."""
    return visible(text[:TEXT])[:TEXT]
