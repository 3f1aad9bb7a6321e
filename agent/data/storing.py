"""Stores what executions leave: read, sent to the depot or a store, and told only once all of it is there."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from agent.data.bucket_outputs import STORE_ANSWERS, BucketSending
from agent.data.left_files import LeftFiles, ReadFiles, read_left_files
from agent.data.live.note import NOTHING_STORED, LiveNote, read_live_note, write_live_note
from agent.data.live.place import OutputsPlace
from agent.data.mover.mover import Mover
from muster.domain.data.output_terms import OutputTerms
from muster.domain.data.outputs import (
    LARGEST_OUTPUTS,
    UNWANTED_OUTPUTS,
    ExecutionOutputs,
    OutputsPass,
    OutputsStage,
    left_out_text,
)
from muster.domain.data.tree import ContentTree
from muster.domain.data.upload import DepotPass
from muster.domain.errors import ExhaustedError, MusterError, UnavailableError
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError
from muster.domain.quantity import size_text
from muster.rpc.channel import Credentials
from muster.transfer.bucket_faults import BucketAwayError
from muster.transfer.depot_client import reaching_depot
from muster.transfer.folder import FolderError
from muster.transfer.store_access import store_access

log = logging.getLogger(__name__)

AskToStore = Callable[[ExecutionId], Awaitable[OutputsPass]]
"""What opens the depot to those outputs of an execution that are wanted; raises ExecutionError."""

STORED_TOGETHER = 2
"""Executions of a node whose outputs are stored at the same time."""

STORE_PAUSES = (1.0, 5.0, 15.0, 30.0)
"""Seconds until a depot that was away is tried again; the last one again and again."""

WRITABLE = 0o222
"""Permissions that a file does not have that is stored while user code runs."""

READ_AGAIN = 3
"""How often outputs are read anew that change while they are sent."""


class OutputsStoring:
    """Stores the outputs of a few executions at a time."""

    def __init__(self, ask: AskToStore, coordinator: Callable[[], str], credentials: Callable[[], Credentials]) -> None:
        self._ask = ask
        self._coordinator = coordinator
        self._credentials = credentials
        self._turns = asyncio.Semaphore(STORED_TOGETHER)
        self._to_store = BucketSending(Mover())
        self._live: defaultdict[ExecutionId, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Executions some of whose outputs are being stored while user code runs; the rest waits for that."""

    async def store(
        self, execution: ExecutionId, place: OutputsPlace, told: Callable[[ExecutionOutputs], None]
    ) -> ExecutionOutputs:
        """Store all of it, for as long as the coordinator wants it here; what became of it, whatever happens."""
        before = NOTHING_STORED
        try:
            async with self._live[execution], self._turns:
                before = await asyncio.to_thread(_noted, place)
                return await self._insist(execution, place, before, told)
        except (MusterError, ExecutionError) as error:
            return _on_node(before, str(error))
        except OSError as error:
            named = error.filename or place.directory.name
            return _on_node(before, f"{named}: {(error.strerror or str(error)).lower()}")
        finally:
            self._live.pop(execution, None)

    async def store_live(
        self, execution: ExecutionId, place: OutputsPlace, terms: OutputTerms
    ) -> ExecutionOutputs | None:
        """Store what nobody may write to any more; what is stored so far, None: nothing.

        Raises UnavailableError, another MusterError, ExecutionError or OSError.
        """
        async with self._live[execution]:
            return await self._store_live(execution, place, terms)

    async def _store_live(
        self, execution: ExecutionId, place: OutputsPlace, terms: OutputTerms
    ) -> ExecutionOutputs | None:
        assert place.note is not None, "nobody would know later what is stored"
        before = await asyncio.to_thread(_noted, place)
        read = partial(
            read_left_files,
            place.directory,
            place.owner,
            LARGEST_OUTPUTS,
            terms,
            ReadFiles(without=WRITABLE, known=before.known),
        )
        found = await asyncio.to_thread(read)
        after = before.with_found(found)
        if after == before:
            return after.outputs
        if after.entries != before.entries:
            shown = await self._ask(execution)
            if shown.depot is None:
                return before.outputs
            _refuse_too_much(after, shown.depot.allowed)
            if not shown.terms.to:
                after = (await self._still_there(shown.depot, before, found)).with_found(found)
            try:
                async with self._turns:
                    await self._send(shown, shown.depot, found, before, after.tree)
            except BucketAwayError as error:
                raise UnavailableError(str(error)) from error
        await asyncio.to_thread(write_live_note, place.note, after)
        log.info("outputs are stored while user code runs", extra={"execution": execution, "files": len(after.entries)})
        return after.outputs

    @staticmethod
    def stored_live(place: OutputsPlace) -> ExecutionOutputs | None:
        """What is noted as stored while user code runs."""
        return _noted(place).outputs

    async def _still_there(self, depot: DepotPass, before: LiveNote, found: LeftFiles) -> LiveNote:
        """What was noted, without what has gone from the directory and, against all rules, from the depot as well."""
        gone = [each for each in before.tree.objects if each.digest not in found.files]
        if not gone:
            return before
        authority = self._credentials().authority
        async with reaching_depot(depot.depot, depot.ticket, self._coordinator(), authority) as client:
            return before.without_digests(frozenset(await client.missing(gone)))

    async def _insist(
        self, execution: ExecutionId, place: OutputsPlace, before: LiveNote, told: Callable[[ExecutionOutputs], None]
    ) -> ExecutionOutputs:
        """Try until the depot has it: again after a pause while it is away, and anew where something has changed."""
        found: LeftFiles | None = None
        away = changed = 0
        while True:
            shown = await self._ask(execution)
            if (depot := shown.depot) is None:
                return UNWANTED_OUTPUTS
            try:
                if found is None:
                    read = partial(read_left_files, place.directory, place.owner, depot.allowed, shown.terms)
                    found = await asyncio.to_thread(partial(read, which=ReadFiles(known=before.known)))
                    if not shown.terms.to:
                        before = await self._still_there(depot, before, found)
                    all_of_it = before.with_found(found)
                    told(_counted(_so_far(before, OutputsStage.STORING), found, all_of_it.tree))
                if all_of_it.entries:
                    await self._send(shown, depot, found, before, all_of_it.tree)
            except (UnavailableError, BucketAwayError) as error:
                log.warning("outputs are not stored yet", extra={"execution": execution, "cause": str(error)})
                await asyncio.sleep(STORE_PAUSES[min(away, len(STORE_PAUSES) - 1)])
                away += 1
            except (FolderError, OSError):
                found, changed = None, changed + 1
                if changed >= READ_AGAIN:
                    raise
            else:
                return _stored(found, all_of_it.tree)

    async def _send(
        self, shown: OutputsPass, depot: DepotPass, found: LeftFiles, before: LiveNote, tree: ContentTree
    ) -> None:
        """Have all of it where it goes: in the depot, or in a store and the list of it in the depot.

        `before` is what is there already, and `tree` all of it.
        """
        if shown.terms.to:
            access = store_access(shown.terms.secret, shown.opens, STORE_ANSWERS)
            await self._to_store.send(shown.terms.to, access, found, frozenset(before.entries.values()))
        authority = self._credentials().authority
        async with reaching_depot(depot.depot, depot.ticket, self._coordinator(), authority) as client:
            if shown.terms.to:
                await client.send_list(tree)
            else:
                await client.send_tree(tree, found.files)


