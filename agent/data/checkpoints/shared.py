"""Parts of checkpoints that several nodes of an attempt restore: each fetches a share, and gives it to the others.

What comes lies in the cache of inputs, from which each execution of the node gets a copy. Nobody holds it there: where
it goes because the disk is short of space, the other nodes fetch by themselves.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from agent.data.cache import GatheredInput, InputCache, place_of
from agent.data.checkpoints.kept import KeptParts, copied_file
from agent.data.shared.web_file import SMALLEST_SHARED
from agent.swarm.depot_origin import depot_as_origin
from agent.swarm.shelf import SwarmAccess
from agent.swarm.side import WantedContents, shared_objects
from muster.domain.data.checkpoint import NamedTree
from muster.domain.data.tree import ContentEntry, ContentTree, content_tree
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError
from muster.transfer.depot_client import DepotClient

log = logging.getLogger(__name__)

OpenDepot = Callable[[ExecutionId, str], AbstractAsyncContextManager[DepotClient]]
"""The depot, open for a tree of the checkpoint that an execution restores."""


@dataclass(frozen=True, slots=True)
class RestoredPart:
    """A part of a checkpoint that an execution restores."""

    named: NamedTree
    entries: Sequence[ContentEntry]
    """The files that it gets of it."""
    lacking: Sequence[ContentEntry]
    """Files of it that were not on the node."""

    @property
    def contents(self) -> ContentTree:
        """What the nodes call that they gather: those that want the same files gather the same."""
        return content_tree(self.entries)


@dataclass(slots=True)
class SharedParts:
    """Gathers one part at a time into the cache of a node."""

    kept: KeptParts
    cache: InputCache
    access: SwarmAccess
    depot: OpenDepot
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def gather(
        self, assignment: Assignment, part: RestoredPart, into: Path, told: Callable[[str], None]
    ) -> Sequence[ContentEntry]:
        """Have files below a directory with the help of the other nodes; those that are still to be fetched.

        Others find here from now on what this node has, until the execution is over. Raises UnavailableError, or
        another MusterError.
        """
        if assignment.node_count < 2 or part.contents.size < SMALLEST_SHARED:  # noqa: PLR2004 - there is no other node
            return part.lacking
        try:
            async with self._turn:
                await self._gather(assignment, part, told)
        except (ExecutionError, OSError) as error:
            about = {"execution": assignment.execution, "cause": str(error)}
            log.info("a part of a checkpoint is not shared", extra=about)
            return part.lacking
        return await asyncio.to_thread(self._still_lacking, part.lacking, into)

    async def _gather(self, assignment: Assignment, part: RestoredPart, told: Callable[[str], None]) -> None:
        objects, lacking = part.contents.objects, {each.content: each.size for each in part.lacking}
        by_content = {each.content: each for each in part.entries}

        def whole(digest: str) -> Path | None:
            entry = by_content[digest]
            kept = None if digest in lacking else self.kept.place(part.named.tree, entry)
            return kept or place_of(self.cache, digest, entry.size)

        if lacking:  # space for the cache, and for the execution
            await asyncio.to_thread(self.cache.make_space, 2 * sum(lacking.values()), "checkpoint")
        contents = WantedContents(
            objects=objects, directory=self.cache.directory / "parts", whole=whole, keep=self._keep
        )
        await shared_objects(
            self.access,
            assignment,
            part.named.tree,
            contents,
            depot_as_origin(self.depot(assignment.execution, part.named.tree)) if lacking else None,
            lambda detail, _: told(f"restoring a checkpoint: {detail}"),
        )

    def _keep(self, digest: str, gathered: Path) -> Path:
        return GatheredInput(gathered).keep(self.cache.place(digest))

    def _still_lacking(self, entries: Sequence[ContentEntry], into: Path) -> list[ContentEntry]:
        return [each for each in entries if not self._copied(each, into)]

    def _copied(self, entry: ContentEntry, into: Path) -> bool:
        with suppress(OSError):
            return copied_file(self.cache.place(entry.content), entry, into / entry.path)
        return False
