"""Values of nodes.proto and the inventory of model.proto: what a node has, and what clients see of it."""

import re
from collections.abc import Mapping
from datetime import timedelta

from muster.domain.fleet.node import OWN_LABELS, Cordon, Gpu, GpuProcess, Inventory, NodeState, NodeView, RuntimeOffer
from muster.domain.fleet.window import DEFAULT_NOTICE, Window, WindowMode
from muster.domain.ids import ExecutionId, GpuUuid, NodeId
from muster.domain.jobs.job import NODE_LABEL, RuntimeKind
from muster.domain.jobs.placing.mig import MIG_PROFILE, profile_named
from muster.domain.jobs.placing.portion import GpuShare
from muster.domain.jobs.placing.taint import TAINT_VALUE, NodeTaint, Taint, TaintName
from muster.domain.jobs.placing.toleration import TaintEffect
from muster.domain.quoting import quote
from muster.rpc.v1 import model_pb2, nodes_pb2
from muster.wire import checks


def inventory_to_wire(inventory: Inventory) -> model_pb2.Inventory:
    """What a node has."""
    return model_pb2.Inventory(
        cpus=inventory.cpus,
        memory=inventory.memory,
        disk_total=inventory.disk_total,
        disk_free=inventory.disk_free,
        kernel=inventory.kernel,
        os=inventory.os,
        architecture=inventory.architecture,
        addresses=inventory.addresses,
        gpus=map(gpu_to_wire, inventory.gpus),
        gpu_driver=inventory.gpu_driver or "",
        cuda=inventory.cuda or "",
        gpu_problem=inventory.gpu_problem or "",
        runtimes=[
            model_pb2.RuntimeOffer(kind=o.kind, version=o.version, gpus=o.gpus, problem=o.problem or "")
            for o in inventory.runtimes
        ],
        labels=inventory.labels,
    )


def given_labels(labels: Mapping[str, str], where: str) -> dict[str, str]:
    """Labels that a token or an operator gives a node; raises WireError."""
    checks.few(labels, where)
    for name, value in labels.items():
        checks.plain(checks.text(value, where), where)
        if not re.fullmatch(NODE_LABEL, name):
            raise checks.WireError(where, f"has {name[:80]!r}; a name has at most 128 letters, digits and inner ._/-")
        if name.startswith(OWN_LABELS):
            raise checks.WireError(where, f"has {name!r}; what begins with {OWN_LABELS} is for the agent of the node")
    return dict(labels)


def inventory_from_wire(message: model_pb2.Inventory) -> Inventory:
    """What a node has; raises WireError."""
    for name in ("addresses", "gpus", "labels", "runtimes"):
        checks.few(getattr(message, name), f"Inventory.{name}")
    for name in ("kernel", "os", "architecture", "gpu_driver", "cuda"):
        checks.text(getattr(message, name), f"Inventory.{name}")
    for label in (*message.labels, *message.labels.values()):
        checks.text(label, "Inventory.labels")
    checks.unique([gpu.uuid for gpu in message.gpus], "Inventory.gpus")
    checks.unique([offer.kind for offer in message.runtimes], "Inventory.runtimes")
    return Inventory(
        cpus=checks.between(message.cpus, 1, checks.MAX_COUNT, "Inventory.cpus"),
        memory=checks.size(message.memory, "Inventory.memory"),
        disk_total=checks.size(message.disk_total, "Inventory.disk_total"),
        disk_free=checks.size(message.disk_free, "Inventory.disk_free"),
        kernel=message.kernel,
        os=message.os,
        architecture=message.architecture,
        addresses=tuple(checks.address(address, "Inventory.addresses") for address in message.addresses),
        gpus=tuple(gpu_from_wire(gpu) for gpu in message.gpus),
        gpu_driver=message.gpu_driver or None,
        cuda=message.cuda or None,
        gpu_problem=checks.message(message.gpu_problem) or None,
        runtimes=tuple(_runtime_offer(offer) for offer in message.runtimes),
        labels=dict(message.labels),
    )


def gpu_to_wire(gpu: Gpu) -> model_pb2.Gpu:
    """One GPU."""
    return model_pb2.Gpu(
        uuid=gpu.uuid,
        index=gpu.index,
        model=gpu.model,
        memory=gpu.memory,
        compute_capability=gpu.compute_capability or "",
        pci_bus_id=gpu.pci_bus_id or "",
        numa_node=gpu.numa_node,
        nvlink_peers=gpu.nvlink_peers,
        mig_enabled=gpu.mig_enabled,
        mig=gpu.mig or "",
        problems=gpu.problems,
        processes=[model_pb2.GpuProcess(pid=process.pid, memory=process.memory) for process in gpu.processes],
    )


