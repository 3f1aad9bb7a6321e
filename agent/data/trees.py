"""Fetches outputs of other jobs as inputs: content trees of the depot, each object once for a node."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agent.data.cache import GatheredInput, InputCache, place_of
from agent.data.held import HeldFile, HeldInput
from agent.data.parts import part_of
from agent.swarm.depot_origin import depot_as_origin
from agent.swarm.shelf import SwarmAccess
from agent.swarm.side import WantedContents, shared_objects
from muster.domain.data.job_input import JobInput
from muster.domain.data.job_source import InputTree
from muster.domain.data.output_metadata import OutputMetadata, metadata_files, read_metadata
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

MOST_INPUT_METADATA = 4 * 1024 * 1024
"""Bytes of what jobs say of their outputs that are read for one input."""

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

    def __init__(
        self,
        cache: InputCache,
        access: TreeAccess,
        clock: Callable[[], float] = time.monotonic,
        swarms: SwarmAccess | None = None,
    ) -> None:
        """`swarms`: None: nothing comes from other nodes."""
        self._cache = cache
        self._swarms = swarms
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
                return await self._once(assignment, each, progress)
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

    async def _once(self, assignment: Assignment, each: JobInput, progress: Callable[[str], None]) -> HeldInput:
        execution = assignment.execution
        await asyncio.to_thread(self._cache.lease, execution, [source.tree for source in each.trees])
        trees = [await self._form(execution, source) for source in each.trees]
        wanted = [wanted_of(each, source, tree) for source, tree in zip(each.trees, trees, strict=True)]
        told = dict(zip(each.trees, metadata_of(trees), strict=True))
        if not any(wanted):
            raise ExecutionError(FailureKind.DATA_REFUSED, _nothing(each, trees))
        parts = parts_of(assignment, each, wanted, told)
        whole = content_tree(entry for part in parts for entry in part)
        needed = {found.digest: found for found in whole.objects}
        for entry in (entry for entries in told.values() for entry in entries):
            needed[entry.content] = ContentObject(digest=entry.content, size=entry.size)
        await asyncio.to_thread(self._cache.lease, execution, list(needed))
        lacking = await asyncio.to_thread(self._lacking, needed.values())
        total = sum(found.size for found in lacking.values())
        await asyncio.to_thread(self._cache.make_space, total, each.name)
        start = self._arrived

        def arrived(count: int) -> None:
            self._arrived += count
            progress(f"fetching input {each.name} {size_text(self._arrived - start)} of {size_text(total)}")

        for source, part in zip(each.trees, parts, strict=True):
            contents = {entry.content: None for entry in (*part, *told[source])}
            objects = [needed[digest] for digest in contents]
            if await self._together(assignment, each, source, objects, progress):
                lacking = await asyncio.to_thread(self._lacking, lacking.values())
            some = [lacking.pop(digest) for digest in contents if digest in lacking]
            if some:
                await self._fill(execution, source, some, arrived)
        directory = await asyncio.to_thread(self._cache.shown_tree, whole)
        if total:
            log.info("outputs fetched as an input", extra={"execution": execution, "bytes": total})
        said = [
            await asyncio.to_thread(self._said, tree, told[source])
            for source, tree in zip(each.trees, trees, strict=True)
        ]
        return HeldInput(directory=directory, files=tuple(_listed(each, parts, said)))

    async def _together(
        self,
        assignment: Assignment,
        each: JobInput,
        source: InputTree,
        objects: Sequence[ContentObject],
        progress: Callable[[str], None],
    ) -> bool:
        """Have objects in the cache with the help of the other nodes that want them; False: nothing was done."""
        if self._swarms is None or each.split:
            return False  # no other execution has the same part
        sizes = {found.digest: found.size for found in objects}
        contents = WantedContents(
            objects=objects,
            directory=self._cache.directory / "parts",
            whole=lambda digest: place_of(self._cache, digest, sizes[digest]),
            keep=self._keep,
        )
        before = 0

        def told(detail: str, there: int) -> None:
            nonlocal before
            self._arrived += max(0, there - before)
            before = there
            progress(f"fetching input {each.name} {detail}")

        origin = depot_as_origin(self._depot(assignment.execution, source))
        return await shared_objects(self._swarms, assignment, each.shared_as(source.tree), contents, origin, told)

    def _said(self, tree: ContentTree, told: Sequence[ContentEntry]) -> OutputMetadata:
        """What some files of a tree, which are here, say of its other files."""
        contents = []
        for entry in told:
            content = self._cache.content(entry.content)
            if content is None:
                raise UnavailableError(f"{entry.path} was changed on this node after it came")
            contents.append((entry.path, content))
        return read_metadata(contents, frozenset(entry.path for entry in tree.entries))

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
        async with self._depot(execution, source) as depot:
            for at in range(0, len(some), OBJECTS_TOGETHER):
                await self._fill_some(depot, some[at : at + OBJECTS_TOGETHER], told)

    def _keep(self, digest: str, gathered: Path) -> Path:
        return GatheredInput(gathered).keep(self._cache.place(digest))

    @asynccontextmanager
    async def _depot(self, execution: ExecutionId, source: InputTree) -> AsyncIterator[DepotClient]:
        """The depot, open for a tree."""
        shown = await self._access.ask(execution, source.tree)
        authority = self._access.credentials().authority
        async with reaching_depot(shown.depot, shown.ticket, self._access.coordinator(), authority) as depot:
            yield depot

    async def _fill_some(self, depot: DepotClient, some: Sequence[ContentObject], told: Callable[[int], None]) -> None:
        with ExitStack() as open_ones:
            arriving = [
                open_ones.enter_context(await asyncio.to_thread(self._cache.arriving, each.digest, each.size))
                for each in some
            ]
            await depot.fill(arriving, told)
        await asyncio.to_thread(self._cache.keep_arrived, [each.digest for each in some])

    def _lacking(self, needed: Iterable[ContentObject]) -> dict[str, ContentObject]:
        return {each.digest: each for each in needed if self._cache.has(each.digest, each.size) is None}


def wanted_of(each: JobInput, source: InputTree, tree: ContentTree) -> tuple[ContentEntry, ...]:
    """What a job wants of the outputs of one execution, with its place in the input."""
    patterns = [name_pattern(text) for text in each.only]
    return tuple(
        placed_in(source, entry)
        for entry in tree.entries
        if not entry.is_link and (not patterns or any(pattern.matches(entry.path) for pattern in patterns))
    )


def parts_of(
    assignment: Assignment,
    each: JobInput,
    wanted: Sequence[Sequence[ContentEntry]],
    told: Mapping[InputTree, Sequence[ContentEntry]],
) -> Sequence[Sequence[ContentEntry]]:
    """What one execution gets of what its job wants of each tree; parts have no files that tell of others."""
    if not each.split:
        return wanted
    telling = {placed_in(source, entry).path for source, entries in told.items() for entry in entries}
    files = {entry.path: entry for entries in wanted for entry in entries if entry.path not in telling}
    kept = part_of(assignment, each, files)
    return [[entry for entry in entries if entry.path in kept] for entries in wanted]


def placed_in(source: InputTree, entry: ContentEntry) -> ContentEntry:
    """A file of what an execution has left, with its place in the input."""
    return replace(entry, path=f"{source.below}/{entry.path}") if source.below else entry


def metadata_of(trees: Sequence[ContentTree]) -> Sequence[Sequence[ContentEntry]]:
    """The files of each tree that tell of others, also where a job does not want them; of all no more than is read."""
    left, found = MOST_INPUT_METADATA, list[Sequence[ContentEntry]]()
    for tree in trees:
        found.append(metadata_files(tree.entries, left))
        left -= sum(entry.size for entry in found[-1])
    return found


def _listed(
    each: JobInput, parts: Sequence[Sequence[ContentEntry]], said: Sequence[OutputMetadata]
) -> Iterable[HeldFile]:
    """The files of an input with what is said of them; those that say it are not listed themselves."""
    base = each.source.removesuffix("/*")
    for source, part, metadata in zip(each.trees, parts, said, strict=True):
        for entry in part:
            path = entry.path.removeprefix(f"{source.below}/") if source.below else entry.path
            if path not in metadata.read:
                yield HeldFile(
                    path=entry.path,
                    size=entry.size,
                    sha256=entry.content,
                    uri=f"{base}/{entry.path}",
                    metadata=metadata.of_files.get(path, {}),
                )


def _nothing(each: JobInput, trees: Sequence[ContentTree]) -> str:
    there = [entry.path for tree in trees for entry in tree.entries]
    some = ", ".join(there[:FILES_NAMED])
    return (
        f"inputs.{each.name}: none of the outputs of {each.source} is {' or '.join(each.only)} (only); there are "
        f"{counted(len(there), 'file')}, such as {some}"
    )
