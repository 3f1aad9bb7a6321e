"""How long GPUs were busy for each execution that has them, added up from looks. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.jobs.placing.portion import WHOLE_GPU
from muster.domain.telemetry.sample import GpuUse

BUSY_TOLD_EVERY = 300.0
"""Seconds between two reports of busy time, beside the one of the end: a node that is lost then owes no more."""
_MILLISECONDS = 1000


class GpuHolder(NamedTuple):
    """An execution that runs and has GPUs."""

    execution: ExecutionId
    gpus: Sequence[GpuUuid]
    thousandths: int = WHOLE_GPU
    """The part that it has of each of them; the same part of their time is its own."""
    before: int | None = None
    """Milliseconds that were counted before it was looked at here; None: its GPUs have not told yet."""


@dataclass(slots=True)
class _Count:
    milliseconds: float
    looked_at: float
    told_at: float
    known: bool
    """Whether its GPUs have told anything."""


class BusyTime:
    """The busy time of the executions of one node."""

    def __init__(self) -> None:
        self._counts: dict[ExecutionId, _Count] = {}

    def look(
        self, uses: Mapping[GpuUuid, GpuUse], holders: Iterable[GpuHolder], seconds: float
    ) -> Sequence[tuple[ExecutionId, int]]:
        """Count what is seen now as what has been since the look before; who is to be told of, and how much it is.

        `seconds` are of a clock that nobody sets. A look in which not all of an execution's GPUs tell counts nothing.
        """
        due: list[tuple[ExecutionId, int]] = []
        counts: dict[ExecutionId, _Count] = {}
        for holder in holders:
            count = self._counts.get(holder.execution) or _Count(
                float(holder.before or 0), seconds, seconds, holder.before is not None
            )
            counts[holder.execution] = count
            busy = [use.busy for gpu in holder.gpus if (use := uses.get(gpu)) is not None and use.busy is not None]
            if holder.gpus and len(busy) == len(holder.gpus):
                part = sum(busy) * holder.thousandths / WHOLE_GPU
                count.milliseconds += part * (seconds - count.looked_at) * _MILLISECONDS
                count.known = True
            count.looked_at = seconds
            if count.known and seconds - count.told_at >= BUSY_TOLD_EVERY:
                count.told_at = seconds
                due.append((holder.execution, int(count.milliseconds)))
        self._counts = counts
        return due

    def of(self, execution: ExecutionId) -> int | None:
        """Milliseconds that are counted of an execution that ran at the last look; None: its GPUs have not told."""
        count = self._counts.get(execution)
        return int(count.milliseconds) if count is not None and count.known else None
