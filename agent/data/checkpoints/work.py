"""Stores parts of checkpoints in the depot, and restores them: from the node's own disk where it has them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from agent.data.checkpoints.in_stores import PartsInStores
from agent.data.checkpoints.kept import KeptParts
from agent.data.checkpoints.looking import CheckpointLook, looks
from agent.data.checkpoints.note import SeenCheckpoint, note_of, read_note, write_note
from agent.data.checkpoints.remembered import RememberedTrees
from agent.data.checkpoints.shared import RestoredPart, SharedParts
from agent.data.left_files import ReadFiles, read_left_files
from agent.executions.layout import ExecutionDirectory
from muster.domain.data.checkpoint import MOST_PART_FILES, CheckpointPass, CheckpointToRestore, NamedTree, StoredPart
from muster.domain.data.overlay import laid_over
from muster.domain.data.tree import ContentEntry, ContentTree, MalformedTreeError
from muster.domain.errors import ExhaustedError, MusterError, UnavailableError, UnknownNameError
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.quantity import counted, format_duration, size_text
from muster.rpc.channel import Credentials
from muster.transfer.bucket_faults import BucketRefusedError, NoObjectError
from muster.transfer.depot_client import DepotClient, reaching_depot
from muster.transfer.downloads import fetch_files
from muster.transfer.folder import FolderError
from muster.transfer.objects import WrongContentError
from muster.transfer.progress import adding_up

log = logging.getLogger(__name__)

RESTORE_PAUSE = 2.0
"""Seconds until a depot that was away is asked again for a checkpoint."""


def restore_fault(error: Exception) -> FailureKind:
    """Whether the checkpoint itself is to blame where it cannot be restored, or whoever was to give it."""
    if isinstance(error, ExecutionError):
        return error.kind
    damaged = isinstance(error, UnknownNameError | WrongContentError | MalformedTreeError | NoObjectError)
    if isinstance(error, BucketRefusedError) and not damaged:
        return FailureKind.DATA_REFUSED
    return FailureKind.CHECKPOINT if damaged else FailureKind.DATA


class CheckpointRefusedError(MusterError):
    """A checkpoint holds what cannot be stored, so that it would not be the same when it is restored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointWays:
    """The ways to the depot."""

    ask_to_save: Callable[[ExecutionId], Awaitable[CheckpointPass]]
    ask_for_tree: Callable[[ExecutionId, str], Awaitable[CheckpointPass]]
    coordinator: Callable[[], str]
    credentials: Callable[[], Credentials]

    @asynccontextmanager
    async def depot(self, execution: ExecutionId, tree: str) -> AsyncIterator[DepotClient]:
        """The depot, open for a tree of the checkpoint that an execution restores."""
        shown = (await self.ask_for_tree(execution, tree)).depot
        authority = self.credentials().authority
        async with reaching_depot(shown.depot, shown.ticket, self.coordinator(), authority) as depot:
            yield depot


