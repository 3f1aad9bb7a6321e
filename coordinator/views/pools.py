"""Pools as clients see them."""

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.requests.pools import known_pools, warnings
from muster.domain.fleet.pool import DEFAULT_POOL, Pool
from muster.domain.fleet.quota import NO_AMOUNTS, Amounts
from muster.domain.fleet.standing_view import PoolView
from muster.domain.ids import NodeId


def pool_views(cluster: Cluster) -> tuple[PoolView, ...]:
    """All pools by name: those that are set, and those that have nodes."""
    load, total = cluster.unit_load, cluster.load.total.fresh()
    load.settle()
    nodes: dict[str, list[NodeId]] = {}
    for node in cluster.nodes:
        nodes.setdefault(total.of(node).pool, []).append(node)
    names = known_pools(cluster) if DEFAULT_POOL in nodes else known_pools(cluster) - {DEFAULT_POOL}
    return tuple(_view(cluster, name, nodes.get(name, [])) for name in sorted({*names, *cluster.records.pools}))


def _view(cluster: Cluster, name: str, nodes: list[NodeId]) -> PoolView:
    said = cluster.records.pools.get(name)
    standing = cluster.unit_load.units.in_pool(name).root
    return PoolView(
        pool=said or Pool(name=name),
        is_set=said is not None,
        nodes=tuple(sorted(nodes)),
        capacity=Amounts(*standing.share) if nodes else NO_AMOUNTS,
        held=Amounts(*standing.held),
        warnings=tuple(warnings(cluster, name)),
    )
