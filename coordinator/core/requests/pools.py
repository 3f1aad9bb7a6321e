"""What admins ask about pools: say which nodes are in one and what holds there, and take that back."""

from collections.abc import Iterable, Iterator

from coordinator.core.answers import Answer, PoolKept, RefusalCause, Refused
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import PoolRemoved, PoolSet
from coordinator.core.scheduling.run_limits import pools_for, too_short
from coordinator.core.sharing.sentences import longest_run_text
from coordinator.core.turn.notices import notice_fleet
from coordinator.core.turn.turn import Turn
from muster.domain.event import FleetEventKind
from muster.domain.fleet.pool import DEFAULT_POOL, POOL_LABEL, Pool, pool_of
from muster.domain.fleet.quota import MOST_POOLS
from muster.domain.ids import NodeId
from muster.domain.jobs.job import JobSpec
from muster.domain.quantity import counted
from muster.domain.quoting import did_you_mean, nearest, quote

NODES_WARNED_OF = 3
"""Most nodes that a warning names."""


def put(turn: Turn, event: PoolSet) -> Answer:
    """Say which nodes are in a pool and what holds there, in place of what was said before."""
    pool, pools = event.pool, turn.cluster.records.pools
    before = pools.get(pool.name)
    if before is None and len(pools) >= MOST_POOLS:
        message = f"{len(pools)} pools are set, as many as a fleet may have; remove some (`muster pools`)"
        return Refused(cause=RefusalCause.EXHAUSTED, message=message)
    if not event.anyway and (before is None or before.selector != pool.selector):
        refused = _takes_nothing(turn.cluster, pool)
        if refused is not None:
            return refused
    if pool != before:
        notice_fleet(turn, FleetEventKind.POOL_SET, text=pool.name)
        turn.put(pool)
        turn.reconsider_queue()
    return PoolKept(pool=pool, before=before, warnings=tuple(warnings(turn.cluster, pool.name)))


def remove(turn: Turn, event: PoolRemoved) -> Answer:
    """Say nothing of a pool any longer; its nodes are in another one, or in that of their label."""
    pool = turn.cluster.records.pools.get(event.name)
    if pool is None:
        return Refused(cause=RefusalCause.UNKNOWN, message=_unset(turn.cluster, event.name))
    notice_fleet(turn, FleetEventKind.POOL_REMOVED, text=pool.name)
    turn.forget(pool)
    return PoolKept(pool=None, before=pool, warnings=tuple(_left_waiting(turn.cluster, pool.name)))


def known_pools(cluster: Cluster) -> frozenset[str]:
    """The pools that a job can name: those that are set, and those that have nodes, there or not."""
    return frozenset((*cluster.records.pools, *cluster.load.total.fresh().pools, DEFAULT_POOL))


def unknown_pool(cluster: Cluster, name: str) -> str:
    """The sentence for a pool that is not there, with the name that was probably meant."""
    known = known_pools(cluster)
    near = nearest(name, known)
    meant = f"did you mean {quote(near)}?" if near is not None else "`muster pools` lists them"
    return f"there is no pool {quote(name)}; {meant}"


def refusal(cluster: Cluster, spec: JobSpec) -> Refused | None:
    """Why a job cannot name these pools, or may run for too long in all of them; None: it can go to one."""
    return _unknown(cluster, spec) or _runs_too_long(cluster, spec)


def _unknown(cluster: Cluster, spec: JobSpec) -> Refused | None:
    if not spec.pools:
        return None
    known = known_pools(cluster)
    wrong = next((each for each in enumerate(spec.pools) if each[1].pool not in known), None)
    if wrong is None:
        return None
    place, choice = wrong
    return Refused(cause=RefusalCause.INVALID, message=f"pools[{place}]: {unknown_pool(cluster, choice.pool)}")