def gpu_from_wire(message: model_pb2.Gpu) -> Gpu:
    """One GPU; raises WireError."""
    for name in ("nvlink_peers", "problems", "processes"):
        checks.few(getattr(message, name), f"Gpu.{name}")
    for name in ("model", "compute_capability", "pci_bus_id", "mig"):
        checks.text(getattr(message, name), f"Gpu.{name}")
    return Gpu(
        uuid=GpuUuid(checks.identifier(message.uuid, "Gpu.uuid")),
        index=checks.between(message.index, 0, checks.MAX_COUNT, "Gpu.index"),
        model=message.model,
        memory=checks.size(message.memory, "Gpu.memory"),
        compute_capability=message.compute_capability or None,
        pci_bus_id=message.pci_bus_id or None,
        numa_node=message.numa_node if message.HasField("numa_node") else None,
        nvlink_peers=tuple(GpuUuid(checks.identifier(uuid, "Gpu.nvlink_peers")) for uuid in message.nvlink_peers),
        mig_enabled=message.mig_enabled if message.HasField("mig_enabled") else None,
        mig=_profile(message),
        problems=tuple(checks.message(problem) for problem in message.problems),
        processes=tuple(_gpu_process(process) for process in message.processes),
    )


def gpu_share_to_wire(share: GpuShare, uuid: str = "") -> model_pb2.GpuShare:
    """What is given of a GPU."""
    return model_pb2.GpuShare(uuid=uuid, thousandths=share.thousandths, memory=share.memory)


def gpu_share_from_wire(message: model_pb2.GpuShare) -> GpuShare:
    """What is given of a GPU; raises WireError."""
    thousandths = checks.between(message.thousandths, 1, checks.MAX_COUNT, "GpuShare.thousandths")
    return GpuShare(thousandths, checks.size(message.memory, "GpuShare.memory"))


def node_to_wire(node: NodeView) -> nodes_pb2.Node:
    """A node as a client sees it."""
    return nodes_pb2.Node(
        name=node.name,
        state=node.state,
        address=node.address,
        inventory=inventory_to_wire(node.inventory),
        executions=node.executions,
        gpus_taken=node.gpus_taken,
        gpus_shared=[gpu_share_to_wire(share, uuid) for uuid, share in node.gpus_shared.items()],
        cpu_millis_taken=node.cpu_millis_taken,
        memory_taken=node.memory_taken,
        agent_version=node.agent_version,
        last_seen_at=checks.timestamp(node.last_seen_at),
        joined_at=checks.timestamp(node.joined_at),
        cordon=_cordon_to_wire(node.cordon),
        taints=map(_node_taint_to_wire, node.taints),
        pool=node.pool,
    )


def node_from_wire(message: nodes_pb2.Node) -> NodeView:
    """A node as a client sees it; raises WireError."""
    checks.require(message, "inventory")
    return NodeView(
        name=NodeId(checks.identifier(message.name, "Node.name")),
        state=checks.word(NodeState, message.state, "Node.state"),
        address=checks.address(message.address, "Node.address"),
        inventory=inventory_from_wire(message.inventory),
        executions=tuple(ExecutionId(execution) for execution in message.executions),
        gpus_taken=tuple(GpuUuid(uuid) for uuid in message.gpus_taken),
        gpus_shared={GpuUuid(each.uuid): gpu_share_from_wire(each) for each in message.gpus_shared},
        cpu_millis_taken=checks.between(message.cpu_millis_taken, 0, checks.MAX_COUNT, "Node.cpu_millis_taken"),
        memory_taken=checks.size(message.memory_taken, "Node.memory_taken"),
        agent_version=message.agent_version,
        last_seen_at=checks.optional_moment(message, "last_seen_at"),
        joined_at=checks.optional_moment(message, "joined_at"),
        cordon=_cordon_from_wire(message),
        taints=tuple(map(_node_taint_from_wire, message.taints)),
        pool=checks.text(message.pool, "Node.pool"),
    )


def taint_to_wire(taint: Taint) -> nodes_pb2.Taint:
    """What keeps jobs off a node that do not tolerate it."""
    return nodes_pb2.Taint(key=taint.key, value=taint.value, effect=taint.effect)


