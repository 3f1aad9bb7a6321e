"""The SDK for the bundles that a coordinator keeps."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from muster.bundle.archive import replaced
from muster.client.calls import Calls
from muster.domain.errors import MusterError
from muster.domain.fleet.bundle import KeptBundle
from muster.rpc.status import error_from, reason_lost
from muster.rpc.v1 import bundles_pb2 as pb
from muster.rpc.v1.bundles_pb2_grpc import BundleServiceStub
from muster.wire.bundles import READY, bundle_from_wire

_PIECE = 1 << 20
_ATTEMPTS = 5
"""Uploads until one of them hears why it is refused: an end in the middle of a piece tells no reason."""
_READY_WITHIN = 10.0
"""Seconds in which a coordinator says whether it takes a bundle."""


class BundlesClient:
    """Bundles, reached as `client.bundles`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of BundleService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(BundleServiceStub)

    async def list(self) -> tuple[KeptBundle, ...]:
        """Bundles that the coordinator keeps, the newest version first.

        >>> names = [bundle.name for bundle in await client.bundles.list()]
        """
        answer = await self._calls.ask(self._stub.List, pb.ListBundlesRequest())
        return tuple(map(bundle_from_wire, answer.bundles))

    async def signers(self) -> frozenset[str]:
        """Fingerprints of the keys whose bundles the coordinator takes; none: it takes any bundle.

        >>> signers = await client.bundles.signers()
        """
        answer = await self._calls.ask(self._stub.List, pb.ListBundlesRequest())
        return frozenset(answer.signers)

    async def upload(self, file: Path, name: str = "", tell: Callable[[int], None] = lambda _: None) -> KeptBundle:
        """Have the coordinator keep a bundle, under the name of the file or another one.

        `tell` is called with the number of bytes that have been sent.

        >>> await client.bundles.upload(Path("muster.tar"))
        """
        try:
            for _ in range(_ATTEMPTS - 1):
                try:
                    return await self._put(file, name or file.name, tell)
                except grpc.aio.AioRpcError as error:
                    if not reason_lost(error):
                        raise
            return await self._put(file, name or file.name, tell)
        except grpc.aio.AioRpcError as error:
            raise error_from(error.code(), error.details() or "", address=self._calls.connection.address) from error

    async def _put(self, file: Path, name: str, tell: Callable[[int], None]) -> KeptBundle:
        async def pieces() -> AsyncIterator[pb.PutBundlePiece]:
            if READY not in dict(await call.initial_metadata()):
                await call.code()  # refused; until that is here nothing may be sent, not even that there is no more
                return
            yield pb.PutBundlePiece(name=name)
            sent = 0
            with file.open("rb") as content:
                while data := await asyncio.to_thread(content.read, _PIECE):
                    yield pb.PutBundlePiece(data=data)
                    sent += len(data)
                    tell(sent)

        call: grpc.aio.StreamUnaryCall[pb.PutBundlePiece, pb.Bundle] = self._stub.Put(pieces(), metadata=self._metadata)
        try:
            async with asyncio.timeout(_READY_WITHIN):
                await call.initial_metadata()
            return bundle_from_wire(await call)
        except TimeoutError:
            raise error_from(grpc.StatusCode.DEADLINE_EXCEEDED, "", address=self._calls.connection.address) from None
        finally:
            call.cancel()

    async def download(
        self, into: Path, name: str = "", tell: Callable[[int, int], None] = lambda _sent, _size: None
    ) -> tuple[KeptBundle, Path]:
        """A bundle of the coordinator, the newest one without a name, as a file in a directory, and its path.

        It is there whole and with the right hash, or not at all. `tell` is called with the number of bytes that have
        arrived, and of all.

        >>> bundle, path = await client.bundles.download(Path("/tmp"))
        """
        call = self._stub.Get(pb.GetBundleRequest(name=name), metadata=self._metadata)
        try:
            bundle = bundle_from_wire((await anext(aiter(call))).bundle)
            target = into / Path(bundle.name).name
            digest, arrived = hashlib.sha256(), 0
            with replaced(target) as file:
                async for piece in call:
                    file.write(piece.data)
                    digest.update(piece.data)
                    arrived += len(piece.data)
                    tell(arrived, bundle.size)
                if digest.hexdigest() != bundle.sha256:
                    raise MusterError(f"{bundle.name} has not arrived as it was sent; try again")
        except grpc.aio.AioRpcError as error:
            raise error_from(error.code(), error.details() or "", address=self._calls.connection.address) from error
        finally:
            call.cancel()
        return bundle, target

    @property
    def _metadata(self) -> Any:  # noqa: ANN401 - as gRPC takes it
        return self._calls.connection.credentials.metadata

    async def remove(self, name: str) -> None:
        """Have the coordinator keep a bundle no longer.

        >>> await client.bundles.remove("muster-0.1.0-cp311-x86_64.tar")
        """
        await self._calls.ask(self._stub.Remove, pb.RemoveBundleRequest(name=name), pauses=())
