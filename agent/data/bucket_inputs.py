"""Fetches objects of stores as inputs: found once for a job, and each object once for a node."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

from agent.data.agreed import AskForInputs, AskForKeys, no_more_came, refuse_unwanted, what_counts, what_opens
from agent.data.beside import each_beside
from agent.data.cache import InputCache, MovedInput, laid_out, part_place
from agent.data.held import HeldFile, HeldInput
from agent.data.mover.mover import Mover
from agent.data.parts import part_of
from agent.data.shared.objects import SharedObjects, WantedObjects
from agent.data.shared.store_origin import OpenedStore
from agent.swarm.shelf import SwarmAccess
from agent.swarm.side import progress_text
from muster.domain.data.buckets.bucket_url import BucketUrl, read_bucket_url
from muster.domain.data.buckets.listing import BucketListing, ListingError, StoredObject, places, read_listing
from muster.domain.data.job_input import FoundInput, JobInput
from muster.domain.fleet.secret import STORE_SECRETS, SecretKind
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.quantity import size_text
from muster.transfer.bucket_faults import BucketAwayError, BucketRefusedError
from muster.transfer.store_access import StoreAccess, store_access

log = logging.getLogger(__name__)

OBJECTS_BESIDE = 4
"""Objects of one input that are fetched at the same time."""
STORE_PAUSE = 1.0
"""Seconds until a store that had no answer is asked again; doubled each time, up to LONGEST_STORE_PAUSE."""
LONGEST_STORE_PAUSE = 30.0

Progress = Callable[[str], None]
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketSide:
    """What a node needs to get at objects."""

    keys: AskForKeys
    tell: AskForInputs
    mover: Mover


@dataclass(slots=True, kw_only=True)
class _Arrival:
    """How far one input is."""

    input: JobInput
    progress: Progress
    stall: timedelta
    clock: Callable[[], float]
    last: float
    """When a byte came last, or the store gave an answer."""
    total: int = 0
    there: dict[str, int] = field(default_factory=dict)
    """Bytes by key; those that come in pieces have none."""

    def arrived(self, key: str, count: int) -> None:
        """Note that so many bytes of an object are there."""
        if count > self.there.get(key, 0):
            self.last = self.clock()
        self.there[key] = count
        there = sum(self.there.values())
        self.progress(f"fetching input {self.input.name} {size_text(there)} of {size_text(self.total)}")

    def gathered(self, there: int, total: int, from_peers: int) -> None:
        """Note how much of what comes in pieces is there, and how much of that other nodes gave."""
        if there > self.there.get("", 0):
            self.last = self.clock()
        self.there[""] = there
        self.progress(f"fetching input {self.input.name} {progress_text(there, total, from_peers)}")

    async def patiently(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        """The result of some work, which is tried again after breaks as long as bytes come; raises ExecutionError."""
        pause, before = STORE_PAUSE, self.last
        while True:
            try:
                return await work()
            except BucketRefusedError as error:
                raise ExecutionError(FailureKind.DATA_REFUSED, f"inputs.{self.input.name}: {error}") from None
            except BucketAwayError as error:
                if self.last > before:
                    pause, before = STORE_PAUSE, self.last
                self.progress(f"waiting for input {self.input.name}: {error}")
                log.warning("a store is away", extra={"input": self.input.name, "cause": str(error)})
                if self.clock() + pause - self.last > self.stall.total_seconds():
                    raise no_more_came(self.input, error, sum(self.there.values()), self.stall) from None
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_STORE_PAUSE)


@dataclass(frozen=True, slots=True)
class FoundObjects:
    """The objects of an input, in the versions that count for its job."""

    by_path: Mapping[str, StoredObject]
    """Each by its place in the directory of the input."""
    store: OpenedStore
    arrival: _Arrival

    def url(self, path: str) -> str:
        """The URL of the object that lies at a path."""
        return self.store.url.of(self.by_path[path].key)


class BucketFetching:
    """Fetches inputs of stores into the cache of a node."""

    def __init__(
        self,
        cache: InputCache,
        side: BucketSide,
        clock: Callable[[], float] = time.monotonic,
        swarms: SwarmAccess | None = None,
    ) -> None:
        """`swarms`: None: nothing comes from other nodes."""
        self._cache = cache
        self._side = side
        self._shared = None if swarms is None else SharedObjects(cache, swarms, side.mover)
        self._clock = clock
        self._fetching: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Held by whoever fetches an object; the others find it in the cache."""

    async def fetch(self, assignment: Assignment, each: JobInput, progress: Progress) -> HeldInput:
        """Have the objects of an input on this node.

        Raises ExecutionError where they cannot be had, and OSError where the disk does not take them.
        """
        async with self._side.mover.needed():
            found = await self.look(assignment, each, progress)
            files = await self.have(assignment, found, part_of(assignment, each, found.by_path))
        return await asyncio.to_thread(laid_out, self._cache, assignment.execution, files)

    async def look(self, assignment: Assignment, each: JobInput, progress: Progress) -> FoundObjects:
        """Find out which objects an input is; raises ExecutionError."""
        url = read_bucket_url(each.url)
        assert url is not None, "the rule book has looked at it"
        arrival = _Arrival(input=each, progress=progress, stall=assignment.stall, clock=self._clock, last=self._clock())
        async with self._side.mover.needed():
            access = await self._opened(assignment, each, STORE_SECRETS[url.scheme])
            listing = await self._agreed(assignment.execution, arrival, url, access)
        try:
            by_path = places(url.pattern, listing.objects, each.layout)
        except ListingError as error:
            raise ExecutionError(FailureKind.DATA_REFUSED, f"inputs.{each.name}: {error}") from None
        return FoundObjects(by_path, OpenedStore(url, access), arrival)

    async def have(self, assignment: Assignment, found: FoundObjects, paths: Iterable[str]) -> Sequence[HeldFile]:
        """Have those objects of an input on this node that lie at some paths; raises as `fetch`."""
        by_path = {path: found.by_path[path] for path in paths}
        wanted = WantedObjects(assignment, found.arrival.input, found.store, tuple(by_path.values()))
        async with self._side.mover.needed():
            held = await self._all(found.arrival, wanted)
        return [
            HeldFile(path=path, size=it.size, sha256=held[it.key], uri=found.url(path)) for path, it in by_path.items()
        ]

    async def _opened(self, assignment: Assignment, each: JobInput, kind: SecretKind) -> StoreAccess:
        """The way to a store; values of a secret are here only until the mover has them."""
        patience = assignment.stall.total_seconds()
        if not each.secret:
            return StoreAccess(patience=patience)
        values = await what_opens(self._side.keys, assignment.execution, each, kind)
        return store_access(each.secret, values, patience)

    async def _agreed(
        self, execution: ExecutionId, arrival: _Arrival, url: BucketUrl, access: StoreAccess
    ) -> BucketListing:
        """The objects that count for the job: those that the first of its nodes has found."""
        each = arrival.input
        counts = await what_counts(self._side.tell, execution, each.origin, ())
        try:
            if counts is None:
                arrival.progress(f"listing input {each.name}")
                listing = await arrival.patiently(lambda: self._side.mover.listed(url, access))
                arrival.last = self._clock()
                found = listing.found(each.origin)
                counts = await what_counts(self._side.tell, execution, each.origin, (found,)) or found
            listing = read_listing(counts)
        except ListingError as error:
            raise ExecutionError(FailureKind.DATA_REFUSED, f"inputs.{each.name}: {error}") from None
        pattern = url.pattern
        if odd := [it.key for it in listing.objects if not pattern.matches(it.key)]:
            message = f"inputs.{each.name}: the list of its objects has {odd[0]!r}, which it does not name"
            raise ExecutionError(FailureKind.RUNTIME, message)
        return listing

    async def _all(self, arrival: _Arrival, wanted: WantedObjects) -> Mapping[str, str]:
        """Have these objects in the cache; the SHA-256 of each by its key."""
        execution, together = wanted.assignment.execution, f"{wanted.store.name(wanted.store.url.key)} together"
        async with self._fetching[together]:
            found = await asyncio.to_thread(self._known, wanted)
            lacking = [each for each in wanted.objects if each.key not in found]
            arrival.total = sum(each.size for each in lacking)
            await asyncio.to_thread(self._cache.make_space, arrival.total, arrival.input.name)
            found |= await self._together(arrival, wanted, found)
        self._fetching.pop(together, None)

        async def one(each: StoredObject) -> None:
            found[each.key] = await self._one(arrival, wanted, each)

        await each_beside([each for each in lacking if each.key not in found], OBJECTS_BESIDE, one)
        if lacking:
            log.info("objects fetched", extra={"execution": execution, "bytes": arrival.total, "files": len(lacking)})
        return found

    async def _together(self, arrival: _Arrival, wanted: WantedObjects, here: Mapping[str, str]) -> Mapping[str, str]:
        """Have objects here with the help of the other nodes that want them; the SHA-256 of those that came, by key."""
        shared = self._shared
        return {} if shared is None else await arrival.patiently(lambda: shared.gather(wanted, here, arrival.gathered))

    def _known(self, wanted: WantedObjects) -> dict[str, str]:
        """What of it the node has, leased; the SHA-256 of each by its key."""
        found = {}
        for each in wanted.objects:
            if wanted.input.sha256 and self._cache.has(wanted.input.sha256, each.size) is not None:
                found[each.key] = wanted.input.sha256
            elif kept := self._kept(wanted, each):
                found[each.key] = kept
        self._cache.lease(wanted.assignment.execution, sorted(set(found.values())))
        for digest in found.values():
            refuse_unwanted(wanted.input, digest)
        return found

    def _kept(self, wanted: WantedObjects, each: StoredObject) -> str | None:
        known = self._cache.known(wanted.store.name(each.key), wanted.assignment.project)
        if known is None or (known.version, known.size) != (each.version, each.size):
            return None
        return known.sha256

    async def _one(self, arrival: _Arrival, wanted: WantedObjects, each: StoredObject) -> str:
        """Have one object in the cache, leased; its SHA-256."""
        execution, store = wanted.assignment.execution, wanted.store
        name = store.name(each.key)
        async with self._fetching[name]:
            if (kept := await asyncio.to_thread(self._kept, wanted, each)) is not None:
                await asyncio.to_thread(self._cache.lease, execution, [kept])
                return kept
            part = part_place(self._cache.directory, name)
            digest = await arrival.patiently(
                lambda: self._side.mover.fetched(
                    store.url.bucket, each, store.access, part, lambda there: arrival.arrived(each.key, there)
                )
            )
            try:
                refuse_unwanted(arrival.input, digest)
            except ExecutionError:
                with suppress(OSError):
                    await asyncio.to_thread(MovedInput(part).forget)
                raise
            found = FoundInput(url=name, size=each.size, sha256=digest, version=each.version)
            await asyncio.to_thread(self._cache.take, MovedInput(part), found, execution)
        self._fetching.pop(name, None)
        return digest
