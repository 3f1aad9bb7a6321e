"""The last use of each API token: noted in memory with every call, written down seldom and many at once."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime

from muster.domain.errors import MusterError
from muster.domain.fleet.access import IssuedToken

WRITE_PAUSE = 60.0
"""Seconds between two times at which the last uses are written down; a killed coordinator forgets what came after."""

log = logging.getLogger(__name__)


class TokenUses:
    """When each token was shown last, as far as this program has seen it."""

    def __init__(self) -> None:
        self._seen: dict[str, datetime] = {}
        self._unwritten: dict[str, datetime] = {}

    def note(self, token: str, now: datetime) -> None:
        """A token was shown and counted."""
        self._seen[token] = self._unwritten[token] = now

    def told(self, token: IssuedToken) -> IssuedToken:
        """The token with its last use, from memory where it was seen since the start."""
        seen = self._seen.get(token.id)
        return token if seen is None else replace(token, used_at=seen)

    def take(self) -> Mapping[str, datetime]:
        """What is to be written down; it is forgotten here once it is given."""
        taken, self._unwritten = self._unwritten, {}
        return taken

    def put_back(self, times: Mapping[str, datetime]) -> None:
        """Keep what could not be written down, except where a later use is known."""
        self._unwritten = {**times, **self._unwritten}


async def write_seldom(write: Callable[[], Awaitable[None]]) -> None:
    """Have the last uses written down once in a while, until cancelled; a failure is tried again the next time."""
    while True:
        await asyncio.sleep(WRITE_PAUSE)
        try:
            await write()
        except MusterError as error:
            log.warning("cannot note which tokens were used", extra={"cause": str(error)})
