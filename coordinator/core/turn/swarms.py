"""Which nodes of an attempt fetch the same, and the key with which they know each other."""

import hashlib
import hmac

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Execution
from coordinator.core.turn.fencing import peer_address
from coordinator.core.turn.restoring import for_execution
from muster.domain.data.sharing.swarm_pass import SwarmMember, SwarmPass
from muster.domain.data.swarm import swarms_of
from muster.domain.fleet.features import SWARM
from muster.domain.ids import AttemptId, NodeId
from muster.domain.jobs.image import shared_as
from muster.domain.jobs.job import JobSpec, Role

Swarms = tuple[tuple[NodeId, ...], ...]
"""The nodes of an attempt as several swarms, in rank order."""


def wants(role: Role, wanted: str) -> bool:
    """Whether executions of a role fetch something: a file, a tree, or an image."""
    if role.image and wanted == shared_as(role.image):
        return True
    if role.code is not None and role.code.tree == wanted:
        return True
    return any(
        wanted in {each.shared_as(tree.tree) for tree in each.trees} | {one.shared_as() for one in each.singly}
        for each in role.inputs
    )


def restores(cluster: Cluster, execution: Execution, tree: str) -> bool:
    """Whether an execution finds the part of a checkpoint that all of its role find."""
    found = for_execution(cluster, execution)
    return found is not None and found.of_first.tree == tree


def swarms_for(cluster: Cluster, attempt_id: AttemptId, wanted: str) -> Swarms:
    """The nodes that fetch something for an attempt; they stay the same for as long as it lasts."""
    spec = cluster.jobs[attempt_id.job].spec
    ranks = _ranks(spec, wanted)
    nodes = dict.fromkeys(
        member.node
        for member in cluster.gangs.members(attempt_id)
        if member.node is not None and (member.rank in ranks or restores(cluster, member, wanted))
    )
    return tuple(tuple(map(NodeId, each)) for each in swarms_of(tuple(nodes)))


def swarm_pass(cluster: Cluster, attempt_id: AttemptId, wanted: str, swarms: Swarms, node: NodeId) -> SwarmPass:
    """The swarm of one node as it is told of it; agents that know nothing of swarms are in none."""
    own = next((each for each in swarms if node in each), ())
    members = tuple(
        SwarmMember(node=each, address=peer_address(cluster, each)) for each in own if _gives_pieces(cluster, each)
    )
    if len(members) < 2 or all(each.node != node for each in members):  # noqa: PLR2004 - there is no other node
        return SwarmPass()
    about = f"swarm/{attempt_id.job}/{attempt_id.number}/{wanted}"
    return SwarmPass(key=hmac.digest(cluster.fleet_key, about.encode(), hashlib.sha256), members=members)


def _gives_pieces(cluster: Cluster, node: NodeId) -> bool:
    known = cluster.nodes.get(node)
    return known is not None and SWARM in known.features and bool(known.peer_port)


def _ranks(spec: JobSpec, wanted: str) -> frozenset[int]:
    return frozenset(rank for role, ranks in spec.ranks_by_role() if wants(role, wanted) for rank in ranks)
