"""Images that agents have pulled, on their streams: what they tell comes up, orders to clear some go down."""

from coordinator.rpc.agents.downlink import Downlink
from coordinator.rpc.agents.kept.order_line import OrderLine
from coordinator.service.data.kept_images import KeptImageBook
from muster.domain.data.kept.image import ImageClearance, ToldImage
from muster.domain.ids import NodeId
from muster.rpc.v1 import agents_pb2 as pb
from muster.wire.data.pulled_images import cleared_images_from_wire, image_clearance_to_wire, image_news_from_wire


class ImageLine(OrderLine[ToldImage, ImageClearance]):
    """What one stream brings of the images of its node."""

    def __init__(self, book: KeptImageBook, node: NodeId, down: Downlink) -> None:
        super().__init__(book, node, down)
        self._book = book

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

    def _written(self, order: ImageClearance) -> pb.CoordinatorMessage:
        return pb.CoordinatorMessage(clear_images=image_clearance_to_wire(order))
