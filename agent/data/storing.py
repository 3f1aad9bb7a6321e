"""Stores what executions leave: read, sent to the depot or a store, and told only once all of it is there."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from agent.data.bucket_outputs import BucketSending
from agent.data.left_files import LeftFiles, read_left_files
from agent.data.mover.mover import Mover
from muster.domain.data.outputs import (
    STORING_OUTPUTS,
    UNWANTED_OUTPUTS,
    ExecutionOutputs,
    OutputsPass,
    OutputsStage,
    left_out_text,
)
from muster.domain.data.upload import DepotPass
from muster.domain.errors import MusterError, UnavailableError
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError
from muster.rpc.channel import Credentials
from muster.transfer.bucket_faults import BucketAwayError
from muster.transfer.depot_client import reaching_depot
from muster.transfer.folder import FolderError

log = logging.getLogger(__name__)

AskToStore = Callable[[ExecutionId], Awaitable[OutputsPass]]
"""What opens the depot to those outputs of an execution that are wanted; raises ExecutionError."""

STORED_TOGETHER = 2
"""Executions of a node whose outputs are stored at the same time."""

STORE_PAUSES = (1.0, 5.0, 15.0, 30.0)
"""Seconds until a depot that was away is tried again; the last one again and again."""

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

    async def store(
        self, execution: ExecutionId, directory: Path, owner: int | None, told: Callable[[ExecutionOutputs], None]
    ) -> ExecutionOutputs:
        """Store all of it, for as long as the coordinator wants it here; what became of it, whatever happens."""
        try:
            async with self._turns:
                return await self._insist(execution, directory, owner, told)
        except (MusterError, ExecutionError) as error:
            return _on_node(str(error))
        except OSError as error:
            return _on_node(f"{error.filename or directory.name}: {(error.strerror or str(error)).lower()}")

    async def _insist(
        self, execution: ExecutionId, directory: Path, owner: int | None, told: Callable[[ExecutionOutputs], None]
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
                    found = await asyncio.to_thread(read_left_files, directory, owner, depot.allowed, shown.terms)
                    told(_counted(STORING_OUTPUTS, found))
                if found.tree.entries:
                    await self._send(shown, depot, found)
            except (UnavailableError, BucketAwayError) as error:
                log.warning("outputs are not stored yet", extra={"execution": execution, "cause": str(error)})
                await asyncio.sleep(STORE_PAUSES[min(away, len(STORE_PAUSES) - 1)])
                away += 1
            except (FolderError, OSError):
                found, changed = None, changed + 1
                if changed >= READ_AGAIN:
                    raise
            else:
                return _stored(found)

    async def _send(self, shown: OutputsPass, depot: DepotPass, found: LeftFiles) -> None:
        """Have all of it where it goes: in the depot, or in a store and the list of it in the depot."""
        if shown.terms.to:
            await self._to_store.send(shown, found)
        authority = self._credentials().authority
        async with reaching_depot(depot.depot, depot.ticket, self._coordinator(), authority) as client:
            if shown.terms.to:
                await client.send_list(found.tree)
            else:
                await client.send_tree(found.tree, found.files)


def _stored(found: LeftFiles) -> ExecutionOutputs:
    outputs = _counted(ExecutionOutputs(stage=OutputsStage.STORED), found)
    if not found.tree.entries:
        return outputs
    return replace(outputs, tree=found.tree.digest, size=len(found.tree.form))


def _counted(outputs: ExecutionOutputs, found: LeftFiles) -> ExecutionOutputs:
    return replace(
        outputs,
        files=len(found.tree.entries),
        bytes=found.tree.size,
        left_out=len(found.left_out),
        why=left_out_text(found.left_out),
    )


def _on_node(why: str) -> ExecutionOutputs:
    return ExecutionOutputs(stage=OutputsStage.ON_NODE, why=why)
