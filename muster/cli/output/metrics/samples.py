"""Samples as tables and documents: what each rank of a job uses, and what each node does."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from muster.cli.output.metrics.chart import SPARK
from muster.cli.output.plain.columns import Column
from muster.cli.output.tables import TextTable, listing
from muster.cli.output.units import size_text
from muster.domain.ids import ExecutionId, GpuUuid, NodeId
from muster.domain.jobs.view import ExecutionView, JobView
from muster.domain.natural_order import natural
from muster.domain.telemetry.differences import ComparedRank, usage_signs
from muster.domain.telemetry.quantities import amounts_of_rank
from muster.domain.telemetry.sample import ExecutionUse, GpuUse, HostUse, NodeSample, Sample

_NOTHING = "-"
"""Stands for what nobody tells."""
_USE_COLUMNS = (
    Column("GPUS", least=8),
    Column("BUSY", right=True),
    Column("GPU MEMORY", right=True),
    Column("WATTS", right=True, spare=2),
    Column("CPUS", right=True),
    Column("MEMORY", right=True),
    Column("READ/S", right=True, spare=3),
    Column("WRITTEN/S", right=True, spare=4),
)
"""What is told of ranks and of nodes alike."""
_RANK_COLUMNS = (
    Column("RANK", right=True),
    Column("NODE", least=8, spare=1),
    *_USE_COLUMNS,
    Column("PROCESSES", right=True, spare=5),
)
_NODE_COLUMNS = (
    Column("NODE", least=8),
    *_USE_COLUMNS,
    Column("RECEIVED/S", right=True, spare=1),
    Column("SENT/S", right=True, spare=1),
    Column("EXECUTIONS", right=True, spare=5),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedGpu:
    """A GPU and what was seen of it."""

    uuid: GpuUuid
    use: GpuUse


@dataclass(frozen=True, slots=True, kw_only=True)
class RankUse:
    """What one rank of a job used in the span that ended at a time; None: nobody has told."""

    rank: int
    execution: ExecutionId
    node: NodeId | None
    at: datetime | None = None
    use: ExecutionUse | None = None
    gpus: tuple[NamedGpu, ...] = ()
    differs: Mapping[str, str] = field(default_factory=dict)
    """What of it is unlike the other ranks of its role now, and a sentence that says how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUse:
    """What one node used in the span that ended at a time."""

    node: NodeId
    at: datetime
    host: HostUse
    gpus: tuple[NamedGpu, ...]
    executions: Mapping[ExecutionId, ExecutionUse]


class SamplesSeen:
    """The newest sample of each node that somebody watches, of one job's nodes or of others."""

    def __init__(self, job: JobView | None) -> None:
        """`job`: None where nodes are watched."""
        self.job = job
        self.samples: dict[NodeId, Sample] = {}

    def hear(self, batch: Iterable[NodeSample]) -> None:
        """Have samples in place of those before of the same nodes."""
        self.samples.update(batch)

    def is_elsewhere(self, batch: Iterable[NodeSample]) -> bool:
        """Whether the job has executions of which its view does not know, as it was placed meanwhile, or anew."""
        known = {rank.execution for rank in self._ranks() if rank.node is not None}
        return any(execution not in known for _, sample in batch for execution, _ in sample.executions)

    def rows(self) -> "Sequence[RankUse | NodeUse]":
        """A row for each rank of the job, or for each node in natural order."""
        return self._ranks() if self.job is not None else nodes_of(self.samples)

    def table(self) -> TextTable:
        """The rows for people."""
        return nodes_use_table(nodes_of(self.samples)) if self.job is None else ranks_table(self._ranks())

    def _ranks(self) -> "list[RankUse]":
        return [] if self.job is None else ranks_of(self.job, self.samples)


def ranks_of(job: JobView, samples: Mapping[NodeId, Sample]) -> list[RankUse]:
    """What the ranks of a job's newest attempt use, and which of them differ."""
    executions = job.attempts[-1].executions if job.attempts else ()
    signs = [
        sign
        for role in dict.fromkeys(each.role for each in executions)
        for sign in usage_signs({each.rank: _compared(each, samples) for each in executions if each.role == role})
    ]
    return [
        replace(_rank(each, samples), differs={sign.what: sign.told for sign in signs if sign.rank == each.rank})
        for each in executions
    ]


