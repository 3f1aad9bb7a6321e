"""The gRPC servers: what is served behind which door, and where they listen.

A fleet has two doors: clients come with TLS and a token, agents with TLS and the certificate of their node. `muster up`
has one, in plain text on this machine only, for whoever may read its token.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from coordinator.engine.engine import Engine
from coordinator.logins.desk import LoginDesk
from coordinator.rpc import limits
from coordinator.rpc.admission.interceptor import Admission, AdmissionPolicy
from coordinator.rpc.agents.attachments import AgentAttachments
from coordinator.rpc.agents.data_delivery import DataDelivery
from coordinator.rpc.agents.log_intake import LogIntake
from coordinator.rpc.agents.renewals import Renewals
from coordinator.rpc.agents.secret_delivery import SecretDelivery
from coordinator.rpc.agents.service import AgentService, GivenToNodes
from coordinator.rpc.callers import Who
from coordinator.rpc.calls import is_public
from coordinator.rpc.clients.attachments import AttachmentService
from coordinator.rpc.clients.bundles import BundleService
from coordinator.rpc.clients.data import DataService
from coordinator.rpc.clients.fleet import FleetService
from coordinator.rpc.clients.jobs import READER_PATIENCE, JobService
from coordinator.rpc.clients.join import JoinService
from coordinator.rpc.clients.login import LoginService
from coordinator.rpc.clients.nodes import NodeService
from coordinator.rpc.clients.pools import PoolService
from coordinator.rpc.clients.projects import ProjectService
from coordinator.rpc.clients.secrets import SecretService
from coordinator.rpc.clients.trust import TrustOperations, TrustService
from coordinator.rpc.clients.windows import WindowService
from coordinator.rpc.doors import by_certificate, by_local_token, by_token
from coordinator.rpc.gate import Gate
from coordinator.rpc.pace import Pace
from coordinator.service.archive import Archive
from coordinator.service.attaching.attachments import AttachmentOperations, AttachWays
from coordinator.service.attaching.lines import AgentLines
from coordinator.service.attaching.open_book import AttachmentBook
from coordinator.service.attaching.relay_side import RelaySide
from coordinator.service.attaching.rights import AttachRights
from coordinator.service.bundles import BundleOperations
from coordinator.service.data.trees import DepotSide
from coordinator.service.data.uploads import DataOperations
from coordinator.service.jobs import JobOperations
from coordinator.service.nodes import NodeOperations
from coordinator.service.operations import Operations
from coordinator.service.projects import ProjectOperations
from coordinator.service.queueing.job_orders import JobOrders
from coordinator.service.queueing.pools import PoolOperations
from coordinator.service.queueing.quotas import QuotaOperations
from coordinator.service.queueing.usage import UsageOperations
from coordinator.service.queueing.windows import WindowOperations
from coordinator.service.secrets import SecretOperations
from coordinator.service.stories import StoryOperations
from coordinator.service.submitting import SubmitDesk
from coordinator.service.trust.accounts import AccountOperations
from coordinator.service.trust.audit import AuditOperations
from coordinator.service.trust.authority import AuthorityOperations
from coordinator.service.trust.enrolment import EnrolmentOperations, JoinOperations
from coordinator.service.trust.logins import LoginOperations
from coordinator.service.trust.rotations import Rotations
from coordinator.service.trust.tokens import TokenOperations
from coordinator.store.bundles import BundleStore
from coordinator.store.logs.logs import LogStore
from coordinator.store.logs.quota import LogQuota
from coordinator.store.store import Store
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.authority import FleetAuthority
from coordinator.trust.caller import LOCAL, Caller
from coordinator.trust.registry import Registry
from coordinator.trust.secrets.secrets import Secrets
from muster.domain.errors import MusterError, PermissionDeniedError
from muster.domain.fleet.access import OPEN, Permissions
from muster.domain.ids import NodeId
from muster.rpc.channel import is_loopback, served_credentials
from muster.rpc.v1 import (
    agents_pb2,
    agents_pb2_grpc,
    attachments_pb2,
    attachments_pb2_grpc,
    bundles_pb2,
    bundles_pb2_grpc,
    data_pb2,
    data_pb2_grpc,
    fleet_pb2,
    fleet_pb2_grpc,
    jobs_pb2,
    jobs_pb2_grpc,
    nodes_pb2,
    nodes_pb2_grpc,
    pools_pb2,
    pools_pb2_grpc,
    projects_pb2,
    projects_pb2_grpc,
    trust_pb2,
    trust_pb2_grpc,
)
from muster.trust.certificates import signers_in

STOP_GRACE = 1.0
"""Seconds that open calls get when the server stops."""

_FOR_CLIENTS = (
    jobs_pb2.DESCRIPTOR.services_by_name["JobService"].full_name,
    attachments_pb2.DESCRIPTOR.services_by_name["AttachmentService"].full_name,
    data_pb2.DESCRIPTOR.services_by_name["DataService"].full_name,
    nodes_pb2.DESCRIPTOR.services_by_name["NodeService"].full_name,
    fleet_pb2.DESCRIPTOR.services_by_name["FleetService"].full_name,
    projects_pb2.DESCRIPTOR.services_by_name["ProjectService"].full_name,
    nodes_pb2.DESCRIPTOR.services_by_name["WindowService"].full_name,
    pools_pb2.DESCRIPTOR.services_by_name["PoolService"].full_name,
    trust_pb2.DESCRIPTOR.services_by_name["TrustService"].full_name,
    trust_pb2.DESCRIPTOR.services_by_name["LoginService"].full_name,
    trust_pb2.DESCRIPTOR.services_by_name["SecretService"].full_name,
    bundles_pb2.DESCRIPTOR.services_by_name["BundleService"].full_name,
)
_FOR_AGENTS = (agents_pb2.DESCRIPTOR.services_by_name["AgentService"].full_name,)
_FOR_STRANGERS = (trust_pb2.DESCRIPTOR.services_by_name["JoinService"].full_name,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the services stand on."""

    engine: Engine
    store: Store
    """Where the engine keeps its records; services only read it."""
    logs: LogStore
    registry: Registry
    audit: AuditLog
    secrets: Secrets
    log_quota: LogQuota | None = None
    """What projects may keep of logs; None: as much as the disk has room for."""
    bundles: BundleStore | None = None
    """None: bundles are neither kept nor served."""
    logins: LoginDesk | None = None
    """Logins of people whom an identity provider knows; None: there is none."""
    relay: RelaySide | None = None
    """The relay, through which attachments go; None: nobody can attach."""
    depot: DepotSide | None = None
    """The depot, in which code of jobs lies; None: no job can bring a folder."""
    pace: Pace = field(default_factory=Pace)
    """How fast each may call."""
    attachments: AttachmentBook = field(default_factory=AttachmentBook)
    """The attachments that are open, and how many there may be."""
    reader_patience: float = READER_PATIENCE
    """Seconds after which a follower of logs or of a job that reads nothing is cut off."""

    @property
    def operations(self) -> Operations:
        """The way into every operation."""
        return Operations(self.registry.projects, self.audit)


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
        _add_clients(server, parts, None, closings, attachments)
        _add_agents(server, parts, None, closings, AgentAttachments(lines, attachments))
        healthy = _add_health(server, (*_FOR_CLIENTS, *_FOR_AGENTS))
        port = _bound(server, listen, None)
        await server.start()
        async with _healthy(healthy, (*_FOR_CLIENTS, *_FOR_AGENTS), server, closings), _tidied(attachments):
            yield _address(listen, port)


