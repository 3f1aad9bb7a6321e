"""Fetches the inputs of executions: each once for a node, and the same bytes for all ranks and attempts."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace

from agent.data.agreed import AskForInputs, AskForKeys, no_more_came, refuse_unwanted, what_counts, what_opens
from agent.data.bucket_inputs import BucketFetching, BucketSide
from agent.data.cache import ArrivingInput, InputCache, laid_out
from agent.data.held import HeldFile, HeldInput
from agent.data.several import files_of_several
from agent.data.shared.web_file import SharedFile, WantedFile, kept_as
from agent.data.trees import TreeAccess, TreeFetching
from agent.executions.file_faults import data_fault
from agent.swarm.gathering import OriginAwayError
from agent.swarm.shelf import SwarmAccess
from muster.domain.data.job_input import FoundInput, JobInput, without_query
from muster.domain.fleet.secret import SecretKind
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.quantity import format_duration, size_text
from muster.transfer.web_access import WebAccess, WebAccessError, web_access
from muster.transfer.web_file import FileAwayError, FileRefusedError, PartHere, WebFile, is_strong

log = logging.getLogger(__name__)

FETCH_PAUSE = 1.0
"""Seconds until a server that had no answer is asked again; doubled each time, up to LONGEST_FETCH_PAUSE."""
LONGEST_FETCH_PAUSE = 30.0
DISK_LOOK = 64 * 1024 * 1024
"""Bytes of a file of unknown size after which the disk is looked at again."""

Told = Callable[[str], None]


class InputFetching:
    """Fetches inputs into the cache of a node."""

    def __init__(
        self,
        cache: InputCache,
        ask: AskForInputs,
        keys: AskForKeys,
        trees: TreeAccess | None = None,
        buckets: BucketSide | None = None,
        swarms: SwarmAccess | None = None,
    ) -> None:
        """Without `trees` nothing comes from other jobs, without `buckets` from stores, without `swarms` from nodes."""
        clock = time.monotonic
        self.cache = cache
        self._shared = None if swarms is None else SharedFile(cache, swarms)
        self._buckets = None if buckets is None else BucketFetching(cache, buckets, clock, swarms)
        self._trees = None if trees is None else TreeFetching(cache, trees, clock, swarms)
        self._ask = ask
        self._keys = keys
        self._clock = clock
        self._fetching: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Held by whoever fetches a URL; the others find it in the cache."""

    async def fetch(self, assignment: Assignment, progress: Told) -> Mapping[str, HeldInput]:
        """Have the inputs of an execution on this node: where each lies, and what it holds. Raises ExecutionError."""
        try:
            async with asyncio.timeout(assignment.fetch.total_seconds()):
                return {each.name: await self._held(assignment, each, progress) for each in assignment.role.inputs}
        except TimeoutError:
            limit = format_duration(assignment.fetch)
            message = f"inputs: they were not all here after {limit} (timeouts.fetch)"
            raise ExecutionError(FailureKind.DATA, message) from None

    async def _held(self, assignment: Assignment, each: JobInput, progress: Told) -> HeldInput:
        try:
            if each.urls:
                files = await files_of_several(assignment, each, self._file, self._buckets, progress)
            elif each.url and not each.is_in_bucket:
                files = [await self._file(assignment, each, progress)]
            elif (way := self._buckets if each.url else self._trees) is not None:
                return await way.fetch(assignment, each, progress)
            else:
                raise ExecutionError(FailureKind.RUNTIME, f"inputs.{each.name}: this agent has no way to it")
            return await asyncio.to_thread(laid_out, self.cache, assignment.execution, files)
        except OSError as error:
            raise data_fault(f"inputs.{each.name}", error) from error

    async def _file(self, assignment: Assignment, each: JobInput, progress: Told) -> HeldFile:
        """Have the file of one URL in the cache."""
        found = await self._one(assignment, each, progress)
        return HeldFile(path=each.file_name, size=found.size, sha256=found.sha256, uri=each.url)

    async def _one(self, assignment: Assignment, each: JobInput, progress: Told) -> FoundInput:
        async with self._fetching[kept_as(assignment, each)]:
            counts = await what_counts(self._ask, assignment.execution, each.origin, ())
            expected = counts.sha256 if counts is not None else each.sha256
            try:
                size = await asyncio.to_thread(self.cache.has, expected) if expected else None
                if size is not None:
                    found = counts or FoundInput(url=each.origin, size=size, sha256=expected)
                    await asyncio.to_thread(self.cache.lease, assignment.execution, [expected])
                    if self._shared is not None and not each.split:
                        await self._shared.offer(assignment, each, found)
                else:
                    found = await self._patiently(assignment, each, counts, progress)
            except FileRefusedError as error:
                raise ExecutionError(FailureKind.DATA_REFUSED, f"inputs.{each.name}: {error}") from None
            except OSError as error:
                raise data_fault(f"inputs.{each.name}", error) from error
            refuse_unwanted(each, found.sha256)
            counts = counts or await what_counts(self._ask, assignment.execution, each.origin, (found,))
            _refuse_other(each, counts, found)
        return found

    async def _patiently(
        self, assignment: Assignment, each: JobInput, counts: FoundInput | None, progress: Told
    ) -> FoundInput:
        """Fetch a file, and ask again after breaks as long as bytes come."""
        access = await self._opened(assignment.execution, each)
        stall, pause, last, arrived = assignment.stall.total_seconds(), FETCH_PAUSE, self._clock(), -1
        while True:
            wanted = WantedFile(assignment, each, counts, access)
            fetch = _Fetch(self.cache, wanted, progress)
            try:
                return await self._together(wanted, progress) or await fetch.run()
            except (FileAwayError, OriginAwayError) as error:
                there = self._shared.arrived if isinstance(error, OriginAwayError) and self._shared else fetch.arrived
                if there > max(arrived, 0):
                    pause, last = FETCH_PAUSE, self._clock()
                arrived = there
                progress(f"waiting for input {each.name}: {error}")
                log.warning("an input is away", extra={"execution": assignment.execution, "cause": str(error)})
                if self._clock() + pause - last > stall:
                    raise no_more_came(each, error, max(arrived, 0), assignment.stall) from None
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_FETCH_PAUSE)

    async def _opened(self, execution: ExecutionId, each: JobInput) -> WebAccess:
        """What is shown to the server of a file, which nobody has beyond the fetch; raises ExecutionError."""
        if not each.secret:
            return WebAccess()
        values = await what_opens(self._keys, execution, each, SecretKind.HTTP)
        try:
            return web_access(each.secret, values)
        except WebAccessError as error:
            raise ExecutionError(FailureKind.DATA_REFUSED, f"inputs.{each.name}: {error}") from None

    async def _together(self, wanted: WantedFile, progress: Told) -> FoundInput | None:
        """The file with the help of the other nodes that want it; None: this node fetches it by itself."""
        if self._shared is None or wanted.input.split:
            return None  # no other execution has the same part
        return await self._shared.fetch(wanted, progress)


