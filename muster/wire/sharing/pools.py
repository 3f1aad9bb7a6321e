"""Pools: what is said of one, and what it has."""

from muster.domain.fleet.pool import Pool, PortionRule
from muster.domain.fleet.standing_view import PoolView
from muster.domain.ids import NodeId
from muster.rpc.v1 import pools_pb2 as pb
from muster.wire import checks
from muster.wire.sharing.quotas import amounts_from_wire, amounts_to_wire


def pool_to_wire(pool: Pool) -> pb.Pool:
    """What is said of a pool."""
    return pb.Pool(
        name=pool.name,
        selector=pool.selector,
        longest_run=checks.duration(pool.longest_run),
        levels=pool.levels,
        enforce=pool.enforce,
    )


def pool_from_wire(message: pb.Pool) -> Pool:
    """What is said of a pool; raises WireError."""
    checks.few(message.selector, "Pool.selector")
    checks.few(message.levels, "Pool.levels")
    for label, value in message.selector.items():
        checks.text(label, "Pool.selector")
        checks.text(value, "Pool.selector")
    return Pool(
        name=checks.label(message.name, "Pool.name"),
        selector=dict(message.selector),
        longest_run=checks.optional_span(message, "longest_run"),
        levels=tuple(checks.text(level, "Pool.levels") for level in message.levels),
        enforce=checks.word(PortionRule, message.enforce, "Pool.enforce") if message.enforce else PortionRule.TELL,
    )


def pool_view_to_wire(view: PoolView) -> pb.PoolView:
    """A pool with what it has."""
    return pb.PoolView(
        pool=pool_to_wire(view.pool),
        is_set=view.is_set,
        nodes=view.nodes,
        capacity=amounts_to_wire(view.capacity),
        held=amounts_to_wire(view.held),
        warnings=view.warnings,
    )


def pool_view_from_wire(message: pb.PoolView) -> PoolView:
    """A pool with what it has; raises WireError."""
    checks.require(message, "pool")
    return PoolView(
        pool=pool_from_wire(message.pool),
        is_set=message.is_set,
        nodes=tuple(NodeId(checks.identifier(node, "PoolView.nodes")) for node in message.nodes),
        capacity=amounts_from_wire(message.capacity),
        held=amounts_from_wire(message.held),
        warnings=tuple(map(checks.message, message.warnings)),
    )
