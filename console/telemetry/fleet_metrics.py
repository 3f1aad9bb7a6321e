"""The fleet in figures: how many nodes and GPUs are in which state, who holds what, and what waits."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from console.telemetry.exposition import Metric
from muster.domain.fleet.node import Gpu, NodeState, NodeView
from muster.domain.fleet.quota import RESOURCES, UNLIMITED_AMOUNT, Amounts, UnitKind
from muster.domain.fleet.standing_view import QueueLine, UnitStandingView
from muster.domain.ids import GpuUuid, NodeId
from muster.domain.telemetry.sample import GpuUse, NodeSample

COMPUTING = 0.02
"""The part of the time from which on a GPU counts as computing; what is given and does less is idle."""
_UNITS = {"gpus": 1000, "cpus": 1000, "memory": 1 / 2**20}
"""What amounts are divided by for GPUs, CPUs and bytes."""


def of_fleet(
    nodes: Sequence[NodeView],
    samples: Iterable[NodeSample],
    units: Iterable[UnitStandingView],
    queue: Iterable[QueueLine],
    now: datetime,
) -> tuple[Metric, ...]:
    """All metrics of the fleet as a whole; their number grows with pools and projects, not with nodes or jobs."""
    return (_nodes(nodes), _gpus(nodes, samples), *_units(units), *_queue(queue, now))


def gpu_state(node: NodeView, gpu: Gpu, use: GpuUse | None) -> str:
    """What becomes of a GPU: `broken`, `free`, `outside` (somebody else computes on it), `computing` or `idle`."""
    if gpu.problems or node.state is not NodeState.READY:
        return "broken" if gpu.problems else "unreachable"
    busy = use is not None and use.busy is not None and use.busy >= COMPUTING
    if gpu.uuid not in node.gpus_taken and gpu.uuid not in node.gpus_shared:
        return "outside" if busy else "free"
    return "computing" if busy or use is None or use.busy is None else "idle"


def uses(samples: Iterable[NodeSample]) -> dict[NodeId, dict[GpuUuid, GpuUse]]:
    """What is seen of the GPUs of each node."""
    return {node: dict(sample.gpus) for node, sample in samples}


def _nodes(nodes: Iterable[NodeView]) -> Metric:
    metric = Metric("muster_nodes", "Nodes by pool and state; cordoned ones take nothing new.")
    counted = Counter((node.pool, "cordoned" if node.cordon is not None else str(node.state)) for node in nodes)
    for (pool, state), count in sorted(counted.items()):
        metric.add(count, pool=pool, state=state)
    return metric


def _gpus(nodes: Iterable[NodeView], samples: Iterable[NodeSample]) -> Metric:
    metric = Metric("muster_gpus", "GPUs by pool, model and what becomes of them; MIG devices by profile.")
    seen, counted = uses(samples), Counter[tuple[str, str, str]]()
    for node in nodes:
        of_node = seen.get(node.name, {})
        for gpu in node.inventory.gpus:
            model = f"{gpu.model} {gpu.mig}" if gpu.mig else gpu.model
            counted[node.pool, model, gpu_state(node, gpu, of_node.get(gpu.uuid))] += 1
    for (pool, model, state), count in sorted(counted.items()):
        metric.add(count, pool=pool, model=model, state=state)
    return metric


def _units(units: Iterable[UnitStandingView]) -> tuple[Metric, ...]:
    jobs = Metric("muster_project_jobs", "Jobs of projects that hold something, and those that are queued.")
    held = {
        what: Metric(
            f"muster_project_{name}", f"{said} of projects by pool: held, quota, share, and what queued jobs want."
        )
        for what, name, said in (
            ("gpus", "gpus", "GPUs"),
            ("cpus", "cpus", "CPUs"),
            ("memory", "memory_bytes", "Bytes of memory"),
        )
    }
    for view in units:
        if view.unit.kind is not UnitKind.PROJECT:
            continue
        jobs.add(view.running, project=view.unit.name, state="running")
        jobs.add(view.queued, project=view.unit.name, state="queued")
        for pool in view.pools:
            told = {"held": pool.held, "quota": pool.quota, "share": pool.share, "waiting": pool.waiting}
            for what, amounts in told.items():
                for resource in RESOURCES:
                    value = _plain(amounts, resource)
                    held[resource].add(value, project=view.unit.name, pool=pool.pool, what=what)
    return (jobs, *held.values())


def _plain(amounts: Amounts, resource: str) -> float | None:
    """An amount in GPUs, CPUs or bytes; None: it has no bound."""
    amount: int = getattr(amounts, resource)
    return None if amount >= UNLIMITED_AMOUNT else amount / _UNITS[resource]


def _queue(queue: Iterable[QueueLine], now: datetime) -> tuple[Metric, ...]:
    jobs = Metric("muster_queue_jobs", "Queued jobs by pool and by why they wait.")
    gpus = Metric("muster_queue_gpus", "GPUs that queued jobs want, by pool.")
    oldest = Metric("muster_queue_oldest_seconds", "Time that the oldest queued job of a pool has waited.")
    counted, wanted, since = Counter[tuple[str, str]](), Counter[str](), dict[str, datetime]()
    for line in queue:
        counted[line.pool, line.reason] += 1
        wanted[line.pool] += line.size.gpus
        since[line.pool] = min(since.get(line.pool, line.since), line.since)
    for (pool, reason), count in sorted(counted.items()):
        jobs.add(count, pool=pool, reason=reason)
    for pool, amount in sorted(wanted.items()):
        gpus.add(amount / 1000, pool=pool)
        oldest.add(max(0.0, (now - since[pool]).total_seconds()), pool=pool)
    return jobs, gpus, oldest
