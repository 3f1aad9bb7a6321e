"""The gRPC server: services, health, reflection, and where it listens."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from coordinator.engine import Engine
from coordinator.rpc.agents import AgentService
from coordinator.rpc.jobs import READER_PATIENCE, JobService
from coordinator.rpc.log_merge import LogMerge
from coordinator.rpc.nodes import NodeService
from coordinator.store.logs import LogStore
from muster.domain.errors import MusterError, PermissionDeniedError
from muster.rpc.channel import SERVER_OPTIONS, is_loopback, read_pem
from muster.rpc.v1 import agents_pb2, agents_pb2_grpc, jobs_pb2, jobs_pb2_grpc, nodes_pb2, nodes_pb2_grpc

STOP_GRACE = 1.0
"""Seconds that open calls get when the server stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Files in PEM form with which the coordinator proves who it is, and whom it believes."""

    cert: Path
    key: Path
    client_ca: Path | None = None
    """Whose certificates peers must show; None: peers need none."""


@asynccontextmanager
async def serving(
    engine: Engine,
    logs: LogStore,
    listen: str,
    *,
    identity: Identity | None = None,
    insecure: bool = False,
    reader_patience: float = READER_PATIENCE,
) -> AsyncIterator[str]:
    """Serve while the context is open; gives the address with the port that was bound.

    Without an identity it speaks plain text, which is refused beyond this machine unless `insecure` says that the
    network is trusted. Who follows logs or a job and reads nothing for `reader_patience` seconds is cut off.
    """
    server = grpc.aio.server(options=SERVER_OPTIONS)
    agents, jobs = AgentService(engine, logs), JobService(engine, LogMerge(engine, logs), reader_patience)
    agents_pb2_grpc.add_AgentServiceServicer_to_server(agents, server)
    jobs_pb2_grpc.add_JobServiceServicer_to_server(jobs, server)
    nodes_pb2_grpc.add_NodeServiceServicer_to_server(NodeService(engine), server)
    healthy = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    services = [
        module.DESCRIPTOR.services_by_name[name].full_name
        for module, name in ((agents_pb2, "AgentService"), (jobs_pb2, "JobService"), (nodes_pb2, "NodeService"))
    ]
    reflection.enable_server_reflection([*services, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
    port = _bind(server, listen, identity, insecure=insecure)
    await server.start()
    for service in ("", *services):
        await healthy.set(service, health_pb2.HealthCheckResponse.SERVING)
    try:
        yield f"{listen.rpartition(':')[0]}:{port}"
    finally:
        await healthy.enter_graceful_shutdown()
        agents.closing.set()
        jobs.closing.set()
        await server.stop(STOP_GRACE)


def _bind(server: grpc.aio.Server, listen: str, identity: Identity | None, *, insecure: bool) -> int:
    if identity is None and not insecure and not is_loopback(listen):
        raise PermissionDeniedError(
            f"will not speak unencrypted on {listen}, which other machines can reach; give --tls-cert and --tls-key, "
            "or say --insecure (MUSTER_INSECURE=1) if you trust the network",
        )
    try:
        if identity is None:
            return server.add_insecure_port(listen)
        return server.add_secure_port(listen, _credentials(identity))
    except RuntimeError as error:
        raise MusterError(f"cannot listen on {listen}: is something else listening there? ({error})") from error


def _credentials(identity: Identity) -> grpc.ServerCredentials:
    authority = read_pem(identity.client_ca) if identity.client_ca is not None else None
    return grpc.ssl_server_credentials(
        [(read_pem(identity.key), read_pem(identity.cert))],
        root_certificates=authority,
        require_client_auth=authority is not None,
    )