@asynccontextmanager
async def serving(parts: Parts, doors: Doors, authority: FleetAuthority) -> AsyncIterator[Doors]:
    """Serve behind both doors while the context is open; gives the addresses with the ports that were bound."""
    async with _closing() as closings:
        agents, agents_gate = _server(by_certificate(parts.registry.joined), parts, limits.AGENTS)
        attachments, lines = _attachments(parts, parts.registry.permissions_of, parts.registry.holder_of)
        _add_agents(agents, parts, authority, closings, AgentAttachments(lines, attachments))
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
        _add_clients(clients, parts, authority, closings, attachments)
        joining = JoinService(
            JoinOperations(parts.operations, parts.registry.joined, authority), agents_port, parts.pace
        )
        trust_pb2_grpc.add_JoinServiceServicer_to_server(joining, clients)
        healthy = _add_health(clients, (*_FOR_CLIENTS, *_FOR_STRANGERS))
        port = _bound(clients, doors.clients, served_credentials(lambda: authority.server, None))
        await agents.start()
        await clients.start()
        try:
            async with _healthy(healthy, (*_FOR_CLIENTS, *_FOR_STRANGERS), clients, closings), _tidied(attachments):
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


Closings = list[Callable[[], None]]
"""What ends the long-lived streams of each service."""


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


