"""The id of the fleet, which every event has."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from muster.client.client import Client
from muster.domain.errors import MusterError

log = logging.getLogger(__name__)

FLEET_ID_PATIENCE = 5.0
"""Seconds that the coordinator has to say which fleet it is of."""


class FleetId:
    """The id of the fleet, asked for once."""

    def __init__(self, client: Callable[[], Awaitable[Client]]) -> None:
        """`client` asks with the console's own token."""
        self._client = client
        self._id = ""

    async def known(self) -> str:
        """The id; empty where it cannot be asked for now."""
        if not self._id:
            try:
                async with (
                    asyncio.timeout(FLEET_ID_PATIENCE),
                    aclosing((await self._client()).events.all()) as told,
                ):
                    async for each in told:
                        self._id = each.fleet
                        break
            except (MusterError, TimeoutError) as error:
                log.debug("the id of the fleet is not known yet", extra={"cause": str(error)})
        return self._id
