"""Series: how much of each quantity a rank, a GPU or a node used over a time, in columns."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.telemetry.quantities import Amounts, Quantity, amounts_of_gpu, amounts_of_node, amounts_of_rank
from muster.domain.telemetry.sample import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSeries:
    """How much of one quantity something used over a time."""

    quantity: Quantity
    attempt: int | None = None
    """The attempt of `rank`."""
    rank: int | None = None
    """The rank, in series of a job; None: it is of a node."""
    gpu: GpuUuid | None = None
    """The GPU of a node; None: it is of the node as a whole, or of all GPUs of a rank."""
    times: Sequence[datetime]
    """The end of each span. Where nobody told anything, there is none."""
    values: Sequence[float]
    """The mean of each span; of memory, heat and processes the greatest."""


def series_of_rank(
    samples: Sequence[Sample],
    execution: ExecutionId,
    gpus: Collection[GpuUuid],
    wanted: Collection[Quantity],
    *,
    attempt: int,
    rank: int,
) -> list[UsageSeries]:
    """What an execution used, a series for each quantity of which somebody told."""
    columns = _columns(samples, wanted, lambda sample: amounts_of_rank(sample, execution, gpus))
    return [
        UsageSeries(quantity=quantity, attempt=attempt, rank=rank, times=times, values=values)
        for quantity, times, values in columns
    ]


def series_of_node(
    samples: Sequence[Sample], gpus: Collection[GpuUuid], wanted: Collection[Quantity]
) -> list[UsageSeries]:
    """What a node used as a whole; or each of these GPUs of it, where any are named."""
    if not gpus:
        return [
            UsageSeries(quantity=quantity, times=times, values=values)
            for quantity, times, values in _columns(samples, wanted, amounts_of_node)
        ]
    return [
        UsageSeries(quantity=quantity, gpu=gpu, times=times, values=values)
        for gpu in gpus
        for quantity, times, values in _columns(samples, wanted, partial(amounts_of_gpu, gpu=gpu))
    ]


Column = tuple[Quantity, Sequence[datetime], Sequence[float]]


def _columns(
    samples: Sequence[Sample], wanted: Collection[Quantity], amounts: Callable[[Sample], Amounts]
) -> list[Column]:
    told = [(sample.at, amounts(sample)) for sample in samples]
    columns = (
        (quantity, [(at, used[quantity]) for at, used in told if quantity in used])
        for quantity in Quantity
        if not wanted or quantity in wanted
    )
    return [(quantity, [at for at, _ in cells], [value for _, value in cells]) for quantity, cells in columns if cells]