def _add_clients(
    server: grpc.aio.Server,
    parts: Parts,
    authority: FleetAuthority | None,
    closings: Closings,
    attachments: AttachmentOperations,
) -> None:
    # Whoever is let in to `muster up` is the user of this machine himself: it needs no opening.
    permissions_of = parts.registry.permissions_of if authority is not None else lambda _: OPEN
    operations = parts.operations
    archive = Archive.of(parts.engine, parts.logs, parts.store)
    desk = SubmitDesk(permissions_of, parts.secrets, parts.depot)
    orders = JobOrders(operations, parts.engine)
    jobs = JobService(JobOperations(operations, parts.engine, desk, archive), orders, parts.reader_patience)
    jobs_pb2_grpc.add_JobServiceServicer_to_server(jobs, server)
    attachments_pb2_grpc.add_AttachmentServiceServicer_to_server(AttachmentService(attachments), server)
    data = DataOperations(operations, parts.depot, parts.registry.projects)
    data_pb2_grpc.add_DataServiceServicer_to_server(DataService(data), server)
    stories = StoryOperations(operations, parts.engine, archive.past)
    nodes = NodeService(NodeOperations(operations, parts.engine, parts.registry.joined), stories, parts.reader_patience)
    nodes_pb2_grpc.add_NodeServiceServicer_to_server(nodes, server)
    fleet = FleetService(stories, parts.reader_patience)
    fleet_pb2_grpc.add_FleetServiceServicer_to_server(fleet, server)
    trust = TrustService(_trust(parts, authority))
    trust_pb2_grpc.add_TrustServiceServicer_to_server(trust, server)
    windows = WindowService(WindowOperations(operations, parts.engine))
    nodes_pb2_grpc.add_WindowServiceServicer_to_server(windows, server)
    pools = PoolService(PoolOperations(operations, parts.engine, parts.registry))
    pools_pb2_grpc.add_PoolServiceServicer_to_server(pools, server)
    projects = ProjectOperations(
        operations, parts.engine, parts.registry, parts.secrets, open_for_all=authority is None
    )
    quotas = QuotaOperations(operations, parts.engine, parts.registry)
    usage = UsageOperations(operations, parts.engine, archive.past)
    projects_pb2_grpc.add_ProjectServiceServicer_to_server(ProjectService(projects, quotas, usage), server)
    logins = LoginService(LoginOperations(operations, parts.registry, parts.logins))
    trust_pb2_grpc.add_LoginServiceServicer_to_server(logins, server)
    trust_pb2_grpc.add_SecretServiceServicer_to_server(
        SecretService(SecretOperations(operations, parts.secrets)), server
    )
    closings += [jobs.closing.set, nodes.closing.set, fleet.closing.set, archive.past.close]
    if parts.bundles is not None:
        bundles = BundleService(BundleOperations(operations, parts.bundles), parts.reader_patience)
        bundles_pb2_grpc.add_BundleServiceServicer_to_server(bundles, server)
        closings.append(bundles.closing.set)


def _trust(parts: Parts, authority: FleetAuthority | None) -> TrustOperations:
    operations, registry = parts.operations, parts.registry
    rotations = Rotations(authority, registry.joined, parts.engine)
    return TrustOperations(
        accounts=AccountOperations(operations, registry),
        tokens=TokenOperations(operations, registry),
        enrolment=EnrolmentOperations(operations, registry.joined, authority),
        authority=AuthorityOperations(operations, rotations),
        audit=AuditOperations(operations, registry, parts.audit),
    )


def _add_agents(
    server: grpc.aio.Server,
    parts: Parts,
    authority: FleetAuthority | None,
    closings: Closings,
    attachments: AgentAttachments,
) -> None:
    intake = LogIntake(parts.engine, parts.logs, parts.log_quota)
    renewals = Renewals(parts.registry.joined, authority)
    given = GivenToNodes(
        secrets=SecretDelivery(parts.engine, parts.secrets, parts.audit),
        data=DataDelivery(parts.engine, parts.depot, parts.audit),
    )
    agents = AgentService(parts.engine, intake, parts.registry.joined, renewals, given, attachments)
    agents_pb2_grpc.add_AgentServiceServicer_to_server(agents, server)
    closings.append(agents.closing.set)


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
