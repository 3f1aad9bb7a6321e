"""The clients' calls about the fleet's authority, as gRPC has them."""

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.refusals import translated
from coordinator.service.trust.authority import AuthorityOperations
from muster.rpc.v1 import trust_pb2 as pb
from muster.wire import trust


class AuthorityCalls:
    """The part of the service of trust that speaks of the authority."""

    def __init__(self, authority: AuthorityOperations) -> None:
        self._authority = authority

    @translated
    async def ShowAuthority(self, request: pb.ShowAuthorityRequest, context: Context) -> pb.AuthorityStatus:
        """Which authorities count, and which nodes know of them."""
        return trust.authority_status_to_wire(await self._authority.show(caller()))

    @translated
    async def RotateAuthority(self, request: pb.RotateAuthorityRequest, context: Context) -> pb.AuthorityStatus:
        """Begin a change of the authority."""
        return trust.authority_status_to_wire(await self._authority.rotate(caller()))

    @translated
    async def FinishRotation(self, request: pb.FinishRotationRequest, context: Context) -> pb.AuthorityStatus:
        """End a change of the authority."""
        return trust.authority_status_to_wire(await self._authority.finish(caller(), force=request.force))