@dataclass(slots=True)
class CheckpointWork:
    """What is done with the checkpoints of one node."""

    ways: CheckpointWays
    kept: KeptParts
    stores: PartsInStores
    trees: RememberedTrees = field(default_factory=RememberedTrees)
    """Trees of parts that executions here have stored or restored."""
    shared: SharedParts | None = None
    """None: nothing comes from other nodes."""

    async def restore(self, assignment: Assignment, directory: ExecutionDirectory, told: Callable[[str], None]) -> None:
        """Have the directory of checkpoints with all that an execution is to find; raises ExecutionError."""
        checkpoint, restore = assignment.role.checkpoint, assignment.restore
        assert checkpoint is not None, "nobody restores for a job that saves nothing"
        seen: dict[str, SeenCheckpoint] = {}
        try:
            await asyncio.to_thread(directory.checkpoint.mkdir, exist_ok=True)
            if restore is not None:
                async with asyncio.timeout(assignment.fetch.total_seconds()):
                    await self._patiently(assignment, restore, directory.checkpoint, told)
                seen = {
                    each.name: SeenCheckpoint(state=each.state, tree=restore.trees[0].tree)
                    for each in await asyncio.to_thread(looks, directory.checkpoint, "")
                }
            if assignment.saves:
                note = note_of(assignment.job, assignment.rank, checkpoint, assignment.stall)
                note.seen.update(seen)
                await asyncio.to_thread(write_note, directory.path, note)
        except TimeoutError:
            limit = format_duration(assignment.fetch)
            message = f"checkpoint: it was not here after {limit} (timeouts.fetch)"
            raise ExecutionError(FailureKind.DATA, message) from None
        except (MusterError, MalformedTreeError) as error:
            raise ExecutionError(restore_fault(error), f"checkpoint: {error}") from error
        except OSError as error:
            message = f"checkpoint: {error.filename or 'the disk of this node'}: {error.strerror}"
            raise ExecutionError(FailureKind.RUNTIME, message) from error

    async def store(
        self, execution: ExecutionId, directory: Path, look: CheckpointLook, owner: int | None
    ) -> StoredPart:
        """Store a checkpoint as it was at a look; its number is still to be given.

        Raises UnavailableError, CheckpointRefusedError, another MusterError, ExecutionError, or OSError.
        """
        shown = await self.ways.ask_to_save(execution)
        found = await asyncio.to_thread(
            partial(read_left_files, directory, owner, shown.depot.allowed, which=ReadFiles(entry=look.name))
        )
        for path, reason in found.left_out:
            raise CheckpointRefusedError(f"{path} is {reason}, so it would not be the same when it is restored")
        if (place := shown.place) is not None:
            if len(found.tree.entries) > MOST_PART_FILES:
                files = counted(len(found.tree.entries), "file")
                raise CheckpointRefusedError(f"it has {files}; {MOST_PART_FILES} are the most in a store, so pack them")
            await self.stores.send(place, found)
        authority = self.ways.credentials().authority
        to = shown.depot
        async with reaching_depot(to.depot, to.ticket, self.ways.coordinator(), authority) as depot:
            await (depot.send_tree(found.tree, found.files) if place is None else depot.send_list(found.tree))
        now = await asyncio.to_thread(looks, directory, "")
        if look.state not in {each.state for each in now if each.name == look.name}:
            raise FolderError(f"{look.name} changed while it was read")
        tree = found.tree
        self.trees.add(tree)
        return StoredPart(
            name=look.name, number=1, tree=tree.digest, size=len(tree.form), files=len(tree.entries), bytes=tree.size
        )

    async def tidy(self, execution: ExecutionId, number: int) -> bool:
        """Remove parts of a rank from a store that nobody needs any more; whether there is nothing more to do.

        Before the coordinator has heard of the newest part, which has this number, nobody knows what stays. Raises
        ExecutionError.
        """
        place = (await self.ways.ask_to_save(execution)).place
        if place is not None and place.told < number:
            return False
        if place is not None:
            await self.stores.clear(place, place.kept)
        return True

    def keep(self, directory: ExecutionDirectory) -> None:
        """Keep what the next attempt may want of an execution that has ended, as far as it is as it was stored."""
        note = read_note(directory.path)
        if note is None:
            return
        now = {each.name: each.state for each in looks(directory.checkpoint, "")}
        newest = sorted(note.seen.items(), key=lambda each: each[1].number)
        for name, seen in newest[-2:]:
            tree = self.trees.get(seen.tree) or self.kept.tree(seen.tree)
            if tree is not None and now.get(name) == seen.state:
                with suppress(OSError):
                    self.kept.keep(f"{note.job}.{note.rank}", tree, directory.checkpoint / name)
        for seen in note.seen.values():
            self.trees.drop(seen.tree)

    async def _patiently(
        self, assignment: Assignment, restore: CheckpointToRestore, into: Path, told: Callable[[str], None]
    ) -> None:
        while True:
            try:
                await self._restore(assignment, restore, into, told)
            except (UnavailableError, ExhaustedError) as error:
                told(f"waiting for the depot: {error}")
                log.warning("no checkpoint yet", extra={"execution": assignment.execution, "cause": str(error)})
            else:
                return
            await asyncio.sleep(RESTORE_PAUSE)

    async def _restore(
        self, assignment: Assignment, restore: CheckpointToRestore, into: Path, told: Callable[[str], None]
    ) -> None:
        execution = assignment.execution
        told(f"restoring checkpoint {restore.name}")
        trees = [await self._tree(execution, named) for named in restore.trees]
        whole = trees[0] if len(trees) == 1 else laid_over(trees[0], trees[1])
        left, fetched = list(whole.entries), 0
        for named, tree in zip(restore.trees, trees, strict=True):
            listed = set(tree.entries)
            own, left = [each for each in left if each in listed], [each for each in left if each not in listed]
            lacking: Sequence[ContentEntry] = await asyncio.to_thread(self._copied, named.tree, own, into)
            fetched += sum(each.size for each in lacking)
            if self.shared is not None and named == restore.of_first and not _in_store(assignment):
                lacking = await self.shared.gather(assignment, RestoredPart(named, own, lacking), into, told)
            if lacking:
                await self._fetch(assignment, named, lacking, into, told)
        for tree in trees:
            self.trees.add(tree)
        log.info(
            "checkpoint restored",
            extra={"execution": execution, "checkpoint": restore.name, "bytes": whole.size, "fetched": fetched},
        )

    def _copied(self, digest: str, entries: Sequence[ContentEntry], into: Path) -> list[ContentEntry]:
        """Copy what is kept here; what is not."""
        return [each for each in entries if not self.kept.copy(digest, each, into)]

    async def _tree(self, execution: ExecutionId, named: NamedTree) -> ContentTree:
        known = self.trees.get(named.tree) or await asyncio.to_thread(self.kept.tree, named.tree)
        if known is not None:
            return known
        async with self.ways.depot(execution, named.tree) as depot:
            return await depot.tree(named.tree, named.size)

    async def _fetch(
        self,
        assignment: Assignment,
        named: NamedTree,
        entries: Sequence[ContentEntry],
        into: Path,
        told: Callable[[str], None],
    ) -> None:
        def progress(done: int, total: int) -> None:
            told(f"restoring a checkpoint: {size_text(done)} of {size_text(total)}")

        arrived = adding_up(sum(each.size for each in entries), progress)
        if _in_store(assignment):
            shown = await self.ways.ask_for_tree(assignment.execution, named.tree)
            if shown.place is None:
                raise UnknownNameError("nobody says in which store it is")
            await self.stores.fetch(shown.place, named.tree, entries, into, arrived)
            return
        async with self.ways.depot(assignment.execution, named.tree) as depot:
            await fetch_files(depot, entries, into, arrived)


def _in_store(assignment: Assignment) -> bool:
    checkpoint = assignment.role.checkpoint
    return checkpoint is not None and bool(checkpoint.to)
