"""Rates and means out of counts: what a span's looks come to. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from agent.telemetry.cgroups import CgroupCounts
from agent.telemetry.host import HostCounts
from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.telemetry.sample import MAX_SAMPLED, ExecutionUse, GpuUse, HostUse, Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was seen of a node at one moment."""

    seconds: float
    """The moment, in seconds of a clock that nobody sets."""
    host: HostCounts
    gpus: Mapping[GpuUuid, GpuUse] = field(default_factory=dict)
    executions: Mapping[ExecutionId, CgroupCounts] = field(default_factory=dict)


def fold(looks: Sequence[Look], at: datetime) -> Sample:
    """The sample of the span from the first of at least two looks to the last one, which ended `at` this time.

    An execution, or a GPU, is told of if the last look saw it. What began within the span is told of since then.
    """
    first, last = looks[0], looks[-1]
    span = last.seconds - first.seconds
    told = sorted(last.executions)[:MAX_SAMPLED]
    return Sample(
        at=at,
        span=timedelta(seconds=span),
        host=_host(first.host, last.host, span),
        gpus=tuple((gpu, _gpu([look.gpus[gpu] for look in looks[1:] if gpu in look.gpus])) for gpu in last.gpus),
        executions=tuple((each, _execution(each, looks)) for each in told),
        left_out=len(last.executions) - len(told),
    )


def _host(first: HostCounts, last: HostCounts, span: float) -> HostUse:
    cpu, memory, disks = (_rate(before, after, span) for before, after in zip(first.stalled, last.stalled, strict=True))
    return HostUse(
        cpus=_rate(first.cpu_busy, last.cpu_busy, span) or 0.0,
        memory=last.memory_used,
        memory_total=last.memory_total,
        read_rate=_rate(first.read_bytes, last.read_bytes, span),
        write_rate=_rate(first.written_bytes, last.written_bytes, span),
        receive_rate=_rate(first.received_bytes, last.received_bytes, span),
        send_rate=_rate(first.sent_bytes, last.sent_bytes, span),
        stalled=(cpu, memory, disks),
    )


def _gpu(seen: Sequence[GpuUse]) -> GpuUse:
    """The means of what several looks saw; memory, heat and clock are those of the last one."""
    busy = [each.busy for each in seen if each.busy is not None]
    watts = [each.watts for each in seen if each.watts is not None]
    last = seen[-1]
    return GpuUse(
        busy=sum(busy) / len(busy) if busy else None,
        busy_most=max(busy, default=None),
        memory=last.memory,
        watts=sum(watts) / len(watts) if watts else None,
        celsius=last.celsius,
        clock_mhz=last.clock_mhz,
        throttled=any(each.throttled for each in seen),
    )


def _execution(execution: ExecutionId, looks: Sequence[Look]) -> ExecutionUse:
    seen = [(look.seconds, look.executions[execution]) for look in looks if execution in look.executions]
    (start, first), (end, last) = seen[0], seen[-1]
    between = [
        rate
        for (since, before), (until, after) in pairwise(seen)
        if (rate := _rate(before.cpu_seconds, after.cpu_seconds, until - since)) is not None
    ]
    return ExecutionUse(
        cpus=_rate(first.cpu_seconds, last.cpu_seconds, end - start),
        cpus_most=max(between, default=None),
        memory=last.memory,
        read_rate=_rate(first.read_bytes, last.read_bytes, end - start),
        write_rate=_rate(first.written_bytes, last.written_bytes, end - start),
        processes=last.processes,
    )


def _rate(before: float | None, after: float | None, span: float) -> float | None:
    """How fast a count grew; None where it is not known, or began anew within the span."""
    if before is None or after is None or span <= 0 or after < before:
        return None
    return (after - before) / span
