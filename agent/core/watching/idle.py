"""Whether an execution is in use: by who is attached to it, or by what it computes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from muster.domain.ids import GpuUuid
from muster.domain.telemetry.sample import GpuUse

IDLE_GPU_PERCENT = 2
"""A GPU that is not busier than that does nothing: a desktop or a driver alone may make it a percent."""
IDLE_CPU_SHARE = 0.05
"""The part of one CPU that an execution may use and still do nothing: a server that waits looks around now and then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UseSample:
    """What was seen of an execution at one moment."""

    at: datetime
    seconds: float
    """The same moment, in seconds of a clock that nobody sets."""
    attached_at: datetime | None = None
    """When bytes last went to or from who is attached to it; None: never since the agent started."""
    gpu_percent: int | None = None
    """How busy the busiest of its GPUs is; None: it has none, or not all of them tell."""
    cpu_seconds: float | None = None
    """Seconds of CPU that it has used so far; None: not known, or not asked for."""


def busiest(gpus: Sequence[GpuUuid], uses: Mapping[GpuUuid, GpuUse]) -> int | None:
    """How busy the busiest of these GPUs is; None where there are none, or one does not tell and the others idle."""
    told = [round(100 * busy) for gpu in gpus if (busy := uses.get(gpu, GpuUse()).busy) is not None]
    most = max(told, default=None)
    return most if len(told) == len(gpus) or (most is not None and most > IDLE_GPU_PERCENT) else None


def used_at(before: UseSample | None, now: UseSample) -> datetime | None:
    """When an execution was last used between two samples; None: it was not. `before`: None for the first one.

    Of an execution whose GPUs do not tell, as parts of GPUs do not, the CPU counts as of one without.
    """
    if now.gpu_percent is not None:
        if now.gpu_percent > IDLE_GPU_PERCENT:
            return now.at
    elif _computes(before, now):
        return now.at
    attached_at = now.attached_at
    if attached_at is None or (before is not None and attached_at == before.attached_at):
        return None
    return attached_at


def _computes(before: UseSample | None, now: UseSample) -> bool:
    if before is None or before.cpu_seconds is None or now.cpu_seconds is None:
        return False
    elapsed = now.seconds - before.seconds
    return elapsed > 0 and (now.cpu_seconds - before.cpu_seconds) / elapsed > IDLE_CPU_SHARE