def _compared(execution: ExecutionView, samples: Mapping[NodeId, Sample]) -> ComparedRank:
    sample = None if execution.node is None else samples.get(execution.node)
    amounts = {} if sample is None else amounts_of_rank(sample, execution.id, execution.gpus)
    return ComparedRank(amounts=amounts, gpus=len(execution.gpus))


def _rank(execution: ExecutionView, samples: Mapping[NodeId, Sample]) -> RankUse:
    sample = None if execution.node is None else samples.get(execution.node)
    if sample is None:
        return RankUse(rank=execution.rank, execution=execution.id, node=execution.node)
    return RankUse(
        rank=execution.rank,
        execution=execution.id,
        node=execution.node,
        at=sample.at,
        use=dict(sample.executions).get(execution.id),
        gpus=tuple(NamedGpu(uuid=uuid, use=use) for uuid, use in sample.gpus if uuid in execution.gpus),
    )


def nodes_of(samples: Mapping[NodeId, Sample]) -> list[NodeUse]:
    """What nodes use, in natural order."""
    return [
        NodeUse(
            node=node,
            at=sample.at,
            host=sample.host,
            gpus=tuple(NamedGpu(uuid=uuid, use=use) for uuid, use in sample.gpus),
            executions=dict(sample.executions),
        )
        for node, sample in sorted(samples.items(), key=lambda each: natural(each[0]))
    ]


def ranks_table(ranks: Iterable[RankUse]) -> TextTable:
    """A line for each rank; where one differs, with what of it does."""
    shown = tuple(ranks)
    if not any(rank.differs for rank in shown):
        return listing(_RANK_COLUMNS, map(_rank_row, shown))
    rows = ((*_rank_row(rank), ", ".join(rank.differs)) for rank in shown)
    return listing((*_RANK_COLUMNS, Column("DIFFERS")), rows)


def nodes_use_table(nodes: Iterable[NodeUse]) -> TextTable:
    """A line for each node."""
    return listing(_NODE_COLUMNS, map(_node_row, nodes))


def _rank_row(rank: RankUse) -> Iterator[str]:
    yield str(rank.rank)
    yield rank.node or _NOTHING
    yield from _gpu_cells([each.use for each in rank.gpus])
    use = rank.use or ExecutionUse()
    yield _NOTHING if use.cpus is None else f"{use.cpus:.1f}"
    yield _size(use.memory)
    yield _size(use.read_rate)
    yield _size(use.write_rate)
    yield _NOTHING if use.processes is None else str(use.processes)


def _node_row(node: NodeUse) -> Iterator[str]:
    host = node.host
    yield node.node
    yield from _gpu_cells([each.use for each in node.gpus])
    yield f"{host.cpus:.1f}"
    yield f"{size_text(host.memory)}/{size_text(host.memory_total)}"
    yield from map(_size, (host.read_rate, host.write_rate, host.receive_rate, host.send_rate))
    yield str(len(node.executions))


def _gpu_cells(gpus: Sequence[GpuUse]) -> tuple[str, str, str, str]:
    """A bar for each GPU, and in all: how busy they are, what they hold, and what they draw."""
    busy = [each.busy for each in gpus if each.busy is not None]
    watts = [each.watts for each in gpus if each.watts is not None]
    held = [each.memory for each in gpus if each.memory is not None]
    return (
        "".join(_bar(each.busy) for each in gpus) or _NOTHING,
        f"{100 * sum(busy) / len(busy):.0f}%" if busy else _NOTHING,
        size_text(sum(held)) if held else _NOTHING,
        f"{sum(watts):.0f}" if watts else _NOTHING,
    )


def _bar(busy: float | None) -> str:
    return "·" if busy is None else SPARK[min(len(SPARK) - 1, int(busy * len(SPARK)))]


def _size(amount: float | None) -> str:
    return _NOTHING if amount is None else size_text(int(amount))