class _Fetch:
    """One attempt to fetch a file, in a thread."""

    def __init__(self, cache: InputCache, wanted: WantedFile, progress: Told) -> None:
        self._cache = cache
        self._execution = wanted.assignment.execution
        self._input = wanted.input
        self._counts = wanted.counts
        self._access = wanted.access
        self._name = wanted.kept_as
        self._patience = wanted.assignment.stall.total_seconds()
        self._project = wanted.assignment.project
        self._progress = progress
        self._file: WebFile | None = None
        self._stopped = False
        self.arrived = 0
        """Bytes that are here."""

    async def run(self) -> FoundInput:
        """Fetch it; whoever cancels waits until the thread has let go of the file."""
        loop = asyncio.get_running_loop()
        work = asyncio.ensure_future(asyncio.to_thread(self._run, loop))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            self._stopped = True
            if self._file is not None:
                self._file.stop()
            await asyncio.wait([work])
            if not work.cancelled():
                work.exception()
            raise

    def _run(self, loop: asyncio.AbstractEventLoop) -> FoundInput:
        with closing(self._cache.part(self._name)) as part:
            self.arrived = part.offset
            known = self._cache.known(self._name, self._project)
            kept = "" if known is None else known.version
            here = PartHere(offset=part.offset, version=part.version, whole=kept)
            with WebFile(self._input.url, here, self._patience, self._access) as file:
                self._file = file
                if known is not None and (file.unchanged or (file.version, file.size) == (kept, known.size)):
                    self._cache.lease(self._execution, [known.sha256])
                    return replace(known, url=self._input.origin)
                self._refuse_changed(file)
                return self._received(file, part, loop)

    def _received(self, file: WebFile, part: ArrivingInput, loop: asyncio.AbstractEventLoop) -> FoundInput:
        if file.offset == 0:
            part.begin_anew(file.version if is_strong(file.version) else "")
        self._cache.make_space(max(0, (file.size or 0) - part.offset), self._input.name)
        shown = looked = part.offset
        self._tell(loop, part.offset, file.size)
        while not self._stopped and (data := file.read()):
            part.write(data)
            self.arrived = part.offset
            if part.offset - shown >= max(len(data), (file.size or 0) // 100):
                shown = part.offset
                self._tell(loop, part.offset, file.size)
            if file.size is None and part.offset - looked >= DISK_LOOK:
                looked = part.offset
                self._cache.make_space(DISK_LOOK, self._input.name)
        if self._stopped or (file.size is not None and part.offset < file.size):
            raise FileAwayError(f"{without_query(file.url)} broke off after {size_text(part.offset)}")
        if file.size is not None and part.offset > file.size:
            part.forget()
            raise FileAwayError(f"{without_query(file.url)} sends more than the {file.size} bytes that it announced")
        found = FoundInput(url=self._input.origin, size=part.offset, sha256=part.sha256, version=file.version)
        self._cache.take(part, replace(found, url=self._name), self._execution)
        log.info("input fetched", extra={"execution": self._execution, "sha256": found.sha256, "bytes": found.size})
        return found

    def _refuse_changed(self, file: WebFile) -> None:
        """Raise FileRefusedError where the server says that it is not what the job began with."""
        was = self._counts
        if was is None:
            return
        other_size = file.size is not None and file.size != was.size
        if other_size or (was.version and file.version and file.version != was.version):
            now = (
                f"{'unknown size' if file.size is None else f'{file.size} bytes'}, version {file.version or 'unknown'}"
            )
            raise FileRefusedError(
                f"{without_query(file.url)} has changed since this job began with {was.size} bytes, version "
                f"{was.version or 'unknown'}: {now}; submit the job again for the new one"
            )

    def _tell(self, loop: asyncio.AbstractEventLoop, done: int, total: int | None) -> None:
        of = "" if total is None else f" of {size_text(total)}"
        loop.call_soon_threadsafe(self._progress, f"fetching input {self._input.name} {size_text(done)}{of}")


def _refuse_other(each: JobInput, counts: FoundInput | None, found: FoundInput) -> None:
    if counts is not None and counts.sha256 != found.sha256:
        message = (
            f"inputs.{each.name}: {without_query(each.url)} holds {found.sha256} here, and {counts.sha256} where this "
            "job read it first: it changes while it is read; submit the job again once it does not"
        )
        raise ExecutionError(FailureKind.DATA_REFUSED, message)
