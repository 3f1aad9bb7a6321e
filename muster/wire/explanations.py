"""Values of jobs.proto: why a job is where it is."""

from muster.domain.ids import NodeId
from muster.domain.jobs.explanation import Awaited, Explanation, HelpfulChange, NodeRefusal, PoolRefusal, StartEstimate
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.queueing.waiting import WaitKind, WaitReason
from muster.rpc.v1 import jobs_pb2 as pb
from muster.wire import checks
from muster.wire.model import failure_from_wire, failure_to_wire


def explanation_to_wire(explanation: Explanation) -> pb.WhyResponse:
    """Why a job is where it is."""
    return pb.WhyResponse(
        summary=explanation.summary,
        phase=explanation.phase,
        queue_position=explanation.queue_position,
        refusals=[pb.NodeRefusal(node=refusal.node, reason=refusal.reason) for refusal in explanation.refusals],
        awaited=[
            pb.Awaited(rank=awaited.rank, node=awaited.node or "", state=awaited.state, detail=awaited.detail)
            for awaited in explanation.awaited
        ],
        failure=None if explanation.failure is None else failure_to_wire(explanation.failure),
        reasons=map(wait_reason_to_wire, explanation.reasons),
        pools=[pb.PoolRefusal(pool=refusal.pool, reason=refusal.reason) for refusal in explanation.pools],
        changes=[pb.HelpfulChange(change=each.change, why=each.why) for each in explanation.changes],
        about=checks.timestamp(explanation.estimate.about),
        latest=checks.timestamp(explanation.estimate.latest),
    )


def explanation_from_wire(message: pb.WhyResponse) -> Explanation:
    """Why a job is where it is; raises WireError."""
    return Explanation(
        summary=message.summary,
        phase=checks.word(JobPhase, message.phase, "WhyResponse.phase"),
        queue_position=checks.between(message.queue_position, 0, checks.MAX_COUNT, "WhyResponse.queue_position"),
        refusals=tuple(_refusal(refusal) for refusal in message.refusals),
        awaited=tuple(_awaited(awaited) for awaited in message.awaited),
        failure=failure_from_wire(message.failure) if message.HasField("failure") else None,
        reasons=tuple(map(wait_reason_from_wire, message.reasons)),
        pools=tuple(PoolRefusal(pool=each.pool, reason=each.reason) for each in message.pools),
        changes=tuple(HelpfulChange(change=each.change, why=each.why) for each in message.changes),
        estimate=StartEstimate(
            about=checks.optional_moment(message, "about"), latest=checks.optional_moment(message, "latest")
        ),
    )


def wait_reason_to_wire(reason: WaitReason) -> pb.WaitReason:
    """What keeps a job out of the queue."""
    return pb.WaitReason(
        kind=reason.kind, by=reason.by, since=checks.timestamp(reason.since), until=checks.timestamp(reason.until)
    )


def wait_reason_from_wire(message: pb.WaitReason) -> WaitReason:
    """What keeps a job out of the queue; raises WireError."""
    return WaitReason(
        kind=checks.word(WaitKind, message.kind, "WaitReason.kind"),
        by=message.by,
        since=checks.optional_moment(message, "since"),
        until=checks.optional_moment(message, "until"),
    )


def _refusal(message: pb.NodeRefusal) -> NodeRefusal:
    return NodeRefusal(node=NodeId(checks.identifier(message.node, "NodeRefusal.node")), reason=message.reason)


def _awaited(message: pb.Awaited) -> Awaited:
    return Awaited(
        rank=checks.between(message.rank, 0, checks.MAX_SIZE - 1, "Awaited.rank"),
        node=NodeId(checks.identifier(message.node, "Awaited.node")) if message.node else None,
        state=checks.word(State, message.state, "Awaited.state"),
        detail=message.detail,
    )
