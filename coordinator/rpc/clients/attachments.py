"""The clients' calls about attachments, as gRPC has them; the bytes of attachments do not come here."""

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.refusals import translated
from coordinator.service.attaching.attachments import AttachmentOperations
from muster.rpc.v1 import attachments_pb2 as pb
from muster.rpc.v1 import attachments_pb2_grpc
from muster.wire import checks
from muster.wire.attachments.requests import (
    attachment_pass_to_wire,
    attachment_request_from_wire,
    opened_attachment_to_wire,
)


class AttachmentService(attachments_pb2_grpc.AttachmentServiceServicer):
    """Translates calls about attachments."""

    def __init__(self, attachments: AttachmentOperations) -> None:
        self._attachments = attachments

    @translated
    async def Open(self, request: pb.OpenAttachmentRequest, context: Context) -> pb.OpenAttachmentResponse:
        """Open an attachment, or give another ticket for one."""
        if request.again:
            attachment = checks.identifier(request.again, "OpenAttachmentRequest.again")
            return attachment_pass_to_wire(await self._attachments.again(caller(), attachment))
        checks.require(request, "what")
        rank = (
            checks.between(request.rank, 0, checks.MAX_SIZE - 1, "OpenAttachmentRequest.rank")
            if request.HasField("rank")
            else None
        )
        what = attachment_request_from_wire(request.what)
        return attachment_pass_to_wire(await self._attachments.open(caller(), request.job, rank, what))

    @translated
    async def List(self, request: pb.ListAttachmentsRequest, context: Context) -> pb.ListAttachmentsResponse:
        """Attachments that are open."""
        opened = await self._attachments.list(caller(), request.job)
        return pb.ListAttachmentsResponse(attachments=map(opened_attachment_to_wire, opened))

    @translated
    async def Close(self, request: pb.CloseAttachmentRequest, context: Context) -> pb.CloseAttachmentResponse:
        """End an attachment."""
        attachment = checks.identifier(request.attachment, "CloseAttachmentRequest.attachment")
        await self._attachments.close(caller(), attachment)
        return pb.CloseAttachmentResponse()
