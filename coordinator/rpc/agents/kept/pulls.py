"""Pulls of images on the streams of agents: orders go down, and how far they are comes up."""

from coordinator.rpc.agents.downlink import Downlink
from coordinator.rpc.agents.kept.order_line import OrderLine
from coordinator.service.data.pull_book import PullBook
from muster.domain.data.kept.pull import ImagePull, PullNews
from muster.domain.ids import NodeId
from muster.rpc.v1 import agents_pb2 as pb
from muster.wire.data.image_pulls import image_pull_to_wire, pull_news_from_wire


class PullLine(OrderLine[PullNews, ImagePull]):
    """What one stream brings of orders to pull images."""

    def __init__(self, book: PullBook, node: NodeId, down: Downlink) -> None:
        super().__init__(book, node, down)
        self._book = book

    def take(self, message: pb.AgentMessage) -> bool:
        """Take in a message, if it is about such orders; whether it is. Raises WireError."""
        if message.WhichOneof("message") != "pull_news":
            return False
        self._book.told_news(self._node, pull_news_from_wire(message.pull_news))
        return True

    def _written(self, order: ImagePull) -> pb.CoordinatorMessage:
        return pb.CoordinatorMessage(pull_image=image_pull_to_wire(order))
