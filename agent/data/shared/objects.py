"""Objects of a store that several nodes of an attempt want: each fetches a share of them, and gives it to the others.

All objects of an input are the contents of one swarm, one after the other. So many small ones are one piece.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from agent.data.agreed import refuse_unwanted
from agent.data.cache import GatheredInput, InputCache, place_of
from agent.data.mover.mover import Mover
from agent.data.shared.store_origin import OpenedStore, StoreOrigin
from agent.data.shared.web_file import SMALLEST_SHARED
from agent.swarm.gathering import OriginAwayError
from agent.swarm.parts import ContentParts
from agent.swarm.shelf import SwarmAccess
from agent.swarm.side import joined_swarm
from muster.domain.data.buckets.listing import StoredObject
from muster.domain.data.job_input import FoundInput, JobInput
from muster.domain.data.tree import ContentObject
from muster.domain.gangs.plan import Assignment
from muster.domain.jobs.failure import ExecutionError
from muster.transfer.bucket_faults import BucketAwayError, BucketRefusedError
from muster.transfer.web_file import is_strong

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WantedObjects:
    """The objects of an input that an execution waits for."""

    assignment: Assignment
    input: JobInput
    store: OpenedStore
    objects: Sequence[StoredObject]

    def shared(self) -> dict[str, StoredObject]:
        """Objects that nodes give to each other, by the name that all nodes give to one version of an object."""
        named = {
            sha256(f"{self.store.name(each.key)}\0{each.version}\0{each.size}".encode()).hexdigest(): each
            for each in sorted(self.objects, key=lambda each: each.key)
            if each.size and is_strong(each.version)
        }
        enough = sum(each.size for each in named.values()) >= SMALLEST_SHARED
        return named if enough and not self.input.split else {}


class SharedObjects:
    """Gathers the objects of one input at a time into the cache of a node."""

    def __init__(self, cache: InputCache, access: SwarmAccess, mover: Mover) -> None:
        self._cache = cache
        self._access = access
        self._mover = mover

    async def gather(
        self, wanted: WantedObjects, here: Mapping[str, str], told: Callable[[int, int, int], None]
    ) -> Mapping[str, str]:
        """Have objects here with the other nodes; the SHA-256 of those that came, by key. Others are still to fetch.

        `here` has those that are on the node, and `told` hears how much is there, of how much, and how much of it other
        nodes gave. Raises BucketAwayError, OSError, or ExecutionError where an object holds what the job does not want.
        """
        named = wanted.shared()
        swarm = await joined_swarm(self._access, wanted.assignment, wanted.input.shared_as()) if named else None
        if swarm is None:
            return {}

        def whole(digest: str) -> Path | None:
            kept = here.get(named[digest].key)
            return None if kept is None else place_of(self._cache, kept, named[digest].size)

        contents = [ContentObject(digest=digest, size=each.size) for digest, each in named.items()]
        hashes = dict.fromkeys(named, wanted.input.sha256) if wanted.input.sha256 else {}
        parts = await swarm.parts(self._cache.directory / "parts", contents, whole, hashes)
        if all(each.key in here for each in named.values()):
            swarm.offer(contents, parts)
            return {}
        origin = StoreOrigin(self._mover, wanted.store, named, parts.place)
        try:
            gathered = await swarm.gather(
                contents, parts, origin, lambda there, from_peers: told(there, parts.pieces.total, from_peers)
            )
        except OriginAwayError as error:
            raise BucketAwayError(str(error)) from None
        except BucketRefusedError as error:  # whoever fetches it alone says why
            log.info("objects are not shared", extra={"execution": wanted.assignment.execution, "cause": str(error)})
            return {}
        came = _Came(self._cache, wanted, named, parts, believes=gathered.is_believed)
        about = {"execution": wanted.assignment.execution, "bytes": parts.pieces.total}
        found = await asyncio.to_thread(came.kept)
        log.info("objects gathered", extra=about | {"from_peers": gathered.from_peers})
        return found


@dataclass(frozen=True, slots=True)
class _Came:
    """Objects all of whose pieces are here."""

    cache: InputCache
    wanted: WantedObjects
    named: Mapping[str, StoredObject]
    parts: ContentParts
    believes: bool
    """Whether other nodes were believed what they hold."""

    def kept(self) -> dict[str, str]:
        """Have them in the cache, leased; the SHA-256 of each by its key. Raises OSError or ExecutionError."""
        found: dict[str, str] = {}

        def keep(name: str, path: Path) -> Path:
            each, digest = self.named[name], self.parts.sha256(name)
            refuse_unwanted(self.wanted.input, digest)
            about = FoundInput(
                url=self.wanted.store.name(each.key), size=each.size, sha256=digest, version=each.version
            )
            believed_by = self.wanted.assignment.project if self.believes and not self.wanted.input.sha256 else ""
            self.cache.take(GatheredInput(path), about, self.wanted.assignment.execution, believed_by)
            found[each.key] = digest
            return self.cache.place(digest)

        try:
            self.parts.settle(keep)
        except ExecutionError:
            self.parts.forget(range(self.parts.pieces.count))
            raise
        return found
