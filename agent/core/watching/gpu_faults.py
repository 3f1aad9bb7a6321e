"""Which fault of a GPU may be why an execution ended badly: what is remembered, and what it adds to a failure."""

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from agent.core.events import GpuFaulted
from muster.domain.ids import GpuUuid
from muster.domain.jobs.failure import Failure, FailureKind

REMEMBERED = 256
"""Faults that are remembered of a node; a broken GPU repeats itself, so the newest say enough."""

RELATED = timedelta(seconds=60)
"""How long a fault that the program caused is worth a word when it ends; many are caught and survived."""

_EXPLAINED = frozenset({FailureKind.EXIT_CODE, FailureKind.SIGNAL})
"""Ends that may have another cause; running out of memory is its own."""


class GpuFaults:
    """The faults of a node's GPUs."""

    def __init__(self) -> None:
        self._seen: deque[_Seen] = deque(maxlen=REMEMBERED)

    def note(self, fault: GpuFaulted, now: datetime) -> None:
        """Remember a fault; one that repeats itself is remembered as often as the GPUs of a node can need."""
        if any(seen.fault == fault and now - seen.at < RELATED for seen in self._seen if fault.own):
            return
        self._seen.append(_Seen(fault, now))

    def blamed(self, failure: Failure, gpus: Collection[GpuUuid], since: datetime | None, now: datetime) -> Failure:
        """The failure of an execution that had these GPUs since then, with the fault that explains it, if one does.

        A fault of the GPU itself is the cause, and the first one counts: whatever came after may follow from it. One
        that the program brought about stays the program's failure, but is named.
        """
        if failure.kind not in _EXPLAINED:
            return failure
        during = [seen for seen in self._of(gpus) if since is None or seen.at >= since]
        own = next((seen for seen in during if seen.fault.own), None)
        if own is not None:
            message = f"{_reported(own.fault)}, {_ago(now - own.at)} before it {failure.message}"
            return replace(failure, kind=FailureKind.GPU, message=message)
        others = [seen for seen in during if now - seen.at <= RELATED]
        if others:
            last = others[-1]
            return replace(failure, message=f"{failure.message}, {_ago(now - last.at)} after {_reported(last.fault)}")
        return failure

    def _of(self, gpus: Collection[GpuUuid]) -> "Iterator[_Seen]":
        return (seen for seen in self._seen if seen.fault.gpu in gpus)


@dataclass(frozen=True, slots=True)
class _Seen:
    fault: GpuFaulted
    at: datetime


def _reported(fault: GpuFaulted) -> str:
    number = "a GPU" if fault.index is None else f"GPU {fault.index}"
    return f"{number} ({fault.gpu}) reported {fault.message}"


def _ago(span: timedelta) -> str:
    return f"{span.total_seconds():.0f} s" if span >= timedelta(seconds=1) else "less than 1 s"
