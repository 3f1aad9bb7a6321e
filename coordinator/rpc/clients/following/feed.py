"""The clients' call about the feed, as gRPC has it."""

import asyncio
from contextlib import aclosing

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.streams import offer, streaming
from coordinator.service.following.feed import FeedOperations
from muster.rpc.v1 import feed_pb2 as pb
from muster.rpc.v1 import feed_pb2_grpc
from muster.wire import checks
from muster.wire.feeds.batches import feed_batch_to_wire, feed_parts_from_wire, feed_place_from_wire

FEED_PATIENCE = 60.0
"""Seconds after which a reader of the feed that reads nothing is cut off; it can go on where it was."""


class FeedService(feed_pb2_grpc.FeedServiceServicer):
    """Translates the call about the feed."""

    def __init__(self, feed: FeedOperations, patience: float = FEED_PATIENCE) -> None:
        self._feed = feed
        self._patience = patience
        self.closing = asyncio.Event()

    @streaming
    async def Follow(self, request: pb.FollowFeedRequest, context: Context) -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """All that the caller may look at, then changes until it leaves."""
        checks.few(request.parts, "FollowFeedRequest.parts")
        parts = feed_parts_from_wire(request.parts)
        async with aclosing(self._feed.follow(caller(), feed_place_from_wire(request.place), parts)) as batches:
            async for batch in batches:
                await offer(context, feed_batch_to_wire(batch), self._patience)
