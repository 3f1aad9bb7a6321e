"""What clients are told of jobs whose nodes are silent: since when, what follows, what can be done."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Execution
from coordinator.core.turn import fencing
from muster.domain.fleet.node import NodeState
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.lifecycle import TERMINAL, State

NODES_NAMED = 5
"""How many of several nodes or ranks a sentence names."""


def told(cluster: Cluster, job: JobId) -> str:
    """A sentence on each group of silent nodes that a job has to do with; empty where all are there."""
    attempt_id = cluster.jobs[job].attempt_id
    silent: defaultdict[NodeId, list[Execution]] = defaultdict(list)
    for member in cluster.gangs.members(attempt_id):
        if member.node is not None and member.state not in TERMINAL and _is_silent(cluster, member.node):
            silent[member.node].append(member)
    groups: defaultdict[str, list[NodeId]] = defaultdict(list)
    for node, members in silent.items():
        groups[_outlook(cluster, attempt_id, members[0])].append(node)
    return "; ".join(
        f"{_whose(nodes, [member for node in nodes for member in silent[node]])} silent since "
        f"{clock(min(map(cluster.presence.heard_at, nodes)))}: {outlook}"
        for outlook, nodes in groups.items()
    )


def astray(cluster: Cluster, attempt_id: AttemptId) -> str:
    """The lost executions of an attempt that may still run, in words: `rank 1 on c`."""
    lost = [
        member for member in cluster.gangs.members(attempt_id) if member.state is State.LOST and not member.surely_over
    ]
    return _some([f"rank {member.rank} on {member.node}" for member in lost])


def clock(at: datetime) -> str:
    """A time of day."""
    return f"{at:%H:%M:%S} UTC"


def _is_silent(cluster: Cluster, node: NodeId) -> bool:
    presence = cluster.presence.get(node)
    return presence is None or presence.state is not NodeState.READY


def _outlook(cluster: Cluster, attempt_id: AttemptId, member: Execution) -> str:
    """What becomes of the executions on a silent node."""
    at = fencing.lost_at(cluster, member)
    if at is not None:
        return f"lost at {clock(at)} unless heard before"
    alone = not fencing.witnesses(fencing.first_nodes(cluster, attempt_id), member.node or NodeId(""))
    where = "the job runs nowhere else" if alone else "no other node of the job is heard either"
    back = "it" if alone else "one of them"
    return (
        f"{where}, so it may be going on there without the coordinator. Muster waits until {back} is back; if "
        "that will never be, `muster nodes remove NODE` says that nothing runs there any more"
    )


def _whose(nodes: Sequence[NodeId], members: Iterable[Execution]) -> str:
    ranks = sorted(member.rank for member in members)
    words = f"{'rank' if len(ranks) == 1 else 'ranks'} {_some(list(map(str, ranks)))}"
    return f"{_some(nodes)} ({words}) {'is' if len(nodes) == 1 else 'are'}"


def _some(words: Sequence[str]) -> str:
    return ", ".join(words[:NODES_NAMED]) + (
        f" and {len(words) - NODES_NAMED} more" if len(words) > NODES_NAMED else ""
    )
