"""The clients' side: bundles, which are sent and received in pieces."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from coordinator.rpc.callers import Context
from coordinator.rpc.refusals import translated
from coordinator.rpc.streams import offer, streaming
from coordinator.store.bundles import BundleStore
from muster.domain.errors import ConflictError, InvalidJobError, UnavailableError
from muster.rpc.v1 import bundles_pb2 as pb
from muster.rpc.v1 import bundles_pb2_grpc
from muster.wire.bundles import READY, bundle_to_wire

PIECE = 256 * 1024
"""Bytes that are sent at once."""
SENDER_PATIENCE = 30.0
"""Seconds that the next piece may take to arrive."""


class BundleService(bundles_pb2_grpc.BundleServiceServicer):
    """Keep bundles and give them out; the gate has asked already whether the caller may."""

    def __init__(self, store: BundleStore, reader_patience: float) -> None:
        self._store = store
        self._reader_patience = reader_patience
        self._arriving = asyncio.Lock()
        self.closing = asyncio.Event()

    @translated
    async def List(self, request: pb.ListBundlesRequest, context: Any) -> pb.ListBundlesResponse:  # noqa: ANN401, ARG002, N802 - gRPC's name
        """Which there are, the newest version first."""
        found = await asyncio.to_thread(self._store.all)
        return pb.ListBundlesResponse(bundles=map(bundle_to_wire, found), signers=sorted(self._store.signers))

    @streaming
    async def Get(self, request: pb.GetBundleRequest, context: Context) -> None:  # type: ignore[override]  # noqa: N802
        """One of them, as fast as the client takes it; who takes nothing for long is cut off."""
        bundle, path = await asyncio.to_thread(self._store.find, request.name)
        try:
            file = await asyncio.to_thread(path.open, "rb")
        except FileNotFoundError:
            raise UnavailableError(f"the bundle {bundle.name} was removed just now") from None
        with file:
            await offer(context, pb.BundlePiece(bundle=bundle_to_wire(bundle)), self._reader_patience)
            while data := await asyncio.to_thread(file.read, PIECE):
                await offer(context, pb.BundlePiece(data=data), self._reader_patience)

    @translated
    async def Put(self, request_iterator: AsyncIterator[pb.PutBundlePiece], context: Context) -> pb.Bundle:  # noqa: N802
        """Keep what arrives, once all of it is there and proves to be a bundle."""
        if self._arriving.locked():
            raise ConflictError("another bundle is being uploaded; try again when it is there")
        async with self._arriving:
            await context.send_initial_metadata(((READY, "1"),))
            first = await _next(request_iterator)
            if first is None:
                raise InvalidJobError("PutBundlePiece.name: is missing")
            with self._store.arrival(first.name) as arrival:
                piece: pb.PutBundlePiece | None = first
                while piece is not None:
                    await asyncio.to_thread(arrival.add, piece.data)
                    piece = await _next(request_iterator)
                return bundle_to_wire(await asyncio.to_thread(arrival.keep))

    @translated
    async def Remove(self, request: pb.RemoveBundleRequest, context: Context) -> pb.RemoveBundleResponse:  # noqa: ARG002, N802
        """Keep one no longer."""
        await asyncio.to_thread(self._store.remove, request.name)
        return pb.RemoveBundleResponse()


async def _next(pieces: AsyncIterator[pb.PutBundlePiece]) -> pb.PutBundlePiece | None:
    """The next piece, or None after the last one; raises UnavailableError where it does not come."""
    try:
        async with asyncio.timeout(SENDER_PATIENCE):
            return await anext(aiter(pieces), None)
    except TimeoutError:
        raise UnavailableError(f"nothing arrived for {SENDER_PATIENCE:g} s") from None
