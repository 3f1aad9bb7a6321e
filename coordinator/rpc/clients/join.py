"""How nodes join: what a stranger may ask."""

from typing import Any

import grpc.aio

from coordinator.clock import wall_time
from coordinator.rpc.callers import Context, entry
from coordinator.rpc.pace import Pace
from coordinator.rpc.refusals import translated
from coordinator.trust.audit.log import AuditLog, shortened
from coordinator.trust.authority import FleetAuthority
from coordinator.trust.registry import RefusedError, Registry
from muster.domain.errors import MusterError
from muster.domain.ids import NodeId
from muster.rpc.v1 import trust_pb2 as pb
from muster.rpc.v1 import trust_pb2_grpc
from muster.trust.certificates import requested_key
from muster.trust.tokens import parse_join_token
from muster.wire import checks

_JOIN = "/muster.rpc.v1.JoinService/Join"
_TEXT = 8192
"""Longest request for a certificate; ours have 400 bytes."""


class JoinService(trust_pb2_grpc.JoinServiceServicer):
    """Takes nodes in."""

    def __init__(
        self, registry: Registry, authority: FleetAuthority, audit: AuditLog, agents_port: int, pace: Pace
    ) -> None:
        self._registry = registry
        self._authority = authority
        self._audit = audit
        self._agents_port = agents_port
        self._pace = pace

    async def Authority(self, request: pb.AuthorityRequest, context: Any) -> pb.AuthorityResponse:  # noqa: ANN401, ARG002, N802
        """The certificate that a node is to pin, and where it finds its door."""
        return pb.AuthorityResponse(
            certificate=self._authority.certificate,
            agents_port=self._agents_port,
            authorities=self._authority.trusted,
            handovers=[
                pb.Handover(authority=each.authority, statement=each.statement)
                for each in self._authority.rotation.handovers
            ],
        )

    @translated
    async def Join(self, request: pb.JoinRequest, context: Context) -> pb.JoinResponse:  # noqa: N802
        """Take a node in on a token."""
        try:
            return await self._join(request, context)
        except RefusedError as error:
            self._refused(context, request, error.cause)
            self._pace.wrong(str(context.peer()))
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
        except MusterError as error:
            self._refused(context, request, type(error).__name__)
            raise

    async def _join(self, request: pb.JoinRequest, context: Context) -> pb.JoinResponse:
        node = NodeId(checks.identifier(request.node, "JoinRequest.node"))
        if len(request.request) > _TEXT:
            raise checks.WireError("JoinRequest.request", f"is longer than {_TEXT} bytes")
        token, now = parse_join_token(request.token), wall_time()
        self._registry.join_token(token)  # before anything is signed for a stranger
        epoch, authorities = self._authority.rotation.epoch, self._authority.trusted
        certificate = self._authority.certify(request.request, node, now)
        peer = self._authority.certify_peer(request.request, node, now)
        joined = shortened(entry(context, _JOIN, node, f"ok, join token {token.id}", now))
        await self._registry.enrol(token, node, requested_key(request.request), joined, epoch)
        self._pace.joined(str(context.peer()))
        return pb.JoinResponse(
            certificate=certificate, agents_port=self._agents_port, peer_certificate=peer, authorities=authorities
        )

    def _refused(self, context: Context, request: pb.JoinRequest, cause: str) -> None:
        self._audit.note_refusal(entry(context, _JOIN, request.node, cause, wall_time()))
