"""Parts of checkpoints in stores: each file is an object of its own, below a place that only its part has."""

import asyncio
import hashlib
import logging
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from agent.data.beside import each_beside
from agent.data.bucket_outputs import FILES_BESIDE, STORE_ANSWERS, BucketSending
from agent.data.left_files import LeftFiles
from agent.data.mover.mover import Mover
from muster.domain.data.buckets.bucket_url import BucketUrl, read_bucket_url
from muster.domain.data.buckets.listing import StoredObject
from muster.domain.data.checkpoint import CheckpointPlace, part_directory
from muster.domain.data.tree import ContentEntry, ContentKind
from muster.domain.errors import MusterError, UnavailableError
from muster.domain.jobs.failure import ExecutionError
from muster.transfer.bucket_faults import BucketAwayError, BucketRefusedError, NoObjectError
from muster.transfer.objects import WrongContentError
from muster.transfer.store_access import StoreAccess, store_access

log = logging.getLogger(__name__)

_REMEMBERED = 10_000


class PartsInStores:
    """Sends parts to a store, fetches them from there, and removes those that nobody needs any more."""

    def __init__(self, mover: Mover) -> None:
        self._mover = mover
        self._sending = BucketSending(mover)
        self._looked_through: set[str] = set()
        """Places of attempts that are over in which nothing is left that could go."""

    async def send(self, place: CheckpointPlace, found: LeftFiles) -> None:
        """Have all files of a part in the store.

        Raises UnavailableError, BucketRefusedError, ExecutionError, or OSError.
        """
        try:
            await self._sending.send(place.of(found.tree.digest), _access(place), found)
        except BucketAwayError as error:
            raise UnavailableError(str(error)) from error

    async def fetch(
        self,
        place: CheckpointPlace,
        tree: str,
        entries: Sequence[ContentEntry],
        into: Path,
        told: Callable[[int], None],
    ) -> None:
        """Have files of a part below a directory; `told` hears of bytes that came.

        Raises UnavailableError, WrongContentError where one is not there as it was stored, NoObjectError where none is,
        BucketRefusedError, ExecutionError, or OSError.
        """
        url, access = _url(place.of(tree)), _access(place)
        parts = into.parent / "arriving"
        try:
            async with self._mover.needed():
                there = {each.key: each for each in await self._listed(url, access)}
                missing = await asyncio.to_thread(_missing, entries, into)
                told(sum(each.size for each in entries) - sum(each.size for each in missing))
                wanted = [(each, _same(url, each, there)) for each in missing]
                await asyncio.to_thread(partial(parts.mkdir, mode=0o700, exist_ok=True))

                async def one(number: int) -> None:
                    entry, stored = wanted[number]
                    part = parts / f"{part_directory(tree)}-{number}"
                    digest = await self._mover.fetched(url.bucket, stored, access, part, lambda _: None)
                    if digest != entry.content:
                        await asyncio.to_thread(partial(part.unlink, missing_ok=True))
                        raise WrongContentError(f"{url.of(stored.key)} holds something else than was stored")
                    await asyncio.to_thread(_lay, part, into / entry.path, entry)
                    told(entry.size)

                await each_beside(range(len(wanted)), FILES_BESIDE, one)
        except BucketAwayError as error:
            raise UnavailableError(str(error)) from error

    async def clear(self, place: CheckpointPlace, stays: Collection[str]) -> None:
        """Remove parts of a rank that do not stay, as far as the store lets that be done."""
        kept = {part_directory(tree) for tree in stays}
        access = _access(place)
        try:
            async with self._mover.needed():
                for at in (*(each for each in place.earlier if each not in self._looked_through), place.to):
                    if not await self._cleared(_url(at), access, kept) and at != place.to:
                        self._looked_through.add(at)
            if len(self._looked_through) > _REMEMBERED:
                self._looked_through.clear()
        except (MusterError, ExecutionError, OSError) as error:
            log.warning("parts of checkpoints stay in a store", extra={"place": place.to, "cause": str(error)})

    async def _cleared(self, url: BucketUrl, access: StoreAccess, kept: Collection[str]) -> bool:
        """Remove what does not stay of one attempt; whether anything is left that may go later."""
        try:
            found = await self._listed(url, access)
        except NoObjectError:
            return False
        gone = [each.key for each in found if _directory(url, each) not in kept]
        if gone:
            await self._mover.removed(url.bucket, gone, access)
            log.info("parts of checkpoints removed from a store", extra={"place": url.of(url.key), "files": len(gone)})
        return len(gone) < len(found)

    async def _listed(self, url: BucketUrl, access: StoreAccess) -> Sequence[StoredObject]:
        below = BucketUrl(scheme=url.scheme, bucket=url.bucket, key=f"{url.key}/**")
        return (await self._mover.listed(below, access)).objects


def _access(place: CheckpointPlace) -> StoreAccess:
    return store_access(place.secret, place.opens, STORE_ANSWERS)


def _url(place: str) -> BucketUrl:
    found = read_bucket_url(place)
    if found is None:
        raise BucketRefusedError(f"{place} is no place in a store")
    return found


def _directory(url: BucketUrl, each: StoredObject) -> str:
    return each.key.removeprefix(f"{url.key}/").partition("/")[0]


def _same(url: BucketUrl, entry: ContentEntry, there: dict[str, StoredObject]) -> StoredObject:
    """The object of a file; raises WrongContentError."""
    found = there.get(f"{url.key}/{entry.path}")
    if found is None or found.size != entry.size:
        raise WrongContentError(f"{url.of(f'{url.key}/{entry.path}')} is not there as it was stored")
    return found


def _missing(entries: Sequence[ContentEntry], into: Path) -> list[ContentEntry]:
    """Files that are not in their places, as they may be after a break."""
    return [each for each in entries if not _is_whole(into / each.path, each)]


def _is_whole(path: Path, entry: ContentEntry) -> bool:
    with suppress(FileNotFoundError, NotADirectoryError), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == entry.content
    return False


def _lay(part: Path, place: Path, entry: ContentEntry) -> None:
    """Have a file that has come in its place, as if it had just been written. Raises OSError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part.chmod(0o755 if entry.kind is ContentKind.PROGRAM else 0o644)
    os.utime(part)
    part.replace(place)
    part.with_name(f"{part.name}.version").unlink(missing_ok=True)