def _runs_too_long(cluster: Cluster, spec: JobSpec) -> Refused | None:
    """Why a job may run for too long in all of its pools; None: it may run in one of them."""
    closed, limit = too_short(cluster, spec), spec.timeouts.run
    if limit is None or not closed or pools_for(cluster, spec):
        return None
    wanted = tuple(choice.pool for choice in spec.pools) or tuple(closed)
    message = longest_run_text(limit, {pool: closed[pool] for pool in wanted if pool in closed})
    return Refused(cause=RefusalCause.IMPOSSIBLE, message=message)


def warnings(cluster: Cluster, name: str) -> Iterator[str]:
    """Nodes of a pool that others claim too, nodes of others that it claims, and levels that none of its nodes has."""
    yield from _shared_nodes(cluster, name)
    yield from _levels_of_none(cluster, name)


def _levels_of_none(cluster: Cluster, name: str) -> Iterator[str]:
    """Levels of a pool whose label none of its nodes carries, so that no gang stays together there."""
    pool = cluster.records.pools.get(name)
    nodes = cluster.load.total.fresh()
    if pool is None or set(pool.levels) <= set(nodes.levels.of(name)):
        return
    carried = {label for node in nodes if node.pool == name for label in node.labels}
    for level in pool.levels:
        if carried and level not in carried:
            meant = did_you_mean(level, carried, quote)
            yield f"no node of pool {name} carries the label {quote(level)}, which is one of its levels{meant}"


def _shared_nodes(cluster: Cluster, name: str) -> Iterator[str]:
    pools, shared = cluster.records.pools, dict[tuple[str, tuple[str, ...]], list[NodeId]]()
    for node in cluster.nodes.values():
        labels = node.inventory.labels
        mine = pool_of(labels, pools.values())
        named = labels.get(POOL_LABEL)
        claims = {pool.name for pool in pools.values() if pool.takes(labels)} | ({named} if named else set())
        others = tuple(sorted(claims - {mine}))
        if others and name in {mine, *others}:
            shared.setdefault((mine, others), []).append(node.name)
    for (mine, others), nodes in sorted(shared.items()):
        claim, them = "claims" if len(others) == 1 else "claim", "it" if len(nodes) == 1 else "them"
        yield f"{_nodes(nodes)} in pool {mine}, though {_and(others)} {claim} {them} too"


def _takes_nothing(cluster: Cluster, pool: Pool) -> Refused | None:
    """Why a selector is probably mistyped: no node carries its labels."""
    if not pool.selector or any(pool.takes(node.inventory.labels) for node in cluster.nodes.values()):
        return None
    seen: dict[str, set[str]] = {}
    for node in cluster.nodes.values():
        for label, value in node.inventory.labels.items():
            seen.setdefault(label, set()).add(value)
    message = f"no node carries the labels of pool {pool.name}"
    for label, value in pool.selector.items():
        if label not in seen:
            message += f": none has a label {quote(label)}{did_you_mean(label, seen, quote)}"
            break
        if value not in seen[label]:
            message += f": none has {label}={value}{did_you_mean(value, seen[label], f'{label}='.__add__)}"
            break
    return Refused(cause=RefusalCause.CONFLICT, message=f"{message}; `--anyway` sets it before there are any")


def _left_waiting(cluster: Cluster, name: str) -> Iterator[str]:
    """Jobs in the queue that name a pool that is not there any more."""
    if name in known_pools(cluster):
        return
    left = sum(any(choice.pool == name for choice in job.spec.pools) for job in cluster.queue)
    if left:
        jobs = f"{counted(left, 'queued job')} {'names' if left == 1 else 'name'} it"
        yield f"{jobs}; what names no other pool waits until there is one of that name, or until it is stopped"


def _unset(cluster: Cluster, name: str) -> str:
    if name in cluster.load.total.fresh().pools:
        return f"nothing is set for pool {quote(name)}; it is there because nodes are in it by their label"
    return unknown_pool(cluster, name)


def _nodes(nodes: Iterable[NodeId]) -> str:
    named = sorted(nodes)
    if len(named) == 1:
        return f"node {named[0]} is"
    more = f" and {len(named) - NODES_WARNED_OF} more" if len(named) > NODES_WARNED_OF else ""
    return f"nodes {', '.join(named[:NODES_WARNED_OF])}{more} are"


def _and(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