def taint_from_wire(message: nodes_pb2.Taint) -> Taint:
    """What keeps jobs off a node that do not tolerate it; raises WireError."""
    value = checks.plain(message.value, "Taint.value")
    checks.between(len(value), 0, TAINT_VALUE, "the length of Taint.value")
    return Taint(
        key=_taint_key(message.key, "Taint.key"),
        value=value,
        effect=checks.word(TaintEffect, message.effect, "Taint.effect"),
    )


def taint_name_to_wire(name: TaintName) -> nodes_pb2.TaintName:
    """Taints by name."""
    return nodes_pb2.TaintName(key=name.key, effect=name.effect or "")


def taint_name_from_wire(message: nodes_pb2.TaintName) -> TaintName:
    """Taints by name; raises WireError."""
    return TaintName(
        key=_taint_key(message.key, "TaintName.key"),
        effect=checks.word(TaintEffect, message.effect, "TaintName.effect") if message.effect else None,
    )


def _taint_key(key: str, where: str) -> str:
    if not re.fullmatch(NODE_LABEL, key):
        raise checks.WireError(where, f"is {key[:80]!r}; a key has at most 128 letters, digits and inner ._/-")
    return key


def _node_taint_to_wire(taint: NodeTaint) -> nodes_pb2.NodeTaint:
    return nodes_pb2.NodeTaint(
        taint=taint_to_wire(taint.taint), since=checks.timestamp(taint.since), after=checks.duration(taint.after)
    )


def _node_taint_from_wire(message: nodes_pb2.NodeTaint) -> NodeTaint:
    checks.require(message, "taint", "since")
    return NodeTaint(
        taint=taint_from_wire(message.taint),
        since=checks.moment(message.since, "NodeTaint.since"),
        after=checks.optional_span(message, "after") or timedelta(),
    )


def window_to_wire(window: Window) -> nodes_pb2.Window:
    """Nodes that are out of service, or for one project alone, from a time to a time."""
    return nodes_pb2.Window(
        name=window.name,
        begins=checks.timestamp(window.begins),
        ends=checks.timestamp(window.ends),
        nodes=window.nodes,
        labels=window.labels,
        project=window.project,
        reason=window.reason,
        notice=checks.duration(window.notice),
        mode=window.mode,
    )


def window_from_wire(message: nodes_pb2.Window) -> Window:
    """Nodes that are out of service, or for one project alone, from a time to a time; raises WireError."""
    checks.require(message, "begins", "ends")
    checks.few(message.labels, "Window.labels")
    notice = checks.optional_span(message, "notice")
    return Window(
        name=checks.label(message.name, "Window.name"),
        begins=checks.moment(message.begins, "Window.begins"),
        ends=checks.moment(message.ends, "Window.ends"),
        nodes=tuple(NodeId(checks.identifier(node, "Window.nodes")) for node in message.nodes),
        labels=dict(message.labels),
        project=checks.label(message.project, "Window.project") if message.project else "",
        reason=checks.message(message.reason),
        notice=DEFAULT_NOTICE if notice is None else notice,
        mode=checks.word(WindowMode, message.mode, "Window.mode") if message.mode else WindowMode.WAIT,
    )


def _cordon_to_wire(cordon: Cordon | None) -> nodes_pb2.Cordon | None:
    return None if cordon is None else nodes_pb2.Cordon(since=checks.timestamp(cordon.since), reason=cordon.reason)


def _cordon_from_wire(message: nodes_pb2.Node) -> Cordon | None:
    if not message.HasField("cordon"):
        return None
    return Cordon(since=checks.moment(message.cordon.since, "Cordon.since"), reason=message.cordon.reason)


def _runtime_offer(message: model_pb2.RuntimeOffer) -> RuntimeOffer:
    return RuntimeOffer(
        kind=checks.word(RuntimeKind, message.kind, "RuntimeOffer.kind"),
        version=checks.text(message.version, "RuntimeOffer.version"),
        gpus=message.gpus,
        problem=checks.message(message.problem) or None,
    )


def _profile(message: model_pb2.Gpu) -> str | None:
    if not message.mig:
        return profile_named(message.model)  # agents of before say it in the name alone
    if not re.fullmatch(MIG_PROFILE, message.mig):
        raise checks.WireError("Gpu.mig", f"is {quote(message.mig)}, which is no MIG profile")
    return message.mig


def _gpu_process(message: model_pb2.GpuProcess) -> GpuProcess:
    return GpuProcess(
        pid=checks.between(message.pid, 0, checks.MAX_COUNT, "GpuProcess.pid"),
        memory=checks.size(message.memory, "GpuProcess.memory") if message.HasField("memory") else None,
    )
