"""Every kind of value that crosses the wire, with its two functions, its message, and how values of it are made."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from google.protobuf.message import Message
from hypothesis import strategies as st

from muster import wire
from muster.rpc.v1 import (
    agents_pb2,
    attachments_pb2,
    data_pb2,
    events_pb2,
    feed_pb2,
    fleet_pb2,
    jobs_pb2,
    model_pb2,
    nodes_pb2,
    notifications_pb2,
    pools_pb2,
    presets_pb2,
    projects_pb2,
    telemetry_pb2,
    trust_pb2,
)
from muster.wire.data import checkpoints, image_pulls, images, outputs, pulled_images, saved, swarms, volumes
from muster.wire.feeds import batches
from muster.wire.notifications import happenings, subscriptions
from muster.wire.sharing import policies, presets
from muster.wire.telemetry import coordinator_figures
from tests.unit import (
    attachment_values,
    checkpoint_values,
    event_values,
    feed_values,
    image_values,
    node_values,
    output_values,
    point_values,
    policy_values,
    quota_values,
    sample_values,
    secret_values,
    subscription_values,
    trust_values,
    volume_values,
)
from tests.unit import wire_values as values


@dataclass(frozen=True, slots=True)
class Pair:
    """A kind of value with its two functions, found by name."""

    name: str
    strategy: st.SearchStrategy[Any]
    message: type[Message]
    place: ModuleType = wire
    """Where the functions are."""

    @property
    def to_wire(self) -> Callable[[Any], Message]:
        found: Callable[[Any], Message] = getattr(self.place, f"{self.name}_to_wire")
        return found

    @property
    def from_wire(self) -> Callable[[Message], Any]:
        found: Callable[[Message], Any] = getattr(self.place, f"{self.name}_from_wire")
        return found


PAIRS = (
    Pair("account", trust_values.accounts, trust_pb2.Account),
    Pair("authority_status", trust_values.authority_statuses, trust_pb2.AuthorityStatus),
    Pair("audit_entry", trust_values.audit_entries, trust_pb2.AuditEntry),
    Pair("enrolled_node", trust_values.enrolled_nodes, trust_pb2.EnrolledNode),
    Pair("join_token", trust_values.join_tokens, trust_pb2.JoinToken),
    Pair("project", trust_values.projects, projects_pb2.Project),
    Pair("job_policy", policy_values.policies, projects_pb2.JobPolicy, policies),
    Pair("preset", policy_values.presets, presets_pb2.Preset, presets),
    Pair("unit_change", quota_values.changes, projects_pb2.UnitChange),
    Pair("unit_standing", quota_values.standings, projects_pb2.UnitStanding),
    Pair("pool", quota_values.set_pools, pools_pb2.Pool),
    Pair("pool_view", quota_values.pool_views, pools_pb2.PoolView),
    Pair("usage_wish", quota_values.usage_wishes, projects_pb2.UsageRequest),
    Pair("usage_report", quota_values.usage_reports, projects_pb2.UsageResponse),
    Pair("queue_page", quota_values.queue_pages, projects_pb2.QueueResponse),
    Pair("token", trust_values.tokens, trust_pb2.Token),
    Pair("attachment_frame", attachment_values.attachment_frames, attachments_pb2.AttachmentFrame),
    Pair("attachment_order", attachment_values.attachment_orders, attachments_pb2.AttachmentOrder),
    Pair("attachment_pass", attachment_values.attachment_passes, attachments_pb2.OpenAttachmentResponse),
    Pair("attachment_report", attachment_values.attachment_reports, attachments_pb2.AttachmentReport),
    Pair("attachment_request", attachment_values.attachment_requests, attachments_pb2.AttachmentRequest),
    Pair("channel_message", attachment_values.channel_messages, attachments_pb2.AttachmentFrame),
    Pair("notice_for_attached", attachment_values.notices_for_attached, attachments_pb2.NoticeForAttached),
    Pair("opened_attachment", attachment_values.opened_attachments, attachments_pb2.OpenedAttachment),
    Pair("served_attachment", attachment_values.served_attachments, attachments_pb2.ServedAttachment),
    Pair("job_change", values.job_changes, jobs_pb2.ChangeRequest),
    Pair("wait_reason", values.wait_reasons, jobs_pb2.WaitReason),
    Pair("attempt", values.attempt_views, jobs_pb2.Attempt),
    Pair("execution_outputs", output_values.execution_outputs, model_pb2.ExecutionOutputs, outputs),
    Pair("output_terms", output_values.output_terms, model_pb2.OutputTerms, outputs),
    Pair("outputs_pass", output_values.output_passes, agents_pb2.DataResponse, outputs),
    Pair("swarm_pass", output_values.swarm_passes, agents_pb2.SwarmResponse, swarms),
    Pair("outputs_retry", output_values.output_retries, data_pb2.RetryOutputsResponse, outputs),
    Pair("job_outputs", output_values.job_outputs, data_pb2.OutputsResponse, outputs),
    Pair("job_checkpoints", checkpoint_values.job_checkpoints, data_pb2.CheckpointsResponse, saved),
    Pair("checkpoint_pass", checkpoint_values.passes, agents_pb2.DataResponse, checkpoints),
    Pair("checkpoint_view", checkpoint_values.views, data_pb2.SavedCheckpoint, saved),
    Pair("checkpoint_parts", checkpoint_values.found_parts, data_pb2.CheckpointPartsResponse, saved),
    Pair("kept_volume", volume_values.kept_volumes, agents_pb2.KeptVolume, volumes),
    Pair("kept_volume_news", volume_values.kept_volume_news, agents_pb2.KeptVolumes, volumes),
    Pair("volume_removal", volume_values.volume_removals, agents_pb2.VolumeRemoval, volumes),
    Pair("removed_volume", volume_values.removed_volumes, agents_pb2.RemovedVolume, volumes),
    Pair("volume_view", volume_values.volume_views, data_pb2.VolumeOfNode, volumes),
    Pair("told_image", image_values.told_images, agents_pb2.PulledImage, pulled_images),
    Pair("image_news", image_values.image_news, agents_pb2.PulledImages, pulled_images),
    Pair("image_clearance", image_values.image_clearances, agents_pb2.ImageClearance, pulled_images),
    Pair("image_fate", image_values.image_fates, model_pb2.ImageFate, pulled_images),
    Pair("cleared_images", image_values.cleared_images, agents_pb2.ClearedImages, pulled_images),
    Pair("image_view", image_values.image_views, nodes_pb2.ImageOfNode, pulled_images),
    Pair("image_pull", image_values.image_pulls, agents_pb2.ImagePull, image_pulls),
    Pair("pull_news", image_values.pull_news, agents_pb2.PullNews, image_pulls),
    Pair("node_pull", image_values.node_pulls, nodes_pb2.NodePull, image_pulls),
    Pair("pull_view", image_values.pull_views, nodes_pb2.PullOfImage, image_pulls),
    Pair("found_image", volume_values.found_images, model_pb2.FoundImage, images),
    Pair("image_pass", volume_values.image_passes, agents_pb2.ImageResponse, images),
    Pair("depot_use", quota_values.depot_uses, data_pb2.StorageResponse),
    Pair("delivered", secret_values.delivered, agents_pb2.DeliveredSecret),
    Pair("execution", values.execution_views, jobs_pb2.Execution),
    Pair("exit", values.exits, model_pb2.Exit),
    Pair("explanation", values.explanations, jobs_pb2.WhyResponse),
    Pair("failure", values.failures, model_pb2.Failure),
    Pair("gpu", node_values.gpus, model_pb2.Gpu),
    Pair("inventory", node_values.inventories, model_pb2.Inventory),
    Pair("job", values.job_views, jobs_pb2.Job),
    Pair("job_event", event_values.job_events, jobs_pb2.JobEvent),
    Pair("node_event", event_values.node_events, nodes_pb2.NodeEvent),
    Pair("event_place", event_values.event_places, events_pb2.EventPlace, happenings),
    Pair("happening", event_values.happenings, events_pb2.Happening, happenings),
    Pair("fleet_event", event_values.fleet_events, fleet_pb2.FleetEvent),
    Pair("coordinator_figures", sample_values.coordinator_figures, fleet_pb2.CoordinatorFigures, coordinator_figures),
    Pair("feed_place", feed_values.feed_places, feed_pb2.FeedPlace, batches),
    Pair("feed_batch", feed_values.feed_batches, feed_pb2.FeedBatch, batches),
    Pair("job_spec", values.job_specs, model_pb2.JobSpec),
    Pair("log_line", values.log_lines, jobs_pb2.LogLine),
    Pair("rank_points", point_values.rank_points, jobs_pb2.RankPoints),
    Pair("node_sample", sample_values.node_samples, telemetry_pb2.NodeTelemetry),
    Pair("window", node_values.windows, nodes_pb2.Window),
    Pair("node", node_values.node_views, nodes_pb2.Node),
    Pair("plan", values.plans(), agents_pb2.Plan),
    Pair("port_lease", values.port_leases, model_pb2.PortLease),
    Pair("report", values.reports(), agents_pb2.ExecutionReport),
    Pair("resources", values.resources, model_pb2.Resources),
    Pair("role", values.roles, model_pb2.Role),
    Pair("roster", values.rosters(), model_pb2.Roster),
    Pair("secret", secret_values.secrets, trust_pb2.Secret),
    Pair("subscription", subscription_values.subscriptions, notifications_pb2.Subscription, subscriptions),
    Pair("delivery_try", subscription_values.tries, notifications_pb2.DeliveryTry, subscriptions),
    Pair("reported_delivery", subscription_values.reported, notifications_pb2.ReportedDelivery, subscriptions),
    Pair(
        "followed_subscriptions", subscription_values.followed, notifications_pb2.FollowedSubscriptions, subscriptions
    ),
    Pair("secret_use", values.secret_uses, model_pb2.SecretUse),
)
