"""Operations on bundles, which arrive and leave in pieces."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import BinaryIO

from coordinator.service.operations import Operations
from coordinator.store.bundles import BundleStore
from coordinator.trust.caller import Caller
from muster.domain.errors import ConflictError, InvalidJobError, UnavailableError
from muster.domain.fleet.bundle import KeptBundle

PIECE = 256 * 1024
"""Bytes that are read at once."""

Piece = tuple[str, bytes]
"""Name of the bundle, which the first piece has, and some of its bytes."""


class BundleOperations:
    """What callers may do with bundles."""

    def __init__(self, operations: Operations, store: BundleStore) -> None:
        self._operations = operations
        self._store = store
        self._arriving = asyncio.Lock()

    async def list(self, caller: Caller) -> tuple[Sequence[KeptBundle], Sequence[str]]:
        """Bundles, the newest version first, and the names of those whose signatures count."""
        async with self._operations.begin(caller, "bundles.list"):
            return await asyncio.to_thread(self._store.all), sorted(self._store.signers)

    @asynccontextmanager
    async def get(self, caller: Caller, name: str) -> AsyncIterator[tuple[KeptBundle, AsyncIterator[bytes]]]:
        """A bundle and its bytes, piece by piece, while the context is open."""
        async with self._operations.begin(caller, "bundles.get", name):
            bundle, path = await asyncio.to_thread(self._store.find, name)
            try:
                file = await asyncio.to_thread(path.open, "rb")
            except FileNotFoundError:
                raise UnavailableError(f"the bundle {bundle.name} was removed just now") from None
            with file:
                yield bundle, _pieces(file)

    async def put(
        self, caller: Caller, ready: Callable[[], Awaitable[None]], pieces: AsyncIterator[Piece]
    ) -> KeptBundle:
        """Keep what arrives, once all of it is there and proves to be a bundle.

        `ready` is called when the caller may send; nothing is taken from `pieces` before.
        """
        async with self._operations.begin(caller, "bundles.put") as operation:
            if self._arriving.locked():
                raise ConflictError("another bundle is being uploaded; try again when it is there")
            async with self._arriving:
                await ready()
                first = await anext(pieces, None)
                if first is None:
                    raise InvalidJobError("PutBundlePiece.name: is missing")
                operation.target, data = first
                with self._store.arrival(operation.target) as arrival:
                    await asyncio.to_thread(arrival.add, data)
                    async for _, more in pieces:
                        await asyncio.to_thread(arrival.add, more)
                    return await asyncio.to_thread(arrival.keep)

    async def remove(self, caller: Caller, name: str) -> None:
        """Keep a bundle no longer."""
        async with self._operations.begin(caller, "bundles.remove", name):
            await asyncio.to_thread(self._store.remove, name)


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    while data := await asyncio.to_thread(file.read, PIECE):
        yield data
