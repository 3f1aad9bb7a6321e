"""Fetches outputs of other jobs as inputs: content trees of the depot, each object once for a node."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from agent.data.cache import InputCache
from agent.data.held import HeldFile, HeldInput
from muster.domain.data.job_input import JobInput
from muster.domain.data.job_source import InputTree
from muster.domain.data.pattern import name_pattern
from muster.domain.data.tree import (
    ContentEntry,
    ContentObject,
    ContentTree,
    MalformedTreeError,
    content_tree,
    read_content_tree,
)
from muster.domain.data.upload import DepotPass
from muster.domain.errors import MusterError, UnavailableError
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.quantity import counted, format_duration, size_text
from muster.rpc.channel import Credentials
from muster.transfer.depot_client import DepotClient, reaching_depot

log = logging.getLogger(__name__)

DEPOT_PAUSES = (1.0, 2.0, 5.0, 15.0)
"""Seconds until a depot that was away is asked again for inputs; the last one again and again."""

OBJECTS_TOGETHER = 256
"""Objects of an input in one question to the depot."""

FILES_NAMED = 3
"""Files of which people are told the names where none is what a job wants."""

AskForTree = Callable[[ExecutionId, str], Awaitable[DepotPass]]
"""What opens the depot for a tree of the inputs of an execution; raises ExecutionError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeAccess:
    """How a node gets at the trees of the depot."""

    ask: AskForTree
    coordinator: Callable[[], str]
    """The address at which the coordinator was reached."""
    credentials: Callable[[], Credentials]


class TreeFetching:
    """Fetches one input at a time into the cache of a node: the next may need the same."""

    def __init__(self, cache: InputCache, access: TreeAccess, clock: Callable[[], float] = time.monotonic) -> None:
        self._cache = cache
        self._access = access
        self._clock = clock
        self._turn = asyncio.Lock()
        self._arrived = 0
        """Bytes that have come since the agent was started."""

    async def fetch(self, assignment: Assignment, each: JobInput, progress: Callable[[str], None]) -> HeldInput:
        """Have outputs of a job on this node, and ask again after breaks as long as bytes come.

        Raises ExecutionError where they cannot be had, and OSError where the disk does not take them.
        """
        async with self._turn:
            return await self._patiently(assignment, each, progress)

    async def _patiently(self, assignment: Assignment, each: JobInput, progress: Callable[[str], None]) -> HeldInput:
        stall, last, tries = assignment.stall.total_seconds(), self._clock(), 0
        while True:
            before = self._arrived
            try:
                return await self._once(assignment.execution, each, progress)
            except UnavailableError as error:
                if self._arrived > before:
                    last, tries = self._clock(), 0
                pause = DEPOT_PAUSES[min(tries, len(DEPOT_PAUSES) - 1)]
                progress(f"waiting for input {each.name}: {error}")
                log.warning("an input is away", extra={"execution": assignment.execution, "cause": str(error)})
                if self._clock() + pause - last > stall:
                    message = (
                        f"inputs.{each.name}: {error}; no byte came in {format_duration(assignment.stall)} "
                        "(timeouts.stall)"
                    )
                    raise ExecutionError(FailureKind.DATA, message) from None
            except (MusterError, MalformedTreeError) as error:
                raise ExecutionError(FailureKind.DATA_REFUSED, f"inputs.{each.name}: {error}") from error
            await asyncio.sleep(pause)
            tries += 1

    async def _once(self, execution: ExecutionId, each: JobInput, progress: Callable[[str], None]) -> HeldInput:
        await asyncio.to_thread(self._cache.lease, execution, [source.tree for source in each.trees])
        trees = [await self._form(execution, source) for source in each.trees]
        parts = [wanted_of(each, source, tree) for source, tree in zip(each.trees, trees, strict=True)]
        whole = content_tree(entry for part in parts for entry in part)
        if not whole.entries:
            raise ExecutionError(FailureKind.DATA_REFUSED, _nothing(each, trees))
        await asyncio.to_thread(self._cache.lease, execution, [found.digest for found in whole.objects])
        lacking = await asyncio.to_thread(self._lacking, whole)
        total = sum(found.size for found in lacking.values())
        await asyncio.to_thread(self._cache.make_space, total, each.name)
        start = self._arrived

        def arrived(count: int) -> None:
            self._arrived += count
            progress(f"fetching input {each.name} {size_text(self._arrived - start)} of {size_text(total)}")

        for source, part in zip(each.trees, parts, strict=True):
            some = [lacking.pop(digest) for digest in {entry.content: None for entry in part} if digest in lacking]
            if some:
                await self._fill(execution, source, some, arrived)
        directory = await asyncio.to_thread(self._cache.shown_tree, whole)
        if total:
            log.info("outputs fetched as an input", extra={"execution": execution, "bytes": total})
        return HeldInput(directory=directory, files=tuple(_listed(each, whole)))

    async def _form(self, execution: ExecutionId, source: InputTree) -> ContentTree:
        """A tree by its name, from the cache if it is there."""
        kept = await asyncio.to_thread(self._cache.content, source.tree)
        if kept is None:
            await self._fill(execution, source, [ContentObject(digest=source.tree, size=source.size)], lambda _: None)
            kept = await asyncio.to_thread(self._cache.content, source.tree)
        if kept is None:
            raise UnavailableError("its list of files was changed on this node after it came")
        return read_content_tree(kept)

    async def _fill(
        self, execution: ExecutionId, source: InputTree, some: Sequence[ContentObject], told: Callable[[int], None]
    ) -> None:
        """Have objects in the cache, each from where it was left."""
        shown = await self._access.ask(execution, source.tree)
        authority = self._access.credentials().authority
        async with reaching_depot(shown.depot, shown.ticket, self._access.coordinator(), authority) as depot:
            for at in range(0, len(some), OBJECTS_TOGETHER):
                await self._fill_some(depot, some[at : at + OBJECTS_TOGETHER], told)

    async def _fill_some(self, depot: DepotClient, some: Sequence[ContentObject], told: Callable[[int], None]) -> None:
        with ExitStack() as open_ones:
            arriving = [
                open_ones.enter_context(await asyncio.to_thread(self._cache.arriving, each.digest, each.size))
                for each in some
            ]
            await depot.fill(arriving, told)
        await asyncio.to_thread(self._cache.keep_arrived, [each.digest for each in some])

    def _lacking(self, whole: ContentTree) -> dict[str, ContentObject]:
        return {each.digest: each for each in whole.objects if self._cache.has(each.digest, each.size) is None}


def wanted_of(each: JobInput, source: InputTree, tree: ContentTree) -> tuple[ContentEntry, ...]:
    """What a job wants of the outputs of one execution, with its place in the input."""
    patterns = [name_pattern(text) for text in each.only]
    return tuple(
        replace(entry, path=f"{source.below}/{entry.path}") if source.below else entry
        for entry in tree.entries
        if not entry.is_link and (not patterns or any(pattern.matches(entry.path) for pattern in patterns))
    )


def _listed(each: JobInput, whole: ContentTree) -> Iterable[HeldFile]:
    base = each.source.removesuffix("/*")
    for entry in whole.entries:
        yield HeldFile(path=entry.path, size=entry.size, sha256=entry.content, uri=f"{base}/{entry.path}")


def _nothing(each: JobInput, trees: Sequence[ContentTree]) -> str:
    there = [entry.path for tree in trees for entry in tree.entries]
    some = ", ".join(there[:FILES_NAMED])
    return (
        f"inputs.{each.name}: none of the outputs of {each.source} is {' or '.join(each.only)} (only); there are "
        f"{counted(len(there), 'file')}, such as {some}"
    )
