"""The gRPC servers: what is served behind which door, and where they listen.

A fleet has two doors: clients come with TLS and a token, agents with TLS and the certificate of their node. `muster up`
has one, in plain text on this machine only, for whoever may read its token.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from coordinator.rpc import limits
from coordinator.rpc.admission.interceptor import Admission, AdmissionPolicy
from coordinator.rpc.agents.attachments import AgentAttachments
from coordinator.rpc.callers import Who
from coordinator.rpc.calls import is_public
from coordinator.rpc.clients.join import JoinService
from coordinator.rpc.doors import by_certificate, by_local_token, by_token
from coordinator.rpc.gate import Gate
from coordinator.rpc.services import FOR_AGENTS, FOR_CLIENTS, FOR_STRANGERS, Closings, Parts, add_agents, add_clients
from coordinator.service.attaching.attachments import AttachmentOperations, AttachWays
from coordinator.service.attaching.lines import AgentLines
from coordinator.service.attaching.rights import AttachRights
from coordinator.service.trust.enrolment import JoinOperations
from coordinator.trust.authority import FleetAuthority
from coordinator.trust.caller import LOCAL, Caller
from muster.domain.errors import MusterError, PermissionDeniedError
from muster.domain.fleet.access import OPEN, Permissions
from muster.domain.ids import NodeId
from muster.rpc.channel import is_loopback, served_credentials
from muster.rpc.v1 import (
    trust_pb2_grpc,
)
from muster.trust.certificates import signers_in

STOP_GRACE = 1.0
"""Seconds that open calls get when the server stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """Where the coordinator serves."""

    clients: str
    agents: str


@asynccontextmanager
async def serving_locally(parts: Parts, listen: str, secret: str) -> AsyncIterator[str]:
    """Serve clients and agents of this machine that know the secret; gives the address with the port that was bound."""
    if not is_loopback(listen):
        raise PermissionDeniedError(
            f"will not speak unencrypted on {listen}, which other machines can reach; `muster-coordinator` without "
            "--local speaks TLS",
        )
    async with _closing() as closings:
        server, gate = _server(by_local_token(secret, parts.registry), parts, limits.LOCAL_DOOR)
        attachments, lines = _attachments(parts, lambda _: OPEN, lambda *_: LOCAL)

        def look_again(node: NodeId | None) -> None:
            gate.look_again(node)
            attachments.look_again()

        parts.registry.changes.on_less = look_again
        known = replace(parts, console=replace(parts.console, local_token=secret))
        add_clients(server, known, None, closings, attachments)
        add_agents(server, parts, None, closings, AgentAttachments(lines, attachments))
        healthy = _add_health(server, (*FOR_CLIENTS, *FOR_AGENTS))
        port = _bound(server, listen, None)
        await server.start()
        async with _healthy(healthy, (*FOR_CLIENTS, *FOR_AGENTS), server, closings), _tidied(attachments):
            yield _address(listen, port)


@asynccontextmanager
async def serving(parts: Parts, doors: Doors, authority: FleetAuthority) -> AsyncIterator[Doors]:
    """Serve behind both doors while the context is open; gives the addresses with the ports that were bound."""
    async with _closing() as closings:
        agents, agents_gate = _server(by_certificate(parts.registry.joined), parts, limits.AGENTS)
        attachments, lines = _attachments(parts, parts.registry.permissions_of, parts.registry.holder_of)
        add_agents(agents, parts, authority, closings, AgentAttachments(lines, attachments))
        agents_port = _bound(
            agents, doors.agents, served_credentials(lambda: authority.server, lambda: authority.trusted)
        )
        clients, clients_gate = _server(by_token(parts.registry), parts, limits.CLIENTS)
        clients_gate.authorities = lambda: authority.told

        def look_again(node: NodeId | None) -> None:
            agents_gate.look_again(node)
            if node is None:
                clients_gate.look_again(None)
                attachments.look_again()

        def authorities_changed() -> None:
            # Only a new connection is verified against what counts now; this ends those that are open.
            parts.registry.joined.count_authorities(signers_in(authority.trusted))

        parts.registry.changes.on_less = look_again
        authority.on_change.append(authorities_changed)
        authorities_changed()
        add_clients(clients, parts, authority, closings, attachments)
        joining = JoinService(
            JoinOperations(parts.operations, parts.registry.joined, authority), agents_port, parts.pace
        )
        trust_pb2_grpc.add_JoinServiceServicer_to_server(joining, clients)
        healthy = _add_health(clients, (*FOR_CLIENTS, *FOR_STRANGERS))
        port = _bound(clients, doors.clients, served_credentials(lambda: authority.server, None))
        await agents.start()
        await clients.start()
        try:
            async with _healthy(healthy, (*FOR_CLIENTS, *FOR_STRANGERS), clients, closings), _tidied(attachments):
                yield Doors(clients=_address(doors.clients, port), agents=_address(doors.agents, agents_port))
        finally:
            await agents.stop(STOP_GRACE)


@asynccontextmanager
async def _tidied(attachments: AttachmentOperations) -> AsyncIterator[None]:
    """Have attachments looked after while the context is open."""
    loop = asyncio.get_running_loop()
    tasks = (
        loop.create_task(attachments.tidy(), name="look after attachments"),
        loop.create_task(attachments.notices.tell(), name="tell the attached of unused jobs"),
    )
    try:
        yield
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        attachments.close_all()


@asynccontextmanager
async def _closing() -> AsyncIterator[Closings]:
    closings: Closings = []
    try:
        yield closings
    finally:
        for close in closings:
            close()


def _server(who: Who, parts: Parts, door: limits.Door) -> tuple[grpc.aio.Server, Gate]:
    gate = Gate(parts.registry, parts.operations)
    policy = AdmissionPolicy(who=who, public=is_public, bounds=door.bounds, known=door.known, strangers=door.strangers)
    admission = Admission(policy, parts.pace, gate.refused)
    return grpc.aio.server(options=door.options, interceptors=[admission, gate]), gate


def _attachments(
    parts: Parts,
    permissions_of: Callable[[str], Permissions],
    holder_of: Callable[[str, str, datetime], Caller | None],
) -> tuple[AttachmentOperations, AgentLines]:
    lines = AgentLines()
    rights = AttachRights(permissions_of=permissions_of, holder_of=holder_of)
    ways = AttachWays(relay=parts.relay, lines=lines)
    return AttachmentOperations(parts.operations, parts.engine, parts.audit, rights, parts.attachments, ways), lines


def _add_health(server: grpc.aio.Server, services: tuple[str, ...]) -> health.aio.HealthServicer:
    healthy = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    reflection.enable_server_reflection([*services, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
    return healthy


@asynccontextmanager
async def _healthy(
    healthy: health.aio.HealthServicer, services: tuple[str, ...], server: grpc.aio.Server, closings: Closings
) -> AsyncIterator[None]:
    for service in ("", *services):
        await healthy.set(service, health_pb2.HealthCheckResponse.SERVING)
    try:
        yield
    finally:
        await healthy.enter_graceful_shutdown()
        for close in closings:
            close()
        await server.stop(STOP_GRACE)


def _bound(server: grpc.aio.Server, listen: str, credentials: grpc.ServerCredentials | None) -> int:
    try:
        if credentials is None:
            return server.add_insecure_port(listen)
        return server.add_secure_port(listen, credentials)
    except RuntimeError as error:
        raise MusterError(f"cannot listen on {listen}: is something else listening there? ({error})") from error


def _address(listen: str, port: int) -> str:
    return f"{listen.rpartition(':')[0]}:{port}"