def _noted(place: OutputsPlace) -> LiveNote:
    return NOTHING_STORED if place.note is None else read_live_note(place.note)


def _refuse_too_much(note: LiveNote, allowed: int) -> None:
    size = sum(each.size for each in note.entries.values())
    if size > allowed:
        raise ExhaustedError(f"they are more than the {size_text(allowed)} that its project may keep")


def _so_far(before: LiveNote, stage: OutputsStage) -> ExecutionOutputs:
    """What is told while nothing more is stored than before."""
    outputs = before.outputs
    return ExecutionOutputs(stage=stage) if outputs is None else replace(outputs, stage=stage)


def _stored(found: LeftFiles, tree: ContentTree) -> ExecutionOutputs:
    outputs = _counted(ExecutionOutputs(stage=OutputsStage.STORED), found, tree)
    return replace(outputs, tree=tree.digest, size=len(tree.form)) if tree.entries else outputs


def _counted(outputs: ExecutionOutputs, found: LeftFiles, tree: ContentTree) -> ExecutionOutputs:
    return replace(
        outputs,
        files=len(tree.entries),
        bytes=tree.size,
        left_out=len(found.left_out),
        why=left_out_text(found.left_out),
    )


def _on_node(before: LiveNote, why: str) -> ExecutionOutputs:
    return replace(_so_far(before, OutputsStage.ON_NODE), why=why)
