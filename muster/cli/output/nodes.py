"""Nodes as tables."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from muster.cli.output.plain.columns import Column
from muster.cli.output.tables import TextTable, facts, joined, listing, shown, word
from muster.cli.output.units import cpus_text, labels_text, size_text, span_text, time_text
from muster.domain.fleet.node import Cordon, Gpu, NodeState, NodeView, RuntimeOffer
from muster.domain.fleet.pool import DEFAULT_POOL
from muster.domain.fleet.window import Window
from muster.domain.jobs.placing.portion import WHOLE_GPU
from muster.domain.jobs.placing.taint import NodeTaint
from muster.domain.quantity import format_cpus, format_duration

_SILENT = (
    "What runs there may go on; `muster why JOB` says what follows. If the node will not come back and nothing runs "
    "there any more, `muster nodes remove NODE` gives it up."
)


_COLUMNS = (
    Column("NODE", least=10),
    Column("STATE", least=10),
    Column("GPUS FREE", least=22),
    Column("CPUS FREE", right=True),
    Column("MEMORY FREE", right=True),
    Column("EXECUTIONS", right=True, spare=2),
    Column("ADDRESS", spare=3),
)
_MORE_COLUMNS = (Column("LABELS"), Column("VERSION"), Column("LAST HEARD"), Column("JOINED"))


def nodes_table(nodes: Sequence[NodeView], now: datetime, *, wide: bool = False) -> TextTable:
    """One line a node; free of total. Pool, taints and the reason of a cordon have a column where any node has one."""
    pools = wide or any(node.pool not in {"", DEFAULT_POOL} for node in nodes)
    tainted = wide or any(node.taints for node in nodes)
    reasons = wide or any(node.cordon is not None and node.cordon.reason for node in nodes)
    columns = (
        *_COLUMNS,
        *([Column("POOL", spare=1, least=6)] if pools else []),
        *([Column("TAINTS", spare=1, least=12)] if tainted else []),
        *([Column("REASON", least=12)] if reasons else []),
        *(_MORE_COLUMNS if wide else ()),
    )

    def row(node: NodeView) -> Iterator[str | Text]:
        inventory = node.inventory
        yield node.name
        yield _state_text(node)
        yield _gpus_text(node)
        yield f"{cpus_text(inventory.cpus * 1000 - node.cpu_millis_taken)}/{inventory.cpus}"
        yield f"{size_text(inventory.memory - node.memory_taken)}/{size_text(inventory.memory)}"
        yield str(len(node.executions))
        yield node.address
        if pools:
            yield node.pool or "-"
        if tainted:
            yield ", ".join(str(each.taint) for each in node.taints) or "-"
        if reasons:
            yield (node.cordon.reason if node.cordon is not None else "") or "-"
        if wide:
            yield labels_text(node.inventory.labels) or "-"
            yield node.agent_version or "-"
            yield "-" if node.last_seen_at is None else f"{span_text(now - node.last_seen_at)} ago"
            yield time_text(node.joined_at) or "-"

    return listing(columns, map(row, nodes))


def node_details(node: NodeView, now: datetime) -> Group:
    """All that is known of one node."""
    inventory = node.inventory
    parts: list[RenderableType] = [
        facts(
            (
                ("node", node.name),
                ("state", _state_text(node)),
                ("cordoned", _cordon_text(node.cordon, now)),
                ("pool", node.pool),
                ("taints", "\n".join(_taint_text(each, now) for each in node.taints)),
                ("last heard", "" if node.last_seen_at is None else f"{span_text(now - node.last_seen_at)} ago"),
                ("joined", time_text(node.joined_at)),
                ("address", node.address),
                ("addresses", ", ".join(inventory.addresses)),
                ("system", " · ".join(filter(None, (inventory.os, inventory.kernel, inventory.architecture)))),
                ("cpus", f"{cpus_text(inventory.cpus * 1000 - node.cpu_millis_taken)} of {inventory.cpus} free"),
                ("memory", _free_text(inventory.memory - node.memory_taken, inventory.memory)),
                ("disk", _free_text(inventory.disk_free, inventory.disk_total) if inventory.disk_total else ""),
                ("gpu driver", _driver_text(node)),
                ("runtimes", "\n".join(map(_runtime_text, inventory.runtimes))),
                ("labels", labels_text(node.inventory.labels)),
                ("agent", node.agent_version),
                ("executions", "\n".join(node.executions)),
            ),
        ),
    ]
    if node.state is not NodeState.READY and node.executions:
        parts += [shown(""), shown(_SILENT, "yellow")]
    if inventory.gpu_problem is not None:
        parts.append(shown(f"GPUs cannot be read: {inventory.gpu_problem}", "red"))
    if inventory.gpus:
        headers = (
            ">GPU",
            Column("UUID", spare=1),
            Column("MODEL", least=12),
            "MEMORY",
            Column("NUMA", spare=3),
            Column("NVLINK", spare=2),
            Column("USE", least=10),
            Column("PROBLEMS", least=12),
        )
        rows = (_gpu_row(gpu, node) for gpu in inventory.gpus)
        parts += [shown(""), listing(headers, rows)]
    return Group(*parts)


def _state_text(node: NodeView) -> Text:
    return word(node.state) if node.cordon is None else joined(word(node.state), shown(", cordoned", "yellow"))


def _cordon_text(cordon: Cordon | None, now: datetime) -> str:
    """Empty where there is none, which leaves the line out."""
    if cordon is None:
        return ""
    return f"{span_text(now - cordon.since)} ago" + (f": {cordon.reason}" if cordon.reason else "")


def _taint_text(taint: NodeTaint, now: datetime) -> str:
    told = f"{taint.taint} · since {span_text(now - taint.since)}"
    return f"{told} · what runs there goes on for {format_duration(taint.after)}" if taint.after else told


def _gpus_text(node: NodeView) -> str:
    gpus = node.inventory.gpus
    if not gpus:
        return node.inventory.gpu_problem or "-"
    ill = sum(not gpu.usable for gpu in gpus)
    whole = [gpu for gpu in gpus if gpu.mig is None]
    kinds = [(", ".join(Counter(gpu.model for gpu in whole)), whole)] if whole else []
    profiles = Counter(gpu.mig for gpu in gpus if gpu.mig is not None)
    kinds += [(f"MIG {profile}", [gpu for gpu in gpus if gpu.mig == profile]) for profile in profiles]
    told = ", ".join(f"{_free_of(node, each)}/{len(each)} {kind}" for kind, each in kinds)
    notes = [f"{ill} with problems"] if ill else []
    if node.gpus_shared:
        left = sum(max(0, WHOLE_GPU - share.thousandths) for share in node.gpus_shared.values())
        notes.append(f"{len(node.gpus_shared)} shared, of which {format_cpus(left)} free")
    return told + (f" ({', '.join(notes)})" if notes else "")


def _free_of(node: NodeView, gpus: Iterable[Gpu]) -> int:
    given = {*node.gpus_taken, *node.gpus_shared}
    return sum(gpu.usable and gpu.uuid not in given for gpu in gpus)


def _free_text(free: int, total: int) -> str:
    return f"{size_text(free)} of {size_text(total)} free"


def _driver_text(node: NodeView) -> str:
    inventory = node.inventory
    return " · ".join(filter(None, (inventory.gpu_driver, f"CUDA {inventory.cuda}" if inventory.cuda else "")))


def _runtime_text(offer: RuntimeOffer) -> str:
    if offer.problem is not None:
        return f"{offer.kind}: {offer.problem}"
    return f"{offer.kind} {offer.version}".strip() + ("" if offer.gpus else " (without GPUs)")


def _gpu_row(gpu: Gpu, node: NodeView) -> Iterator[str | Text]:
    yield str(gpu.index)
    yield gpu.uuid
    yield gpu.model
    yield size_text(gpu.memory)
    yield "-" if gpu.numa_node is None else str(gpu.numa_node)
    yield f"{len(gpu.nvlink_peers)} peers" if gpu.nvlink_peers else "-"
    yield _use_text(gpu, node)
    yield shown(", ".join(gpu.problems) or "-", "red" if gpu.problems else "")


def _use_text(gpu: Gpu, node: NodeView) -> str:
    if gpu.uuid in node.gpus_taken:
        return "given to an execution"
    if (share := node.gpus_shared.get(gpu.uuid)) is not None:
        return f"{format_cpus(share.thousandths)} and {size_text(share.memory)} given in portions"
    return f"{len(gpu.processes)} foreign processes" if gpu.processes else "free"


_WINDOW_COLUMNS = (
    Column("NAME", least=8),
    Column("FROM"),
    Column("TO"),
    Column("NODES", least=12),
    Column("PROJECT", spare=1),
    Column("REASON", least=12),
)


def windows_table(windows: Iterable[Window]) -> TextTable:
    """One line a window."""
    return listing(_WINDOW_COLUMNS, map(_window_row, windows))


def _window_row(window: Window) -> tuple[str, ...]:
    nodes = ", ".join((*window.nodes, *((labels_text(window.labels),) if window.labels else ())))
    return (
        window.name,
        time_text(window.begins),
        time_text(window.ends),
        nodes,
        window.project or "-",
        window.reason or "-",
    )
