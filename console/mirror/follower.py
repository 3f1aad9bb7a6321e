"""Keeps the mirror up to date: follows the feed with the console's own token, and wakes up those who look."""

import asyncio
import logging
import math
from collections.abc import Iterator
from contextlib import aclosing, contextmanager

from console.mirror.mirror import Mirror
from muster.client.client import Client
from muster.domain.errors import MusterError, PermissionDeniedError
from muster.domain.feed import FeedPart
from muster.domain.fleet.access import Access, AccountKind, seen_projects

log = logging.getLogger(__name__)

MIRROR_AGE = 15.0
"""Seconds without a word of the coordinator after which the mirror answers nothing any more."""
FOLLOW_AGAIN = 5.0
"""Seconds until the feed is followed again that has ended."""


class MirrorFollower:
    """The mirror of a console, while it is followed."""

    def __init__(self, client: Client) -> None:
        """`client` asks with the console's own token, which may look at everything."""
        self._client = client
        self._mirror = Mirror()
        self._heard_at = float("-inf")
        self._looking: set[asyncio.Event] = set()

    @property
    def current(self) -> Mirror | None:
        """The mirror, if it has all that the coordinator knows, but for what has changed in the last moment."""
        age = self.age
        return self._mirror if age is not None and age < MIRROR_AGE and self._mirror.caught_up else None

    @property
    def age(self) -> float | None:
        """Seconds since it has heard of the coordinator; None: it never has."""
        age = asyncio.get_running_loop().time() - self._heard_at
        return None if math.isinf(age) else age

    @contextmanager
    def looking(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever the mirror has heard something."""
        event = asyncio.Event()
        self._looking.add(event)
        try:
            yield event
        finally:
            self._looking.discard(event)

    async def has_reached(self, revision: int, within: float) -> bool:
        """Wait until the mirror knows all changes up to this one, for so many seconds at the most; whether it does."""
        with self.looking() as heard:
            try:
                async with asyncio.timeout(within):
                    while (mirror := self.current) is None or mirror.place.revision < revision:
                        await heard.wait()
                        heard.clear()
            except TimeoutError:
                return False
        return True

    async def follow(self) -> None:
        """Follow until the feed ends; raises PermissionDeniedError for a token that does not see everything."""
        myself = await self._client.accounts.myself()
        if seen_projects(myself.grants) is not None:
            raise PermissionDeniedError(
                f"the token of {myself.name} does not see all projects; it needs viewer access to *"
            )
        if myself.kind in {AccountKind.SERVICE, AccountKind.CONSOLE} and Access.ADMIN in myself.grants.values():
            log.warning("the console's own token is an admin's, and need not be", extra={"account": myself.name})
        log.info("the mirror follows the coordinator", extra={"account": myself.name})
        async with aclosing(self._client.fleet.feed(list(FeedPart), self._mirror.place)) as batches:
            async for batch in batches:
                self._mirror.apply(batch)
                self._heard_at = asyncio.get_running_loop().time()
                for event in self._looking:
                    event.set()

    async def run(self) -> None:
        """Follow until cancelled, whatever becomes of the coordinator."""
        said = ""
        while True:
            try:
                await self.follow()
            except MusterError as error:
                if str(error) != said:
                    log.warning("the mirror cannot follow the coordinator", extra={"cause": str(error)})
                said = str(error)
            await asyncio.sleep(FOLLOW_AGAIN)
