"""Samples of several spans as one: means weighted by time, and the greatest; what is absent stays absent."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TypeVar

from muster.domain.telemetry.sample import MAX_SAMPLED, ExecutionUse, GpuUse, HostUse, Sample

MOST_ROLLED_EXECUTIONS = MAX_SAMPLED // 2
"""Executions of one sample that several were rolled up into; of more, those that began last."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Key = TypeVar("Key", bound=Hashable)
Use = TypeVar("Use")
Weighted = Sequence[tuple[Use, float]]
"""Uses, each with the seconds of which it tells."""


def rolled(samples: Iterable[Sample], width: timedelta) -> list[Sample]:
    """Samples, in the order of time, each of all those that ended within one of the spans of this width since 1970."""
    ordered = sorted(samples, key=lambda sample: sample.at)
    return [_one(tuple(several), end) for end, several in groupby(ordered, lambda sample: span_end(sample.at, width))]


def span_end(at: datetime, width: timedelta) -> datetime:
    """The end of the span of this width, counted since 1970, in which a time lies."""
    return _EPOCH - (_EPOCH - at) // width * width


def _one(samples: Sequence[Sample], at: datetime) -> Sample:
    """One sample of several; its span is the time of which these tell, which may be less than what lies between."""
    seconds = [max(sample.span.total_seconds(), 1e-3) for sample in samples]
    executions = tuple(_by_name([sample.executions for sample in samples], seconds, _execution).items())
    return Sample(
        at=at,
        span=sum((sample.span for sample in samples), timedelta()),
        host=_host([(sample.host, weight) for sample, weight in zip(samples, seconds, strict=True)]),
        gpus=tuple(_by_name([sample.gpus for sample in samples], seconds, _gpu).items()),
        executions=executions[-MOST_ROLLED_EXECUTIONS:],
        left_out=max(sample.left_out for sample in samples) + max(0, len(executions) - MOST_ROLLED_EXECUTIONS),
    )


def _by_name(
    columns: Sequence[Sequence[tuple[Key, Use]]], seconds: Sequence[float], one: Callable[[Weighted[Use]], Use]
) -> Mapping[Key, Use]:
    found: dict[Key, list[tuple[Use, float]]] = {}
    for column, weight in zip(columns, seconds, strict=True):
        for name, use in column:
            found.setdefault(name, []).append((use, weight))
    return {name: one(uses) for name, uses in found.items()}


def _gpu(uses: Weighted[GpuUse]) -> GpuUse:
    clock = _mean([(use.clock_mhz, weight) for use, weight in uses])
    return GpuUse(
        busy=_mean([(use.busy, weight) for use, weight in uses]),
        busy_most=_most([use.busy if use.busy_most is None else use.busy_most for use, _ in uses]),
        memory=_most([use.memory for use, _ in uses]),
        watts=_mean([(use.watts, weight) for use, weight in uses]),
        celsius=_most([use.celsius for use, _ in uses]),
        clock_mhz=None if clock is None else round(clock),
        throttled=any(use.throttled for use, _ in uses),
    )


def _execution(uses: Weighted[ExecutionUse]) -> ExecutionUse:
    return ExecutionUse(
        cpus=_mean([(use.cpus, weight) for use, weight in uses]),
        cpus_most=_most([use.cpus if use.cpus_most is None else use.cpus_most for use, _ in uses]),
        memory=_most([use.memory for use, _ in uses]),
        read_rate=_mean([(use.read_rate, weight) for use, weight in uses]),
        write_rate=_mean([(use.write_rate, weight) for use, weight in uses]),
        processes=_most([use.processes for use, _ in uses]),
    )


def _host(uses: Weighted[HostUse]) -> HostUse:
    cpu, memory, disks = (_mean([(use.stalled[place], weight) for use, weight in uses]) for place in range(3))
    return HostUse(
        cpus=_mean([(use.cpus, weight) for use, weight in uses]) or 0.0,
        memory=max(use.memory for use, _ in uses),
        memory_total=max(use.memory_total for use, _ in uses),
        read_rate=_mean([(use.read_rate, weight) for use, weight in uses]),
        write_rate=_mean([(use.write_rate, weight) for use, weight in uses]),
        receive_rate=_mean([(use.receive_rate, weight) for use, weight in uses]),
        send_rate=_mean([(use.send_rate, weight) for use, weight in uses]),
        stalled=(cpu, memory, disks),
    )


def _mean(values: Sequence[tuple[float | None, float]]) -> float | None:
    told = [(value, weight) for value, weight in values if value is not None]
    return sum(value * weight for value, weight in told) / sum(weight for _, weight in told) if told else None


Number = TypeVar("Number", int, float)


def _most(values: Sequence[Number | None]) -> Number | None:
    return max((value for value in values if value is not None), default=None)
