"""The services that the coordinator serves, and the parts on which they stand."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from coordinator.engine.engine import Engine
from coordinator.rpc.agents.attachments import AgentAttachments
from coordinator.rpc.agents.code_delivery import CodeDelivery
from coordinator.rpc.agents.data_delivery import DataDelivery
from coordinator.rpc.agents.kept.lines import KeptBooks
from coordinator.rpc.agents.log_intake import LogIntake
from coordinator.rpc.agents.renewals import Renewals
from coordinator.rpc.agents.secret_delivery import SecretDelivery
from coordinator.rpc.agents.service import AgentService, GivenToNodes, TakenFromNodes
from coordinator.rpc.clients.attachments import AttachmentService
from coordinator.rpc.clients.bundles import BundleService
from coordinator.rpc.clients.data import DataService
from coordinator.rpc.clients.fleet import EventService, FleetService
from coordinator.rpc.clients.following.feed import FEED_PATIENCE, FeedService
from coordinator.rpc.clients.following.notifications import NotificationService
from coordinator.rpc.clients.following.telemetry import TelemetryService
from coordinator.rpc.clients.images import ImageService
from coordinator.rpc.clients.jobs import READER_PATIENCE, JobService
from coordinator.rpc.clients.login import LoginService
from coordinator.rpc.clients.nodes import NodeService
from coordinator.rpc.clients.pools import PoolService
from coordinator.rpc.clients.projects import PresetService, ProjectService
from coordinator.rpc.clients.secrets import SecretService
from coordinator.rpc.clients.trust import TrustOperations, TrustService
from coordinator.rpc.clients.windows import WindowService
from coordinator.rpc.pace import Pace
from coordinator.service.archive import Archive
from coordinator.service.attaching.attachments import AttachmentOperations
from coordinator.service.attaching.open_book import AttachmentBook
from coordinator.service.attaching.relay_side import RelaySide
from coordinator.service.bundles import BundleOperations
from coordinator.service.data.checkpoints import CheckpointOperations
from coordinator.service.data.images import ImageOperations
from coordinator.service.data.left import OutputOperations
from coordinator.service.data.pull_book import RunningPulls
from coordinator.service.data.pulls import PullOperations
from coordinator.service.data.swarms import Swarms
from coordinator.service.data.trees import DepotSide
from coordinator.service.data.uploads import DataOperations
from coordinator.service.data.volumes import VolumeOperations
from coordinator.service.figures import FigureOperations
from coordinator.service.following.feed import FeedOperations
from coordinator.service.following.samples import SampleOperations
from coordinator.service.jobs import JobOperations
from coordinator.service.nodes import NodeOperations
from coordinator.service.notifications.deliveries import DeliveryBook
from coordinator.service.notifications.happenings import HappeningOperations
from coordinator.service.notifications.subscriptions import SubscriptionOperations
from coordinator.service.operations import Operations
from coordinator.service.projects import ProjectOperations
from coordinator.service.queueing.job_orders import JobOrders
from coordinator.service.queueing.policies import PolicyOperations
from coordinator.service.queueing.pools import PoolOperations
from coordinator.service.queueing.presets import PresetOperations
from coordinator.service.queueing.quotas import QuotaOperations
from coordinator.service.queueing.usage import UsageOperations
from coordinator.service.queueing.windows import WindowOperations
from coordinator.service.secrets import SecretOperations
from coordinator.service.stories import StoryOperations
from coordinator.service.submitting import SubmitDesk
from coordinator.service.trust.accounts import AccountOperations
from coordinator.service.trust.audit import AuditOperations
from coordinator.service.trust.authority import AuthorityOperations
from coordinator.service.trust.enrolment import EnrolmentOperations
from coordinator.service.trust.logins import LoginOperations
from coordinator.service.trust.rotations import Rotations
from coordinator.service.trust.sessions import ConsoleKnown, SessionOperations
from coordinator.service.trust.tokens import TokenOperations
from coordinator.service.watching.newest_samples import NewestSamples
from coordinator.store.bundles import BundleStore
from coordinator.store.logs.logs import LogStore
from coordinator.store.logs.quota import LogQuota
from coordinator.store.store import Store
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.authority import FleetAuthority
from coordinator.trust.policies import Policies
from coordinator.trust.presets import Presets
from coordinator.trust.registry import Registry
from coordinator.trust.secrets.secrets import Secrets
from coordinator.trust.subscriptions import Subscriptions
from muster.domain.fleet.access import OPEN
from muster.rpc.v1 import (
    agents_pb2,
    agents_pb2_grpc,
    attachments_pb2,
    attachments_pb2_grpc,
    bundles_pb2,
    bundles_pb2_grpc,
    data_pb2,
    data_pb2_grpc,
    events_pb2,
    events_pb2_grpc,
    feed_pb2,
    feed_pb2_grpc,
    fleet_pb2,
    fleet_pb2_grpc,
    jobs_pb2,
    jobs_pb2_grpc,
    nodes_pb2,
    nodes_pb2_grpc,
    notifications_pb2,
    notifications_pb2_grpc,
    pools_pb2,
    pools_pb2_grpc,
    presets_pb2,
    presets_pb2_grpc,
    projects_pb2,
    projects_pb2_grpc,
    telemetry_pb2,
    telemetry_pb2_grpc,
    trust_pb2,
    trust_pb2_grpc,
)
from muster.wire.telemetry.samples import executions_of_sample, sample_from_bytes

if TYPE_CHECKING:  # it loads a library for HTTP, and few fleets have a provider
    from coordinator.logins.desk import LoginDesk

Closings = list[Callable[[], None]]
"""What ends the long-lived streams of each service."""


FOR_CLIENTS = (
    jobs_pb2.DESCRIPTOR.services_by_name["JobService"].full_name,
    attachments_pb2.DESCRIPTOR.services_by_name["AttachmentService"].full_name,
    data_pb2.DESCRIPTOR.services_by_name["DataService"].full_name,
    nodes_pb2.DESCRIPTOR.services_by_name["NodeService"].full_name,
    telemetry_pb2.DESCRIPTOR.services_by_name["TelemetryService"].full_name,
    fleet_pb2.DESCRIPTOR.services_by_name["FleetService"].full_name,
    events_pb2.DESCRIPTOR.services_by_name["EventService"].full_name,
    feed_pb2.DESCRIPTOR.services_by_name["FeedService"].full_name,
    projects_pb2.DESCRIPTOR.services_by_name["ProjectService"].full_name,
    nodes_pb2.DESCRIPTOR.services_by_name["WindowService"].full_name,
    nodes_pb2.DESCRIPTOR.services_by_name["ImageService"].full_name,
    presets_pb2.DESCRIPTOR.services_by_name["PresetService"].full_name,
    pools_pb2.DESCRIPTOR.services_by_name["PoolService"].full_name,
    trust_pb2.DESCRIPTOR.services_by_name["TrustService"].full_name,
    trust_pb2.DESCRIPTOR.services_by_name["LoginService"].full_name,
    trust_pb2.DESCRIPTOR.services_by_name["SecretService"].full_name,
    notifications_pb2.DESCRIPTOR.services_by_name["NotificationService"].full_name,
    bundles_pb2.DESCRIPTOR.services_by_name["BundleService"].full_name,
)
FOR_AGENTS = (agents_pb2.DESCRIPTOR.services_by_name["AgentService"].full_name,)
FOR_STRANGERS = (trust_pb2.DESCRIPTOR.services_by_name["JoinService"].full_name,)


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
    subscriptions: Subscriptions
    policies: Policies
    presets: Presets
    fleet: str = ""
    """The id of the fleet."""
    log_quota: LogQuota | None = None
    """What projects may keep of logs; None: as much as the disk has room for."""
    bundles: BundleStore | None = None
    """None: bundles are neither kept nor served."""
    logins: "LoginDesk | None" = None
    """Logins of people whom an identity provider knows; None: there is none."""
    console: ConsoleKnown = field(default_factory=ConsoleKnown)
    """What is known of the console, in which people begin sessions."""
    relay: RelaySide | None = None
    """The relay, through which attachments go; None: nobody can attach."""
    depot: DepotSide | None = None
    """The depot, in which code of jobs lies; None: no job can bring a folder."""
    pace: Pace = field(default_factory=Pace)
    """How fast each may call."""
    samples: NewestSamples = field(default_factory=NewestSamples)
    """What nodes use at the moment."""
    kept: KeptBooks = field(default_factory=KeptBooks)
    """What nodes keep beside executions."""
    attachments: AttachmentBook = field(default_factory=AttachmentBook)
    """The attachments that are open, and how many there may be."""
    reader_patience: float = READER_PATIENCE
    """Seconds after which a follower of logs or of a job that reads nothing is cut off."""

    @property
    def operations(self) -> Operations:
        """The way into every operation."""
        return Operations(self.registry.projects, self.audit)


def add_clients(
    server: grpc.aio.Server,
    parts: Parts,
    authority: FleetAuthority | None,
    closings: Closings,
    attachments: AttachmentOperations,
) -> None:
    """Serve clients."""
    # Whoever is let in to `muster up` is the user of this machine himself: it needs no opening.
    permissions_of = parts.registry.permissions_of if authority is not None else lambda _: OPEN
    operations = parts.operations
    archive = Archive.of(parts.engine, parts.logs, parts.store)
    desk = SubmitDesk(permissions_of, parts.secrets, parts.depot, parts.policies.that_hold, parts.presets)
    orders = JobOrders(operations, parts.engine, parts.policies.that_hold)
    jobs = JobService(JobOperations(operations, parts.engine, desk, archive), orders, parts.reader_patience)
    jobs_pb2_grpc.add_JobServiceServicer_to_server(jobs, server)
    attachments_pb2_grpc.add_AttachmentServiceServicer_to_server(AttachmentService(attachments), server)
    data = DataOperations(operations, parts.depot, parts.registry.projects)
    left = OutputOperations(operations, parts.engine, parts.depot, archive.past)
    saved = CheckpointOperations(operations, parts.engine, parts.depot)
    volumes = VolumeOperations(operations, parts.engine, parts.kept.volumes)
    data_pb2_grpc.add_DataServiceServicer_to_server(DataService(data, left, saved, volumes), server)
    stories = StoryOperations(operations, parts.engine, archive.past)
    nodes = NodeService(NodeOperations(operations, parts.engine, parts.registry.joined), stories, parts.reader_patience)
    nodes_pb2_grpc.add_NodeServiceServicer_to_server(nodes, server)
    fleet = FleetService(stories, FigureOperations(operations, parts.engine), parts.reader_patience)
    fleet_pb2_grpc.add_FleetServiceServicer_to_server(fleet, server)
    happenings = HappeningOperations(operations, parts.engine, archive.past, parts.fleet)
    events = EventService(happenings, parts.reader_patience)
    events_pb2_grpc.add_EventServiceServicer_to_server(events, server)
    telemetry = TelemetryService(
        SampleOperations(operations, parts.engine, parts.samples, sample_from_bytes, executions_of_sample),
        parts.reader_patience,
    )
    telemetry_pb2_grpc.add_TelemetryServiceServicer_to_server(telemetry, server)
    trust = TrustService(_trust(parts, authority))
    trust_pb2_grpc.add_TrustServiceServicer_to_server(trust, server)
    _add_beside_jobs(server, parts, closings)
    projects = ProjectOperations(
        operations,
        parts.engine,
        parts.registry,
        (parts.secrets, parts.subscriptions, parts.policies, parts.presets, parts.kept.volumes),
        open_for_all=authority is None,
    )
    feed = FeedService(
        FeedOperations(operations, parts.engine, projects.shown), min(FEED_PATIENCE, parts.reader_patience)
    )
    feed_pb2_grpc.add_FeedServiceServicer_to_server(feed, server)
    quotas = QuotaOperations(operations, parts.engine, parts.registry)
    usage = UsageOperations(operations, parts.engine, archive.past)
    policies = PolicyOperations(operations, parts.policies)
    served = ProjectService(projects, quotas, usage, policies)
    projects_pb2_grpc.add_ProjectServiceServicer_to_server(served, server)
    sessions = SessionOperations(operations, parts.registry, parts.console)
    logins = LoginService(LoginOperations(operations, parts.registry, parts.logins, parts.console), sessions)
    trust_pb2_grpc.add_LoginServiceServicer_to_server(logins, server)
    trust_pb2_grpc.add_SecretServiceServicer_to_server(
        SecretService(SecretOperations(operations, parts.secrets)), server
    )
    subscriptions = SubscriptionOperations(operations, parts.engine, parts.subscriptions, DeliveryBook())
    notifications = NotificationService(subscriptions, parts.reader_patience)
    notifications_pb2_grpc.add_NotificationServiceServicer_to_server(notifications, server)
    streams = (jobs.closing, nodes.closing, fleet.closing, events.closing, telemetry.closing, feed.closing)
    closings.append(notifications.closing.set)
    closings += [*(closing.set for closing in streams), archive.past.close]
    if parts.bundles is not None:
        bundles = BundleService(BundleOperations(operations, parts.bundles), parts.reader_patience)
        bundles_pb2_grpc.add_BundleServiceServicer_to_server(bundles, server)
        closings.append(bundles.closing.set)


def _add_beside_jobs(server: grpc.aio.Server, parts: Parts, closings: Closings) -> None:
    """Serve what jobs name: windows, images and pools of nodes, and presets."""
    operations = parts.operations
    windows = WindowService(WindowOperations(operations, parts.engine))
    nodes_pb2_grpc.add_WindowServiceServicer_to_server(windows, server)
    running = RunningPulls(parts.kept.pulls)
    pulls = PullOperations(operations, parts.engine, running, parts.secrets, parts.audit)
    images = ImageService(ImageOperations(operations, parts.engine, parts.kept.images), pulls)
    closings.append(running.close)
    nodes_pb2_grpc.add_ImageServiceServicer_to_server(images, server)
    presets = PresetService(PresetOperations(operations, parts.presets, parts.policies.that_hold))
    presets_pb2_grpc.add_PresetServiceServicer_to_server(presets, server)
    pools = PoolService(PoolOperations(operations, parts.engine, parts.registry))
    pools_pb2_grpc.add_PoolServiceServicer_to_server(pools, server)


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


def add_agents(
    server: grpc.aio.Server,
    parts: Parts,
    authority: FleetAuthority | None,
    closings: Closings,
    attachments: AgentAttachments,
) -> None:
    """Serve agents."""
    logs = LogIntake(parts.engine, parts.logs, parts.log_quota)
    taken = TakenFromNodes(logs=logs, samples=parts.samples, kept=parts.kept)
    renewals = Renewals(parts.registry.joined, authority)
    given = GivenToNodes(
        secrets=SecretDelivery(parts.engine, parts.secrets, parts.audit),
        data=DataDelivery(parts.engine, parts.depot, parts.secrets, parts.audit),
        code=CodeDelivery(parts.engine, parts.depot, parts.audit),
        swarms=Swarms(parts.engine),
    )
    agents = AgentService(parts.engine, taken, parts.registry.joined, renewals, given, attachments)
    agents_pb2_grpc.add_AgentServiceServicer_to_server(agents, server)
    closings.append(agents.closing.set)
