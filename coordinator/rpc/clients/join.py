"""The calls with which nodes join, as gRPC has them; strangers make them."""

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.pace import Pace
from coordinator.rpc.refusals import translated
from coordinator.service.trust.enrolment import JoinOperations
from muster.domain.errors import PermissionDeniedError
from muster.domain.ids import NodeId
from muster.rpc.v1 import trust_pb2 as pb
from muster.rpc.v1 import trust_pb2_grpc
from muster.wire import checks

_TEXT = 8192
"""Most bytes of a request for a certificate; ours have 400."""


class JoinService(trust_pb2_grpc.JoinServiceServicer):
    """Translates calls of nodes that join."""

    def __init__(self, joining: JoinOperations, agents_port: int, pace: Pace) -> None:
        self._joining = joining
        self._agents_port = agents_port
        self._pace = pace

    async def Authority(self, request: pb.AuthorityRequest, context: Context) -> pb.AuthorityResponse:
        """The certificate that a node is to pin, and where agents are served."""
        authority = self._joining.authority
        return pb.AuthorityResponse(
            certificate=authority.certificate,
            agents_port=self._agents_port,
            authorities=authority.trusted,
            handovers=[
                pb.Handover(authority=each.authority, statement=each.statement) for each in authority.rotation.handovers
            ],
        )

    @translated
    async def Join(self, request: pb.JoinRequest, context: Context) -> pb.JoinResponse:
        """Take a node in on a token."""
        who = caller()
        try:
            joined = await self._joining.join(who, _node(request), request.token, request.request)
        except checks.WireError as error:
            await self._joining.note_unreadable(who, request.node, error)
            raise
        except PermissionDeniedError:
            self._pace.wrong(who.origin)
            raise
        self._pace.joined(who.origin)
        return pb.JoinResponse(
            certificate=joined.certificate,
            agents_port=self._agents_port,
            peer_certificate=joined.peer_certificate,
            authorities=joined.authorities,
        )


def _node(request: pb.JoinRequest) -> NodeId:
    if len(request.request) > _TEXT:
        raise checks.WireError("JoinRequest.request", f"is longer than {_TEXT} bytes")
    return NodeId(checks.identifier(request.node, "JoinRequest.node"))
