"""What keeps two attempts of a job from running at once, on the coordinator's side (`docs/fencing.md`)."""

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Attempt, Execution, Job
from muster.domain.gangs.fence import PERMIT_ENDS_WITHIN, WITNESSES, Fence, Witness
from muster.domain.gangs.plan import Goal
from muster.domain.ids import AttemptId, NodeId
from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.lifecycle import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Unproven:
    """Nobody can tell that an attempt has ended everywhere."""

    node: NodeId
    """Where it may still run."""

    def __str__(self) -> str:
        return (
            f"{self.node} may only be cut off and still run it, no other node can tell that it does not, "
            "and two attempts must never run at once"
        )


def first_nodes(cluster: Cluster, attempt_id: AttemptId) -> tuple[NodeId, ...]:
    """The nodes of an attempt that is placed, in rank order, as many as are needed to find the witnesses of any."""
    nodes: dict[NodeId, None] = {}
    for member in cluster.gangs.members(attempt_id):
        if member.node is not None:
            nodes[member.node] = None
        if len(nodes) > WITNESSES:
            break
    return tuple(nodes)


def witnesses(first: tuple[NodeId, ...], node: NodeId) -> tuple[NodeId, ...]:
    """The nodes that the agent of a node asks."""
    return tuple(islice((each for each in first if each != node), WITNESSES))


def fence(cluster: Cluster, attempt_id: AttemptId, first: tuple[NodeId, ...], node: NodeId) -> Fence:
    """What the agent of a node needs to know of an attempt."""
    spec = cluster.jobs[attempt_id.job].spec
    return Fence(
        lost_after=spec.timeouts.lost_after,
        on_disconnect=spec.on_disconnect,
        key=hmac.digest(cluster.fleet_key, f"{attempt_id.job}/{attempt_id.number}".encode(), hashlib.sha256),
        witnesses=tuple(Witness(node=each, address=peer_address(cluster, each)) for each in witnesses(first, node)),
    )


def lost_at(cluster: Cluster, execution: Execution) -> datetime | None:
    """When an execution on a silent node is lost; None: not as things stand, as its gang may be going on as a whole."""
    assert execution.node is not None
    job, attempt = cluster.jobs[execution.job], cluster.attempts[execution.attempt_id]
    heard_at, lost_after = cluster.presence.heard_at(execution.node), job.spec.timeouts.lost_after
    if not _may_go_on(job, attempt) or _nothing_follows(job, attempt):
        return heard_at + lost_after
    if attempt.goal is Goal.STOP and _has_proof(cluster, execution):
        return heard_at + lost_after
    since = min(_contacts(cluster, execution), default=None)
    return None if since is None else max(heard_at, since) + lost_after


def over_from(cluster: Cluster, attempt_id: AttemptId) -> datetime | Unproven:
    """From when on nothing of an attempt runs whose executions have all ended or are lost."""
    job, attempt, over = cluster.jobs[attempt_id.job], cluster.attempts[attempt_id], cluster.started_at
    if attempt.released_at is None:
        return over
    lost = [
        member for member in cluster.gangs.members(attempt_id) if member.state is State.LOST and not member.surely_over
    ]
    first, words = first_nodes(cluster, attempt_id), _last_words(cluster, attempt_id) if lost else {}
    for member in lost:
        over = max(over, member.silent_until or over)
        if not _may_go_on(job, attempt):
            continue
        node = member.node or NodeId("")
        known = [words[witness] for witness in witnesses(first, node) if witness in words]
        if not known:
            return Unproven(node=node)
        over = max(over, min(known) + PERMIT_ENDS_WITHIN)
    return over


def _may_go_on(job: Job, attempt: Attempt) -> bool:
    """Whether user code may run that no deadline ends by itself."""
    return attempt.released_at is not None and job.spec.on_disconnect is OnDisconnect.KEEP


def _nothing_follows(job: Job, attempt: Attempt) -> bool:
    """Whether there will be no other attempt, so that nothing can run twice: somebody stops it, or it has succeeded."""
    return job.stop_requested_at is not None or (attempt.goal is Goal.STOP and attempt.failure is None)


def _has_proof(cluster: Cluster, execution: Execution) -> bool:
    """Whether one of its witnesses gives no permits any more, so that it must end in time."""
    attempt_id = execution.attempt_id
    words = _last_words(cluster, attempt_id)
    return any(each in words for each in witnesses(first_nodes(cluster, attempt_id), execution.node or NodeId("")))


def _contacts(cluster: Cluster, execution: Execution) -> Iterator[datetime]:
    """Since when the witnesses of an execution that are in contact have been so."""
    attempt_id = execution.attempt_id
    for witness in witnesses(first_nodes(cluster, attempt_id), execution.node or NodeId("")):
        presence = cluster.presence.get(witness)
        if presence is not None and presence.session is not None and presence.in_contact_since is not None:
            yield presence.in_contact_since


def _last_words(cluster: Cluster, attempt_id: AttemptId) -> dict[NodeId, datetime]:
    """When each node whose part is over, and whose agent answers so, can last have told a peer to go on.

    A time before the coordinator's start was told by a clock that may have been set since; it counts as the start.
    """
    words: dict[NodeId, datetime] = {}
    silent: set[NodeId] = set()
    for member in cluster.gangs.members(attempt_id):
        if member.node is None:
            continue
        if member.state is State.LOST and not member.surely_over:
            silent.add(member.node)
        elif member.state is not State.SUCCEEDED and member.last_permit_at is not None:
            at = max(member.last_permit_at, cluster.started_at)
            words[member.node] = max(at, words.get(member.node, at))
    return {node: at for node, at in words.items() if node not in silent}


def peer_address(cluster: Cluster, node: NodeId) -> str:
    """Where the agent of a node answers other agents; empty: it does not."""
    known = cluster.nodes.get(node)
    if known is None or not known.peer_port:
        return ""
    return f"[{known.address}]:{known.peer_port}" if ":" in known.address else f"{known.address}:{known.peer_port}"
