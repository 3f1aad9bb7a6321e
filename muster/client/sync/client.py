"""The synchronous form of `muster.client.client`, made from it by `make sync`; change that one."""

from functools import cached_property
from typing import TYPE_CHECKING

from muster.client.blocking.frame import SyncFrame

if TYPE_CHECKING:
    from muster.client.sync.accounts import SyncAccountsClient, SyncAuditClient, SyncAuthorityClient
    from muster.client.sync.attachments import SyncAttachmentsClient
    from muster.client.sync.bundles import SyncBundlesClient
    from muster.client.sync.data import SyncCheckpointsClient, SyncDataClient, SyncOutputsClient
    from muster.client.sync.images import SyncImagesClient
    from muster.client.sync.jobs import SyncJobsClient
    from muster.client.sync.metrics import SyncMetricsClient
    from muster.client.sync.nodes import (
        SyncEventsClient,
        SyncFleetClient,
        SyncNodesClient,
        SyncVolumesClient,
        SyncWindowsClient,
    )
    from muster.client.sync.notifications import SyncNotificationsClient
    from muster.client.sync.projects import SyncPoolsClient, SyncPresetsClient, SyncProjectsClient
    from muster.client.sync.secrets import SyncSecretsClient
    from muster.client.sync.telemetry import SyncTelemetryClient
    from muster.client.sync.tokens import SyncJoinTokensClient, SyncLoginsClient, SyncTokensClient


# What a program does not use is not loaded.
class SyncAdministrationNouns(SyncFrame):
    """What a client has for those who let others in."""

    @cached_property
    def accounts(self) -> "SyncAccountsClient":
        """Accounts of people and programs, and what they may."""
        from muster.client.sync.accounts import SyncAccountsClient

        return SyncAccountsClient(self._own.accounts, self._loop)

    @cached_property
    def tokens(self) -> "SyncTokensClient":
        """API tokens, with which people and programs show who they are."""
        from muster.client.sync.tokens import SyncTokensClient

        return SyncTokensClient(self._own.tokens, self._loop)

    @cached_property
    def join_tokens(self) -> "SyncJoinTokensClient":
        """Join tokens, with which nodes are let in."""
        from muster.client.sync.tokens import SyncJoinTokensClient

        return SyncJoinTokensClient(self._own.join_tokens, self._loop)

    @cached_property
    def logins(self) -> "SyncLoginsClient":
        """Logins through the organisation's identity provider."""
        from muster.client.sync.tokens import SyncLoginsClient

        return SyncLoginsClient(self._own.logins, self._loop)

    @cached_property
    def authority(self) -> "SyncAuthorityClient":
        """The fleet's authority, whose certificates nodes and coordinator show."""
        from muster.client.sync.accounts import SyncAuthorityClient

        return SyncAuthorityClient(self._own.authority, self._loop)

    @cached_property
    def audit(self) -> "SyncAuditClient":
        """The audit log: who did what."""
        from muster.client.sync.accounts import SyncAuditClient

        return SyncAuditClient(self._own.audit, self._loop)

    @cached_property
    def bundles(self) -> "SyncBundlesClient":
        """Bundles, from which machines are installed."""
        from muster.client.sync.bundles import SyncBundlesClient

        return SyncBundlesClient(self._own.bundles, self._loop)


