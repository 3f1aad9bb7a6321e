"""Attachments on the streams of agents: orders go down, reports come up."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import grpc.aio

from coordinator.rpc.agents.downlink import Downlink, StreamEnded
from coordinator.service.attaching.attachments import AttachmentOperations
from coordinator.service.attaching.lines import AgentLines, LineEndedError
from muster.domain.attachments.request import AttachmentOrder, NoticeForAttached, ServedAttachment
from muster.domain.ids import NodeId
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import attachments_pb2
from muster.wire.attachments.requests import (
    attachment_order_to_wire,
    attachment_report_from_wire,
    notice_for_attached_to_wire,
)


class AgentAttachments:
    """What agents are told of attachments, and what they tell."""

    def __init__(self, lines: AgentLines, attachments: AttachmentOperations) -> None:
        self._lines = lines
        self._attachments = attachments

    def coming(self, node: NodeId) -> None:
        """A node has said hello on a new stream: orders wait until it takes them."""
        self._lines.coming(node)

    @contextmanager
    def on_stream(self, node: NodeId, down: Downlink, served: Sequence[ServedAttachment]) -> Iterator[None]:
        """While the stream of a node is open, orders go down on it; `served` is what the agent serves as it begins."""
        self._attachments.taken_up(node, served)

        async def send(order: AttachmentOrder | NoticeForAttached) -> None:
            try:
                await down.send(_message(order))
            except (StreamEnded, grpc.aio.InternalError, grpc.aio.UsageError):
                raise LineEndedError from None

        self._lines.connected(node, send)
        try:
            yield
        finally:
            self._lines.disconnected(node, send)

    def reported(self, node: NodeId, message: attachments_pb2.AttachmentReport) -> None:
        """Take in how an attachment ended. Raises WireError."""
        self._attachments.reported(node, attachment_report_from_wire(message))


def _message(order: AttachmentOrder | NoticeForAttached) -> pb.CoordinatorMessage:
    match order:
        case AttachmentOrder():
            return pb.CoordinatorMessage(attachment=attachment_order_to_wire(order))
        case NoticeForAttached():
            return pb.CoordinatorMessage(notice=notice_for_attached_to_wire(order))
