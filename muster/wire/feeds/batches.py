"""Values of feed.proto: places of readers, and batches of changes."""

from collections.abc import Iterable

from muster.domain.feed import FEED_QUEUE, FeedBatch, FeedKey, FeedPart, FeedPlace
from muster.domain.fleet.standing_view import QueuePage
from muster.rpc.v1 import feed_pb2 as pb
from muster.rpc.v1 import projects_pb2
from muster.wire import checks
from muster.wire.jobs import job_from_wire, job_to_wire
from muster.wire.nodes import node_from_wire, node_to_wire
from muster.wire.sharing.projects import project_from_wire, project_to_wire
from muster.wire.sharing.quotas import queue_page_from_wire, queue_page_to_wire

_GREATEST = checks.MAX_BYTES


def feed_place_to_wire(place: FeedPlace) -> pb.FeedPlace:
    """How far a reader has come."""
    return pb.FeedPlace(instance=place.instance, revision=place.revision)


def feed_place_from_wire(message: pb.FeedPlace) -> FeedPlace:
    """How far a reader has come; raises WireError."""
    return FeedPlace(
        instance=checks.text(message.instance, "FeedPlace.instance"),
        revision=checks.between(message.revision, 0, _GREATEST, "FeedPlace.revision"),
    )


def feed_parts_from_wire(parts: Iterable[str]) -> frozenset[FeedPart]:
    """What a reader asks for; raises WireError."""
    return frozenset(checks.word(FeedPart, part, "FollowFeedRequest.parts") for part in parts)


def feed_batch_to_wire(batch: FeedBatch) -> pb.FeedBatch:
    """A batch as a message."""
    return pb.FeedBatch(
        place=feed_place_to_wire(batch.place),
        anew=batch.anew,
        caught_up=batch.caught_up,
        complete_from=batch.complete_from,
        jobs=map(job_to_wire, batch.jobs),
        nodes=map(node_to_wire, batch.nodes),
        projects=map(project_to_wire, batch.projects),
        jobs_gone=_names(batch.gone, FeedPart.JOBS),
        nodes_gone=_names(batch.gone, FeedPart.NODES),
        projects_gone=_names(batch.gone, FeedPart.PROJECTS),
        queue=None
        if batch.queue is None
        else pb.FeedQueue(lines=queue_page_to_wire(QueuePage(lines=tuple(batch.queue))).lines),
    )


def feed_batch_from_wire(message: pb.FeedBatch) -> FeedBatch:
    """A batch of changes; raises WireError."""
    gone = {
        FeedPart.JOBS: message.jobs_gone,
        FeedPart.NODES: message.nodes_gone,
        FeedPart.PROJECTS: message.projects_gone,
    }
    queue = None
    if message.HasField("queue"):
        if len(message.queue.lines) > FEED_QUEUE:
            raise checks.WireError("FeedQueue.lines", f"has {len(message.queue.lines)}; {FEED_QUEUE} are told")
        queue = queue_page_from_wire(projects_pb2.QueueResponse(lines=message.queue.lines)).lines
    return FeedBatch(
        place=feed_place_from_wire(message.place),
        anew=message.anew,
        caught_up=message.caught_up,
        complete_from=checks.between(message.complete_from, 0, _GREATEST, "FeedBatch.complete_from"),
        jobs=tuple(map(job_from_wire, message.jobs)),
        nodes=tuple(map(node_from_wire, message.nodes)),
        projects=tuple(map(project_from_wire, message.projects)),
        gone=tuple(
            FeedKey(part, checks.identifier(name, f"FeedBatch.{part}_gone"))
            for part, names in gone.items()
            for name in names
        ),
        queue=queue,
    )


def _names(gone: Iterable[FeedKey], part: FeedPart) -> list[str]:
    return [key.name for key in gone if key.part is part]
