"""Volumes that nodes keep, on the streams of agents: what they tell comes up, orders to remove one go down."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import grpc.aio

from coordinator.rpc.agents.downlink import Downlink, StreamEnded
from coordinator.service.data.kept_volumes import KeptVolumeBook
from coordinator.service.data.node_book import OrderLineEndedError
from muster.domain.data.volume import KeptVolume, VolumeRemoval
from muster.domain.ids import NodeId
from muster.rpc.v1 import agents_pb2 as pb
from muster.wire.data.volumes import kept_volume_news_from_wire, removed_volume_from_wire, volume_removal_to_wire


class VolumeLine:
    """What one stream brings of the volumes of its node."""

    def __init__(self, book: KeptVolumeBook, node: NodeId, down: Downlink) -> None:
        self._book = book
        self._node = node
        self._down = down

    @contextmanager
    def open(self, volumes: Sequence[KeptVolume]) -> Iterator[None]:
        """While the stream is open, orders go down on it; `volumes`: all that the node keeps as it begins."""
        self._book.connected(self._node, volumes, self)
        try:
            yield
        finally:
            self._book.disconnected(self._node, self)

    async def send(self, order: VolumeRemoval) -> None:
        """Write an order; raises OrderLineEndedError once the stream is over."""
        try:
            await self._down.send(pb.CoordinatorMessage(remove_volume=volume_removal_to_wire(order)))
        except (StreamEnded, grpc.aio.InternalError, grpc.aio.UsageError):
            raise OrderLineEndedError from None

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