class SyncClient(SyncAdministrationNouns):
    """A connection to a coordinator; use it with `async with`, or with `open` and `close`.

    `address` is `host:port`; None finds it as the command line does (docs/cli.md), and so do `credentials`. `timeout`
    is how long one question may take, in seconds; streams have no limit. Questions and streams survive a restart of the
    coordinator. `connection` goes before `address` and `credentials`.

    >>> with muster.SyncClient() as client:
    ...     print([job.spec.name for job in client.jobs.list(limit=10)])
    """

    @cached_property
    def jobs(self) -> "SyncJobsClient":
        """Jobs: submit, watch, stop, their logs."""
        from muster.client.sync.jobs import SyncJobsClient

        return SyncJobsClient(self._own.jobs, self._loop)

    @cached_property
    def metrics(self) -> "SyncMetricsClient":
        """Numbers that jobs print, to be plotted."""
        from muster.client.sync.metrics import SyncMetricsClient

        return SyncMetricsClient(self._own.metrics, self._loop)

    @cached_property
    def telemetry(self) -> "SyncTelemetryClient":
        """What nodes and executions use at the moment."""
        from muster.client.sync.telemetry import SyncTelemetryClient

        return SyncTelemetryClient(self._own.telemetry, self._loop)

    @cached_property
    def attachments(self) -> "SyncAttachmentsClient":
        """Commands, terminals, ports and files of running executions."""
        from muster.client.sync.attachments import SyncAttachmentsClient

        return SyncAttachmentsClient(self._own.attachments, self._loop)

    @cached_property
    def outputs(self) -> "SyncOutputsClient":
        """What jobs have left: which files, and how one gets them."""
        from muster.client.sync.data import SyncOutputsClient

        return SyncOutputsClient(self._own.outputs, self._loop)

    @cached_property
    def checkpoints(self) -> "SyncCheckpointsClient":
        """What jobs have saved: which checkpoints there are, getting them, and which of them stay."""
        from muster.client.sync.data import SyncCheckpointsClient

        return SyncCheckpointsClient(self._own.checkpoints, self._loop)

    @cached_property
    def data(self) -> "SyncDataClient":
        """Data of jobs: folders that go along."""
        from muster.client.sync.data import SyncDataClient

        return SyncDataClient(self._own.data, self._loop)

    @cached_property
    def events(self) -> "SyncEventsClient":
        """Everything that happens, to jobs, nodes and the fleet."""
        from muster.client.sync.nodes import SyncEventsClient

        return SyncEventsClient(self._own.events, self._loop)

    @cached_property
    def notifications(self) -> "SyncNotificationsClient":
        """Subscriptions: who is told of what happens, and how deliveries go."""
        from muster.client.sync.notifications import SyncNotificationsClient

        return SyncNotificationsClient(self._own.notifications, self._loop)

    @cached_property
    def nodes(self) -> "SyncNodesClient":
        """Nodes: what they have, whether they take work, and who has joined."""
        from muster.client.sync.nodes import SyncNodesClient

        return SyncNodesClient(self._own.nodes, self._loop)

    @cached_property
    def images(self) -> "SyncImagesClient":
        """Images that agents have pulled onto their nodes."""
        from muster.client.sync.images import SyncImagesClient

        return SyncImagesClient(self._own.images, self._loop)

    @cached_property
    def volumes(self) -> "SyncVolumesClient":
        """Volumes that nodes keep for the jobs of projects."""
        from muster.client.sync.nodes import SyncVolumesClient

        return SyncVolumesClient(self._own.volumes, self._loop)

    @cached_property
    def fleet(self) -> "SyncFleetClient":
        """The fleet as a whole: what happened to it, and how all of it changes."""
        from muster.client.sync.nodes import SyncFleetClient

        return SyncFleetClient(self._own.fleet, self._loop)

    @cached_property
    def projects(self) -> "SyncProjectsClient":
        """Projects, and what each is opened for."""
        from muster.client.sync.projects import SyncProjectsClient

        return SyncProjectsClient(self._own.projects, self._loop)

    @cached_property
    def presets(self) -> "SyncPresetsClient":
        """Presets: named fragments of job files, of projects and of the fleet."""
        from muster.client.sync.projects import SyncPresetsClient

        return SyncPresetsClient(self._own.presets, self._loop)

    @cached_property
    def pools(self) -> "SyncPoolsClient":
        """Pools: which nodes are in each, and what holds there."""
        from muster.client.sync.projects import SyncPoolsClient

        return SyncPoolsClient(self._own.pools, self._loop)

    @cached_property
    def windows(self) -> "SyncWindowsClient":
        """Windows: nodes that are out of service, or for one project alone, from a time to a time."""
        from muster.client.sync.nodes import SyncWindowsClient

        return SyncWindowsClient(self._own.windows, self._loop)

    @cached_property
    def secrets(self) -> "SyncSecretsClient":
        """The secrets of projects; their values go in and never come out."""
        from muster.client.sync.secrets import SyncSecretsClient

        return SyncSecretsClient(self._own.secrets, self._loop)
