"""One kind of things that a node keeps, on the stream of its agent: orders go down as long as that is open."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

import grpc.aio

from coordinator.rpc.agents.downlink import Downlink, StreamEnded
from coordinator.service.data.node_book import AgentLine, OrderLineEndedError
from muster.domain.ids import NodeId
from muster.rpc.v1 import agents_pb2 as pb

Thing = TypeVar("Thing")
Thing_contra = TypeVar("Thing_contra", contravariant=True)
Order = TypeVar("Order")
Order_co = TypeVar("Order_co", covariant=True)


class BookOfLines(Protocol[Thing_contra, Order_co]):
    """What is known of such things, and over which streams their agents hear orders."""

    def connected(self, node: NodeId, things: Collection[Thing_contra], line: AgentLine[Order_co], /) -> None:
        """A node has a new stream, and these are all that it keeps."""
        ...

    def disconnected(self, node: NodeId, line: AgentLine[Order_co], /) -> None:
        """A stream has ended; a newer one of the same node stays."""
        ...


class OrderLine(ABC, Generic[Thing, Order]):
    """What one stream brings of the things that its node keeps."""

    def __init__(self, lines: BookOfLines[Thing, Order], node: NodeId, down: Downlink) -> None:
        self._lines = lines
        self._node = node
        self._down = down

    @contextmanager
    def open(self, things: Collection[Thing]) -> Iterator[None]:
        """While the stream is open, orders go down on it; `things`: all that the node keeps as it begins."""
        self._lines.connected(self._node, things, self)
        try:
            yield
        finally:
            self._lines.disconnected(self._node, self)

    async def send(self, order: Order) -> None:
        """Write an order; raises OrderLineEndedError once the stream is over."""
        try:
            await self._down.send(self._written(order))
        except (StreamEnded, grpc.aio.InternalError, grpc.aio.UsageError):
            raise OrderLineEndedError from None

    @abstractmethod
    def _written(self, order: Order) -> pb.CoordinatorMessage:
        """An order as it goes down."""
