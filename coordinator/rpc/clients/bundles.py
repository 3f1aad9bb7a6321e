"""The clients' calls about bundles, as gRPC has them: sent and received in pieces."""

import asyncio
from collections.abc import AsyncIterator

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.refusals import translated
from coordinator.rpc.streams import offer, streaming
from coordinator.service.bundles import BundleOperations, Piece
from muster.domain.errors import UnavailableError
from muster.rpc.v1 import bundles_pb2 as pb
from muster.rpc.v1 import bundles_pb2_grpc
from muster.wire.bundles import READY, bundle_to_wire

SENDER_PATIENCE = 30.0
"""Seconds that the next piece may take to arrive."""


class BundleService(bundles_pb2_grpc.BundleServiceServicer):
    """Translates calls about bundles."""

    def __init__(self, bundles: BundleOperations, reader_patience: float) -> None:
        self._bundles = bundles
        self._reader_patience = reader_patience
        self.closing = asyncio.Event()

    @translated
    async def List(self, request: pb.ListBundlesRequest, context: Context) -> pb.ListBundlesResponse:
        """Which there are, the newest version first."""
        found, signers = await self._bundles.list(caller())
        return pb.ListBundlesResponse(bundles=map(bundle_to_wire, found), signers=signers)

    @streaming
    async def Get(self, request: pb.GetBundleRequest, context: Context) -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """One of them, as fast as the client takes it; a client that takes nothing for long is cut off."""
        async with self._bundles.get(caller(), request.name) as (bundle, pieces):
            await offer(context, pb.BundlePiece(bundle=bundle_to_wire(bundle)), self._reader_patience)
            async for data in pieces:
                await offer(context, pb.BundlePiece(data=data), self._reader_patience)

    @translated
    async def Put(self, request_iterator: AsyncIterator[pb.PutBundlePiece], context: Context) -> pb.Bundle:
        """Keep what arrives, once all of it is there and proves to be a bundle."""

        async def ready() -> None:
            await context.send_initial_metadata(((READY, "1"),))

        return bundle_to_wire(await self._bundles.put(caller(), ready, _in_time(request_iterator)))

    @translated
    async def Remove(self, request: pb.RemoveBundleRequest, context: Context) -> pb.RemoveBundleResponse:
        """Keep one no longer."""
        await self._bundles.remove(caller(), request.name)
        return pb.RemoveBundleResponse()


async def _in_time(arriving: AsyncIterator[pb.PutBundlePiece]) -> AsyncIterator[Piece]:
    """The pieces; raises UnavailableError where the next one does not come."""
    pieces = aiter(arriving)
    while True:
        try:
            async with asyncio.timeout(SENDER_PATIENCE):
                piece = await anext(pieces, None)
        except TimeoutError:
            raise UnavailableError(f"nothing arrived for {SENDER_PATIENCE:g} s") from None
        if piece is None:
            return
        yield piece.name, piece.data
