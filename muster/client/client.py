"""The SDK: ask a coordinator about jobs and nodes, and give it orders.

    async with muster.Client() as client:
        job = await client.jobs.submit(spec)
        ended = await client.jobs.wait(job.id)

Wherever a method takes `job`, it is an id, the unique beginning of an id, or a name (the newest job of that name);
where one stays with a job, what was told of it will do too. What goes wrong is raised as one of `muster.errors`.

`muster.SyncClient` has the same shape without `async` and `await`; it is made from the definitions here.
"""

from functools import cached_property
from typing import TYPE_CHECKING

from muster.client.frame import ClientFrame

if TYPE_CHECKING:
    from muster.client.services.accounts import AccountsClient, AuditClient, AuthorityClient
    from muster.client.services.attachments import AttachmentsClient
    from muster.client.services.bundles import BundlesClient
    from muster.client.services.data import CheckpointsClient, DataClient, OutputsClient
    from muster.client.services.images import ImagesClient
    from muster.client.services.jobs import JobsClient
    from muster.client.services.metrics import MetricsClient
    from muster.client.services.nodes import EventsClient, FleetClient, NodesClient, VolumesClient, WindowsClient
    from muster.client.services.notifications import NotificationsClient
    from muster.client.services.projects import PoolsClient, PresetsClient, ProjectsClient
    from muster.client.services.secrets import SecretsClient
    from muster.client.services.telemetry import TelemetryClient
    from muster.client.services.tokens import JoinTokensClient, LoginsClient, TokensClient

# What a program does not use is not loaded, as the command line is started anew for every question.


class AdministrationNouns(ClientFrame):
    """What a client has for those who let others in."""

    @cached_property
    def accounts(self) -> "AccountsClient":
        """Accounts of people and programs, and what they may."""
        from muster.client.services.accounts import AccountsClient

        return AccountsClient(self._calls)

    @cached_property
    def tokens(self) -> "TokensClient":
        """API tokens, with which people and programs show who they are."""
        from muster.client.services.tokens import TokensClient

        return TokensClient(self._calls)

    @cached_property
    def join_tokens(self) -> "JoinTokensClient":
        """Join tokens, with which nodes are let in."""
        from muster.client.services.tokens import JoinTokensClient

        return JoinTokensClient(self._calls)

    @cached_property
    def logins(self) -> "LoginsClient":
        """Logins through the organisation's identity provider."""
        from muster.client.services.tokens import LoginsClient

        return LoginsClient(self._calls)

    @cached_property
    def authority(self) -> "AuthorityClient":
        """The fleet's authority, whose certificates nodes and coordinator show."""
        from muster.client.services.accounts import AuthorityClient

        return AuthorityClient(self._calls)

    @cached_property
    def audit(self) -> "AuditClient":
        """The audit log: who did what."""
        from muster.client.services.accounts import AuditClient

        return AuditClient(self._calls)

    @cached_property
    def bundles(self) -> "BundlesClient":
        """Bundles, from which machines are installed."""
        from muster.client.services.bundles import BundlesClient

        return BundlesClient(self._calls)


class Client(AdministrationNouns):
    """A connection to a coordinator; use it with `async with`, or with `open` and `close`.

    `address` is `host:port`; None finds it as the command line does (docs/cli.md), and so do `credentials`. `timeout`
    is how long one question may take, in seconds; streams have no limit. Questions and streams survive a restart of the
    coordinator. `connection` goes before `address` and `credentials`.

    >>> async with muster.Client() as client:
    ...     print([job.spec.name async for job in client.jobs.list(limit=10)])
    """

    @cached_property
    def jobs(self) -> "JobsClient":
        """Jobs: submit, watch, stop, their logs."""
        from muster.client.services.jobs import JobsClient

        return JobsClient(self._calls)

    @cached_property
    def metrics(self) -> "MetricsClient":
        """Numbers that jobs print, to be plotted."""
        from muster.client.services.metrics import MetricsClient

        return MetricsClient(self._calls)

    @cached_property
    def telemetry(self) -> "TelemetryClient":
        """What nodes and executions use at the moment."""
        from muster.client.services.telemetry import TelemetryClient

        return TelemetryClient(self._calls)

    @cached_property
    def attachments(self) -> "AttachmentsClient":
        """Commands, terminals, ports and files of running executions."""
        from muster.client.services.attachments import AttachmentsClient

        return AttachmentsClient(self._calls)

    @cached_property
    def outputs(self) -> "OutputsClient":
        """What jobs have left: which files, and how one gets them."""
        from muster.client.services.data import OutputsClient

        return OutputsClient(self._calls)

    @cached_property
    def checkpoints(self) -> "CheckpointsClient":
        """What jobs have saved: which checkpoints there are, getting them, and which of them stay."""
        from muster.client.services.data import CheckpointsClient

        return CheckpointsClient(self._calls)

    @cached_property
    def data(self) -> "DataClient":
        """Data of jobs: folders that go along."""
        from muster.client.services.data import DataClient

        return DataClient(self._calls)

    @cached_property
    def events(self) -> "EventsClient":
        """Everything that happens, to jobs, nodes and the fleet."""
        from muster.client.services.nodes import EventsClient

        return EventsClient(self._calls)

    @cached_property
    def notifications(self) -> "NotificationsClient":
        """Subscriptions: who is told of what happens, and how deliveries go."""
        from muster.client.services.notifications import NotificationsClient

        return NotificationsClient(self._calls)

    @cached_property
    def nodes(self) -> "NodesClient":
        """Nodes: what they have, whether they take work, and who has joined."""
        from muster.client.services.nodes import NodesClient

        return NodesClient(self._calls)

    @cached_property
    def images(self) -> "ImagesClient":
        """Images that agents have pulled onto their nodes."""
        from muster.client.services.images import ImagesClient

        return ImagesClient(self._calls)

    @cached_property
    def volumes(self) -> "VolumesClient":
        """Volumes that nodes keep for the jobs of projects."""
        from muster.client.services.nodes import VolumesClient

        return VolumesClient(self._calls)

    @cached_property
    def fleet(self) -> "FleetClient":
        """The fleet as a whole: what happened to it, and how all of it changes."""
        from muster.client.services.nodes import FleetClient

        return FleetClient(self._calls)

    @cached_property
    def projects(self) -> "ProjectsClient":
        """Projects, and what each is opened for."""
        from muster.client.services.projects import ProjectsClient

        return ProjectsClient(self._calls)

    @cached_property
    def presets(self) -> "PresetsClient":
        """Presets: named fragments of job files, of projects and of the fleet."""
        from muster.client.services.projects import PresetsClient

        return PresetsClient(self._calls)

    @cached_property
    def pools(self) -> "PoolsClient":
        """Pools: which nodes are in each, and what holds there."""
        from muster.client.services.projects import PoolsClient

        return PoolsClient(self._calls)

    @cached_property
    def windows(self) -> "WindowsClient":
        """Windows: nodes that are out of service, or for one project alone, from a time to a time."""
        from muster.client.services.nodes import WindowsClient

        return WindowsClient(self._calls)

    @cached_property
    def secrets(self) -> "SecretsClient":
        """The secrets of projects; their values go in and never come out."""
        from muster.client.services.secrets import SecretsClient

        return SecretsClient(self._calls)
