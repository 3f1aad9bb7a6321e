"""The SDK for the fleet's authority, whose certificates nodes and coordinator show."""

from typing import Any

from muster.client.calls import Calls
from muster.domain.fleet.access import AuthorityStatus
from muster.rpc.v1 import trust_pb2 as pb
from muster.rpc.v1.trust_pb2_grpc import TrustServiceStub
from muster.wire import trust


class AuthorityClient:
    """The fleet's authority, reached as `client.authority`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of TrustService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(TrustServiceStub)

    async def show(self) -> AuthorityStatus:
        """Which authorities of the fleet count, and which nodes know of them.

        >>> status = await client.authority.show()
        """
        return trust.authority_status_from_wire(
            await self._calls.ask(self._stub.ShowAuthority, pb.ShowAuthorityRequest())
        )

    async def rotate(self) -> AuthorityStatus:
        """Begin to change the fleet's authority; nodes learn the next one and get certificates from it.

        >>> await client.authority.rotate()
        """
        request = pb.RotateAuthorityRequest()
        return trust.authority_status_from_wire(await self._calls.ask(self._stub.RotateAuthority, request, pauses=()))

    async def finish(self, *, force: bool = False) -> AuthorityStatus:
        """Have the former authority count no more; ConflictError while nodes that are there need it, unless `force`.

        >>> await client.authority.finish()
        """
        request = pb.FinishRotationRequest(force=force)
        return trust.authority_status_from_wire(await self._calls.ask(self._stub.FinishRotation, request, pauses=()))
