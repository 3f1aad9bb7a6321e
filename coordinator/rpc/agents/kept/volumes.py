"""Volumes that nodes keep, on the streams of agents: what they tell comes up, orders to remove one go down."""

from coordinator.rpc.agents.downlink import Downlink
from coordinator.rpc.agents.kept.order_line import OrderLine
from coordinator.service.data.kept_volumes import KeptVolumeBook
from muster.domain.data.volume import KeptVolume, VolumeRemoval
from muster.domain.ids import NodeId
from muster.rpc.v1 import agents_pb2 as pb
from muster.wire.data.volumes import kept_volume_news_from_wire, removed_volume_from_wire, volume_removal_to_wire


class VolumeLine(OrderLine[KeptVolume, VolumeRemoval]):
    """What one stream brings of the volumes of its node."""

    def __init__(self, book: KeptVolumeBook, node: NodeId, down: Downlink) -> None:
        super().__init__(book, node, down)
        self._book = book

    def take(self, message: pb.AgentMessage) -> bool:
        """Take in a message, if it is about volumes; whether it is. Raises WireError."""
        match message.WhichOneof("message"):
            case "kept_volumes":
                self._book.changed(self._node, kept_volume_news_from_wire(message.kept_volumes), self)
            case "removed_volume":
                self._book.answered(self._node, removed_volume_from_wire(message.removed_volume))
            case _:
                return False
        return True

    def _written(self, order: VolumeRemoval) -> pb.CoordinatorMessage:
        return pb.CoordinatorMessage(remove_volume=volume_removal_to_wire(order))
