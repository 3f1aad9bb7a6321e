"""A store as the origin from which a node of a swarm fetches its share; the mover does that for it."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from agent.data.mover.messages import BucketPart
from agent.data.mover.mover import Mover
from agent.swarm.gathering import OriginAwayError, Write
from muster.domain.data.buckets.bucket_url import BucketUrl
from muster.domain.data.buckets.listing import StoredObject
from muster.domain.data.swarm import ContentSpan
from muster.transfer.bucket_faults import BucketAwayError
from muster.transfer.store_access import StoreAccess

STORE_LANES = 8
"""Pieces that a node fetches from a store at the same time; one alone would mostly wait for answers."""

_READ = 1024 * 1024


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """Where the objects of an input are, and what opens it."""

    url: BucketUrl
    access: StoreAccess

    def name(self, key: str) -> str:
        """What the cache calls an object: the same key at another store is another object."""
        return f"{self.access.place} {self.url.of(key)}"


class StoreOrigin:
    """Objects of a store, each in one version."""

    lanes = STORE_LANES

    def __init__(self, mover: Mover, store: OpenedStore, objects: Mapping[str, StoredObject], place: Path) -> None:
        """`objects`: by their names as contents; `place`: a directory for what the mover has just read."""
        self._mover = mover
        self._store = store
        self._objects = objects
        self._place = place

    async def fetch(self, spans: Sequence[ContentSpan], write: Write) -> None:
        """Have parts of objects written. Raises OriginAwayError, BucketRefusedError, ExecutionError or OSError."""
        parts = [BucketPart(self._objects[span.digest], span.offset, span.offset + span.length) for span in spans]
        store = self._store
        with closing(await asyncio.to_thread(lambda: NamedTemporaryFile(dir=self._place))) as file:
            try:
                await self._mover.read(store.url.bucket, parts, store.access, Path(file.name), lambda _: None)
            except BucketAwayError as error:
                raise OriginAwayError(str(error)) from None
            while data := await asyncio.to_thread(file.read, _READ):
                await write(data)
