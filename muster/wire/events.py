"""Values of jobs.proto: what happened to a job."""

from muster.domain.event import JobEvent, JobEventKind
from muster.domain.ids import JobId, NodeId
from muster.rpc.v1 import jobs_pb2 as pb
from muster.wire import checks


def job_event_to_wire(event: JobEvent) -> pb.JobEvent:
    """Something that happened to a job."""
    return pb.JobEvent(
        number=event.number,
        job=event.job,
        attempt=event.attempt,
        kind=event.kind,
        at=checks.timestamp(event.at),
        text=event.text,
        rank=event.rank,
        ranks=event.ranks,
        nodes=event.nodes,
        by=event.by,
        cause=event.cause,
    )


def job_event_from_wire(message: pb.JobEvent) -> JobEvent:
    """Something that happened to a job; raises WireError."""
    checks.require(message, "at")
    checks.few(message.nodes, "JobEvent.nodes")
    rank = checks.between(message.rank, 0, checks.MAX_SIZE - 1, "JobEvent.rank") if message.HasField("rank") else None
    return JobEvent(
        number=checks.between(message.number, 0, checks.MAX_BYTES, "JobEvent.number"),
        job=JobId(checks.identifier(message.job, "JobEvent.job")),
        attempt=checks.between(message.attempt, 1, checks.MAX_COUNT, "JobEvent.attempt"),
        kind=checks.word(JobEventKind, message.kind, "JobEvent.kind"),
        at=checks.moment(message.at, "JobEvent.at"),
        text=checks.message(message.text),
        rank=rank,
        ranks=checks.text(message.ranks, "JobEvent.ranks"),
        nodes=tuple(NodeId(checks.identifier(node, "JobEvent.nodes")) for node in message.nodes),
        by=checks.text(message.by, "JobEvent.by"),
        cause=checks.text(message.cause, "JobEvent.cause"),
    )
