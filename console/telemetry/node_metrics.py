"""Every node, GPU and execution in figures."""

from collections.abc import Iterable, Mapping

from console.telemetry.exposition import Metric
from console.telemetry.fleet_metrics import uses
from muster.domain.fleet.node import NodeState, NodeView
from muster.domain.ids import GpuUuid
from muster.domain.telemetry.sample import ExecutionUse, GpuUse, HostUse, NodeSample, Sample


def of_nodes(nodes: Iterable[NodeView], samples: Iterable[NodeSample]) -> tuple[Metric, ...]:
    """All metrics of these nodes; what their samples do not tell is left out."""
    found, kept = _Metrics(), list(samples)
    by_node, seen = dict(kept), uses(kept)
    for node in nodes:
        found.add_node(node)
        found.add_gpus(node, seen.get(node.name, {}))
        if (sample := by_node.get(node.name)) is not None:
            found.add_host(node.name, sample.host)
            found.add_executions(node.name, sample)
    return tuple(found.by_name.values())


class _Metrics:
    def __init__(self) -> None:
        self.by_name: dict[str, Metric] = {}

    def add_node(self, node: NodeView) -> None:
        """What the coordinator knows of it."""
        labels = {"node": node.name, "pool": node.pool}
        self._of("muster_node_up", "Whether the coordinator hears the node.", node.state is NodeState.READY, labels)
        self._of("muster_node_cordoned", "Whether nothing new is placed on it.", node.cordon is not None, labels)
        self._of("muster_node_executions", "Executions that hold something on it.", len(node.executions), labels)
        self._of("muster_node_cpus", "CPUs that it has.", node.inventory.cpus, labels)
        self._of("muster_node_cpus_given", "CPUs that are given.", node.cpu_millis_taken / 1000, labels)
        self._of("muster_node_memory_given_bytes", "Memory that is given.", node.memory_taken, labels)
        self._of("muster_node_disk_free_bytes", "Free disk of the agent's state.", node.inventory.disk_free, labels)

    def add_host(self, node: str, host: HostUse) -> None:
        """What its agent sees of it."""
        labels = {"node": node}
        self._of("muster_node_cpus_busy", "CPUs that were busy.", host.cpus, labels)
        self._of("muster_node_memory_used_bytes", "Memory that new programs cannot have.", host.memory, labels)
        self._of("muster_node_memory_bytes", "Memory that it has.", host.memory_total, labels)
        self._of("muster_node_disk_read_bytes_per_second", "From all disks.", host.read_rate, labels)
        self._of("muster_node_disk_write_bytes_per_second", "To all disks.", host.write_rate, labels)
        self._of("muster_node_network_receive_bytes_per_second", "From all networks.", host.receive_rate, labels)
        self._of("muster_node_network_send_bytes_per_second", "To all networks.", host.send_rate, labels)
        for resource, part in zip(("cpu", "memory", "io"), host.stalled, strict=True):
            told = "Part of the time in which something waited for a resource."
            self._of("muster_node_stalled_ratio", told, part, {**labels, "resource": resource})

    def add_gpus(self, node: NodeView, seen: Mapping[GpuUuid, GpuUse]) -> None:
        """What is known and seen of its GPUs."""
        for gpu in node.inventory.gpus:
            labels = {"node": node.name, "gpu": str(gpu.index), "uuid": gpu.uuid}
            given = gpu.uuid in node.gpus_taken or gpu.uuid in node.gpus_shared
            self._of("muster_gpu_allocated", "Whether an execution has it, or a portion of it.", given, labels)
            self._of("muster_gpu_healthy", "Whether executions may be placed on it.", not gpu.problems, labels)
            self._of("muster_gpu_memory_bytes", "Memory that it has.", gpu.memory, labels)
            if (use := seen.get(gpu.uuid)) is None:
                continue
            self._of("muster_gpu_busy_ratio", "Part of the time in which something ran on it.", use.busy, labels)
            self._of("muster_gpu_memory_used_bytes", "Memory that is held.", use.memory, labels)
            self._of("muster_gpu_power_watts", "Power that it draws.", use.watts, labels)
            self._of("muster_gpu_temperature_celsius", "How hot it is.", use.celsius, labels)
            clock = None if use.clock_mhz is None else use.clock_mhz * 1e6
            self._of("muster_gpu_sm_clock_hertz", "The clock of its processors.", clock, labels)
            self._of("muster_gpu_throttled", "Whether heat or a limit of power slowed it down.", use.throttled, labels)

    def add_executions(self, node: str, sample: Sample) -> None:
        """What is seen of what runs there, of those executions that the caller may look at."""
        for execution, use in sample.executions:
            job, attempt, rank = execution.rsplit("-", 2)
            self._add_execution({"node": node, "job": job, "attempt": attempt, "rank": rank}, use)

    def _add_execution(self, labels: Mapping[str, str], use: ExecutionUse) -> None:
        self._of("muster_execution_cpus_busy", "CPUs that an execution kept busy.", use.cpus, labels)
        self._of("muster_execution_memory_bytes", "Memory of an execution.", use.memory, labels)
        self._of("muster_execution_disk_read_bytes_per_second", "What it read from disks.", use.read_rate, labels)
        self._of("muster_execution_disk_write_bytes_per_second", "What it wrote to disks.", use.write_rate, labels)
        self._of("muster_execution_processes", "Its processes.", use.processes, labels)

    def _of(self, name: str, told: str, value: float | None, labels: Mapping[str, str]) -> None:
        if name not in self.by_name:
            self.by_name[name] = Metric(name, told)
        self.by_name[name].add(value, **labels)
