"""Nodes as clients see them."""

from collections.abc import Iterator

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.placement.capacity import key_of
from muster.domain.errors import UnknownNameError
from muster.domain.fleet.node import NodeView
from muster.domain.ids import NodeId


def node_views(cluster: Cluster) -> Iterator[NodeView]:
    """All nodes, node-2 before node-10."""
    return (node_view(cluster, node) for node in sorted(cluster.nodes, key=key_of))


def unknown_node(node: NodeId) -> UnknownNameError:
    """The error about a node that is not there."""
    return UnknownNameError(f"there is no node {node!r}; `muster nodes` lists them")


def node_view(cluster: Cluster, node: NodeId) -> NodeView:
    """A node and what of it is given away; raises UnknownNameError."""
    record = cluster.nodes.get(node)
    if record is None:
        raise unknown_node(node)
    used, presence = cluster.load.used(node), cluster.presence[node]
    return NodeView(
        name=node,
        state=presence.state,
        address=record.address,
        inventory=record.inventory,
        executions=tuple(sorted(used.executions)),
        gpus_taken=tuple(gpu.uuid for gpu in record.inventory.gpus if gpu.uuid in used.gpus),
        gpus_shared=used.shares(record.inventory.gpus),
        cpu_millis_taken=used.cpu_millis,
        memory_taken=used.memory,
        agent_version=record.agent_version,
        last_seen_at=presence.last_seen_at if presence.seen else None,
        joined_at=record.joined_at,
        cordon=record.cordon,
        taints=record.taints,
        pool=cluster.load.total.of(node).pool,
    )
