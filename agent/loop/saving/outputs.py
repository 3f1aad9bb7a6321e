"""Has what executions leave stored, with their end, and again where somebody asks for that."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from agent.core.actions import StoreAgain
from agent.core.events import OutputsSeen
from agent.data.live.place import OutputsPlace
from agent.executions.record import note_outputs, noted_outputs
from agent.loop.live_execution import LiveExecution
from agent.loop.workbench import Workbench
from muster.domain.data.outputs import ExecutionOutputs, OutputsStage
from muster.domain.ids import ExecutionId
from muster.domain.jobs.job import RuntimeKind

log = logging.getLogger(__name__)

NOT_KEPT = "its node does not have them any more"


async def store_outputs(bench: Workbench, execution: ExecutionId, live: LiveExecution) -> None:
    """Have what it has left stored, unless an agent before has done that; what became of it is told once noted."""
    directory = live.directory
    known = await asyncio.to_thread(noted_outputs, directory.path)
    if known is None:
        known = await _stored(bench, execution, await asyncio.to_thread(place_of, live))
        with suppress(OSError):  # the next agent stores it again, which changes nothing
            await asyncio.to_thread(note_outputs, directory.path, known)
    _tell(bench, execution, known)


async def store_again(bench: Workbench, order: StoreAgain) -> None:
    """Have stored what lies on this node alone, whether or not the execution was cleared away already."""
    execution, live = order.execution, bench.live.get(order.execution)
    directory = bench.directories.kept_outputs(execution) if live is None else live.directory.outputs
    known = ExecutionOutputs(stage=OutputsStage.LOST, why=NOT_KEPT, retries=order.retries)
    if await asyncio.to_thread(directory.is_dir):
        owner = await asyncio.to_thread(_owner, directory) if order.owner_counts else None
        note = None if live is None else live.directory.path
        place = OutputsPlace(directory=directory, owner=owner, note=note)
        known = await _stored(bench, execution, place, retries=order.retries)
    if live is not None:
        with suppress(OSError):  # as above
            await asyncio.to_thread(note_outputs, live.directory.path, known)
    _tell(bench, execution, known)


def place_of(live: LiveExecution) -> OutputsPlace:
    """Where outputs of an execution lie that is here."""
    directory = live.directory
    owner = _owner(directory.outputs) if live.kind is RuntimeKind.PROCESS else None
    return OutputsPlace(directory=directory.outputs, owner=owner, note=directory.path)


async def _stored(bench: Workbench, execution: ExecutionId, place: OutputsPlace, retries: int = 0) -> ExecutionOutputs:
    def told(outputs: ExecutionOutputs) -> None:
        bench.inbox.put(OutputsSeen(execution=execution, outputs=replace(outputs, retries=retries)))

    return replace(await bench.outputs.store(execution, place, told), retries=retries)


def _tell(bench: Workbench, execution: ExecutionId, known: ExecutionOutputs) -> None:
    told = {"execution": execution, "stage": known.stage, "files": known.files, "why": known.why}
    log.info("outputs are stored" if known.tree else "outputs are not stored", extra=told)
    bench.inbox.put(OutputsSeen(execution=execution, outputs=known))


def _owner(place: Path) -> int | None:
    """The user of a process: the one to whom the directory was given."""
    with suppress(OSError):
        return place.stat().st_uid
    return None
