"""Images that agents have pulled, on their streams: what they tell comes up, orders to clear some go down."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import grpc.aio

from coordinator.rpc.agents.downlink import Downlink, StreamEnded
from coordinator.service.data.kept_images import KeptImageBook
from coordinator.service.data.node_book import OrderLineEndedError
from muster.domain.data.kept.image import ImageClearance, ToldImage
from muster.domain.ids import NodeId
from muster.rpc.v1 import agents_pb2 as pb
from muster.wire.data.pulled_images import cleared_images_from_wire, image_clearance_to_wire, image_news_from_wire


class ImageLine:
    """What one stream brings of the images of its node."""

    def __init__(self, book: KeptImageBook, node: NodeId, down: Downlink) -> None:
        self._book = book
        self._node = node
        self._down = down

    @contextmanager
    def open(self, images: Sequence[ToldImage]) -> Iterator[None]:
        """While the stream is open, orders go down on it; `images`: all that the agent has pulled as it begins."""
        self._book.connected(self._node, images, self)
        try:
            yield
        finally:
            self._book.disconnected(self._node, self)

    async def send(self, order: ImageClearance) -> None:
        """Write an order; raises OrderLineEndedError once the stream is over."""
        try:
            await self._down.send(pb.CoordinatorMessage(clear_images=image_clearance_to_wire(order)))
        except (StreamEnded, grpc.aio.InternalError, grpc.aio.UsageError):
            raise OrderLineEndedError from None

    def take(self, message: pb.AgentMessage) -> bool:
        """Take in a message, if it is about images; whether it is. Raises WireError."""
        match message.WhichOneof("message"):
            case "pulled_images":
                self._book.changed(self._node, image_news_from_wire(message.pulled_images), self)
            case "cleared_images":
                self._book.answered(self._node, cleared_images_from_wire(message.cleared_images))
            case _:
                return False
        return True
