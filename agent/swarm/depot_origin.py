"""The depot as the origin from which a node of a swarm fetches its share; loads no OpenSSL."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from agent.swarm.gathering import ORIGIN_LANES, OriginAwayError, Write
from muster.domain.data.swarm import ContentSpan
from muster.domain.errors import UnavailableError
from muster.transfer.depot_client import DepotClient


class DepotOrigin:
    """Objects of the depot."""

    lanes = ORIGIN_LANES

    def __init__(self, depot: DepotClient) -> None:
        self._depot = depot

    async def fetch(self, spans: Sequence[ContentSpan], write: Write) -> None:
        """Have parts of objects written. Raises OriginAwayError, or another MusterError."""
        try:
            async for data in self._depot.get(spans):
                await write(data)
        except UnavailableError as error:
            raise OriginAwayError(str(error)) from None


@asynccontextmanager
async def depot_as_origin(opens: AbstractAsyncContextManager[DepotClient]) -> AsyncIterator[DepotOrigin]:
    """The depot as an origin, opened only where something is to be fetched."""
    async with opens as depot:
        yield DepotOrigin(depot)
