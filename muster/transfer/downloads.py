"""Files of content trees that are fetched from the depot into a directory: whole and checked, or not at all.

A file arrives as `.NAME.muster-part` beside its place, is compared with its SHA-256, and gets its name only then. What
has arrived of it when the way breaks is gone on with by the next try.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from muster.domain.data.swarm import ContentSpan
from muster.domain.data.tree import ContentEntry, ContentKind
from muster.domain.errors import MusterError
from muster.transfer.depot_client import DepotClient
from muster.transfer.objects import ArrivingObject

DOWNLOADED_TOGETHER = 256
"""Files in one question to the depot."""

_READ = 1024 * 1024
_RUN, _LOOK = 0o755, 0o644


class DownloadError(MusterError):
    """Something is in the way of a file that is to be fetched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesFetched:
    """What came of fetching files."""

    files: int
    """Files that are in their places now."""
    bytes: int
    fetched: int
    """How many of the files were not there before."""


async def fetch_files(
    client: DepotClient, entries: Sequence[ContentEntry], into: Path, told: Callable[[int], None]
) -> FilesFetched:
    """Have these files of a tree below a directory; what is there already and holds the same is not fetched.

    `told` hears of bytes as they arrive. Raises DownloadError, another MusterError, or OSError.
    """
    await asyncio.to_thread(into.mkdir, parents=True, exist_ok=True)
    wanted = [each for each in entries if not each.is_link]
    missing = await asyncio.to_thread(_missing, wanted, into)
    told(sum(each.size for each in wanted) - sum(each.size for each in missing))
    for some in _cut(missing):
        await _fetch(client, some, into, told)
    return FilesFetched(files=len(wanted), bytes=sum(each.size for each in wanted), fetched=len(missing))


async def read_contents(client: DepotClient, entries: Sequence[ContentEntry]) -> Sequence[bytes]:
    """What these small files of a tree hold, into memory. Raises MusterError."""
    found: list[bytes] = []
    for at in range(0, len(entries), DOWNLOADED_TOGETHER):
        some = entries[at : at + DOWNLOADED_TOGETHER]
        spans = [ContentSpan(digest=each.content, offset=0, length=each.size) for each in some if each.size]
        joined = b"".join([data async for data in client.get(spans)]) if spans else b""
        offset = 0
        for each in some:
            found.append(joined[offset : offset + each.size])
            offset += each.size
    return found


async def _fetch(client: DepotClient, entries: Sequence[ContentEntry], into: Path, told: Callable[[int], None]) -> None:
    with ExitStack() as open_ones:
        arriving = [open_ones.enter_context(await asyncio.to_thread(_arriving, each, into)) for each in entries]
        told(sum(arrival.offset for arrival in arriving))
        await client.fill(arriving, told)


def _missing(entries: Iterable[ContentEntry], into: Path) -> list[ContentEntry]:
    """Files that are not there, or hold something else; raises DownloadError where a link leads elsewhere."""
    root = into.resolve()
    missing = []
    for each in entries:
        place = into / each.path
        if not place.parent.resolve().is_relative_to(root):
            raise DownloadError(f"{place.parent} leads out of {into}: remove it, or name another directory with --to")
        if place.is_dir() and not place.is_symlink():
            raise DownloadError(f"{place} is a directory, and a file is to be there")
        if not _is_there(each, place):
            missing.append(each)
    return missing


def _is_there(entry: ContentEntry, place: Path) -> bool:
    if place.is_symlink() or not place.is_file() or place.stat().st_size != entry.size:
        return False
    digest = sha256()
    with place.open("rb") as file:
        while data := file.read(_READ):
            digest.update(data)
    return digest.hexdigest() == entry.content


def _arriving(entry: ContentEntry, into: Path) -> ArrivingObject:
    place = into / entry.path
    place.parent.mkdir(parents=True, exist_ok=True)
    umask = os.umask(0)
    os.umask(umask)
    mode = (_RUN if entry.kind is ContentKind.PROGRAM else _LOOK) & ~umask
    part = place.with_name(f".{entry.content[:16]}.muster-part")
    return ArrivingObject(part, place, entry.content, entry.size, mode)


def _cut(entries: Sequence[ContentEntry]) -> Iterator[Sequence[ContentEntry]]:
    """So many files at once; of several that hold the same, each comes with a name of its own."""
    waiting = list(entries)
    while waiting:
        some: dict[tuple[str, str], ContentEntry] = {}
        later: list[ContentEntry] = []
        for each in waiting:
            key = (each.path.rpartition("/")[0], each.content)
            if key in some or len(some) >= DOWNLOADED_TOGETHER:
                later.append(each)
            else:
                some[key] = each
        yield list(some.values())
        waiting = later
