"""Sends what executions leave to a store: each file as an object of its own, by its path."""

import logging
from collections.abc import Collection
from dataclasses import replace

from agent.data.beside import each_beside
from agent.data.left_files import LeftFile, LeftFiles
from agent.data.mover.mover import Mover
from muster.domain.data.buckets.bucket_url import BucketUrl, read_bucket_url
from muster.domain.data.tree import ContentEntry
from muster.domain.errors import MusterError
from muster.transfer.store_access import StoreAccess

log = logging.getLogger(__name__)

FILES_BESIDE = 4
"""Files of one execution that are sent to a store at the same time."""
STORE_ANSWERS = 300.0
"""Seconds that a store has for one answer, a part of a file included."""


class BucketSending:
    """Sends files by the mover, and remembers what has arrived while the rest is tried again."""

    def __init__(self, mover: Mover) -> None:
        self._mover = mover
        self._arrived: set[tuple[str, str]] = set()
        """URL and SHA-256 of what a store has of outputs that are not all stored yet."""

    async def send(self, to: str, access: StoreAccess, found: LeftFiles, there: Collection[ContentEntry] = ()) -> None:
        """Have all files below a place in a store that are not there yet.

        Raises BucketRefusedError, BucketAwayError, ExecutionError, or OSError.
        """
        place = read_bucket_url(to)
        if place is None:
            raise MusterError(f"{to} is no place in a store")
        wanted = [each for each in found.tree.entries if each not in there]
        lacking = [each for each in wanted if self._name(place, each) not in self._arrived]

        async def one(each: ContentEntry) -> None:
            await self._one(place, access, each, found.files[each.content])
            self._arrived.add(self._name(place, each))

        async with self._mover.needed():
            await each_beside(lacking, FILES_BESIDE, one)
        self._arrived -= {self._name(place, each) for each in found.tree.entries}
        log.info("files are in a store", extra={"place": to, "bytes": found.tree.size})

    async def _one(self, place: BucketUrl, access: StoreAccess, each: ContentEntry, file: LeftFile) -> None:
        key = f"{place.key}/{each.path}"
        await self._mover.stored(replace(place, key=key), access, file, each)

    @staticmethod
    def _name(place: BucketUrl, each: ContentEntry) -> tuple[str, str]:
        return place.of(f"{place.key}/{each.path}"), each.content
