"""Which operation each gRPC call is. A call that is not in this table is refused."""

from collections.abc import Mapping

from coordinator.service.rules import RULES, AccessScope

_OURS: Mapping[str, Mapping[str, str]] = {
    "JobService": {
        "Submit": "jobs.submit",
        "SubmitMany": "jobs.submit",
        "Get": "jobs.get",
        "List": "jobs.list",
        "Stop": "jobs.stop",
        "Delete": "jobs.delete",
        "Hold": "jobs.hold",
        "Unhold": "jobs.unhold",
        "Suspend": "jobs.suspend",
        "Resume": "jobs.resume",
        "Change": "jobs.change",
        "Watch": "jobs.watch",
        "Logs": "jobs.logs",
        "Points": "jobs.points",
        "Why": "jobs.why",
        "Events": "jobs.events",
    },
    "DataService": {
        "Upload": "data.upload",
        "Storage": "data.storage",
        "Outputs": "data.outputs",
        "RetryOutputs": "outputs.retry",
        "Checkpoints": "checkpoints.list",
        "CheckpointParts": "checkpoints.get",
        "PinCheckpoint": "checkpoints.pin",
        "UnpinCheckpoint": "checkpoints.unpin",
        "RemoveCheckpoint": "checkpoints.remove",
        "Volumes": "volumes.list",
        "RemoveVolume": "volumes.remove",
    },
    "AttachmentService": {
        "Open": "attachments.open",
        "List": "attachments.list",
        "Close": "attachments.close",
    },
    "NodeService": {
        "List": "nodes.list",
        "Get": "nodes.get",
        "Remove": "nodes.remove",
        "Cordon": "nodes.cordon",
        "Uncordon": "nodes.uncordon",
        "Label": "nodes.label",
        "Taint": "nodes.taint",
        "Events": "nodes.events",
    },
    "ImageService": {
        "List": "images.list",
        "Clear": "images.clear",
        "Pull": "images.pull",
        "Pulled": "images.watch",
    },
    "WindowService": {
        "List": "windows.list",
        "Put": "windows.put",
        "Remove": "windows.remove",
    },
    "PoolService": {
        "List": "pools.list",
        "Put": "pools.put",
        "Remove": "pools.remove",
    },
    "TelemetryService": {
        "OfJob": "jobs.samples",
        "OfNodes": "nodes.samples",
    },
    "FeedService": {
        "Follow": "feed.follow",
    },
    "FleetService": {
        "Events": "fleet.events",
        "Figures": "coordinator.show",
    },
    "EventService": {
        "All": "events.list",
    },
    "ProjectService": {
        "List": "projects.list",
        "Get": "projects.get",
        "Add": "projects.add",
        "Allow": "projects.allow",
        "LimitStorage": "projects.storage",
        "Remove": "projects.remove",
        "GetPolicies": "policies.get",
        "SetPolicy": "policies.set",
        "Quotas": "quotas.list",
        "SetQuotas": "quotas.set",
        "Queue": "queue.list",
        "Usage": "usage.show",
    },
    "PresetService": {
        "Put": "presets.put",
        "Get": "presets.get",
        "List": "presets.list",
        "History": "presets.history",
        "Remove": "presets.remove",
    },
    "SecretService": {
        "Put": "secrets.set",
        "List": "secrets.list",
        "Remove": "secrets.remove",
    },
    "NotificationService": {
        "Put": "notifications.put",
        "List": "notifications.list",
        "Remove": "notifications.remove",
        "Test": "notifications.test",
        "Deliveries": "notifications.deliveries",
        "Follow": "notifications.follow",
        "Report": "notifications.report",
    },
    "BundleService": {
        "List": "bundles.list",
        "Get": "bundles.get",
        "Put": "bundles.put",
        "Remove": "bundles.remove",
    },
    "LoginService": {
        "Start": "logins.start",
        "Finish": "logins.finish",
        "Hand": "logins.hand",
        "Redeem": "logins.redeem",
        "Begin": "logins.begin",
        "Complete": "logins.complete",
    },
    "JoinService": {
        "Authority": "authority.pin",
        "Join": "nodes.join",
    },
    "TrustService": {
        "WhoAmI": "accounts.whoami",
        "ListAccounts": "accounts.list",
        "AddAccount": "accounts.add",
        "RemoveAccount": "accounts.remove",
        "Grant": "accounts.grant",
        "CreateToken": "tokens.create",
        "ListTokens": "tokens.list",
        "RevokeToken": "tokens.revoke",
        "PruneTokens": "tokens.prune",
        "CreateJoinToken": "join_tokens.create",
        "ListJoinTokens": "join_tokens.list",
        "RevokeJoinToken": "join_tokens.revoke",
        "ListEnrolledNodes": "nodes.enrolled",
        "RevokeNode": "nodes.revoke",
        "ShowAuthority": "authority.show",
        "RotateAuthority": "authority.rotate",
        "FinishRotation": "authority.finish",
        "ListAudit": "audit.list",
    },
    "AgentService": {
        "Connect": "agents.connect",
        "PushLogs": "agents.push_logs",
        "Renew": "agents.renew",
        "Secrets": "secrets.deliver",
        "Data": "data.deliver",
        "Inputs": "data.found",
        "Image": "images.found",
        "Swarm": "swarms.show",
    },
}

OPERATIONS: Mapping[str, str] = {
    f"/muster.rpc.v1.{service}/{call}": operation
    for service, calls in _OURS.items()
    for call, operation in calls.items()
}
"""Operations by the path of the call."""

PUBLIC = frozenset(
    {
        *(method for method, operation in OPERATIONS.items() if RULES[operation].scope is AccessScope.PUBLIC),
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/List",
        "/grpc.health.v1.Health/Watch",
        # What it tells is in the public repository.
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    }
)
"""Paths of calls that strangers may make, those that are no operation among them."""


def is_public(method: str) -> bool:
    """Whether strangers may make a call."""
    return method in PUBLIC


def operation_of(method: str) -> str:
    """What the audit log calls a call; one that is no operation has its own name, like `Health.Check`."""
    return OPERATIONS.get(method) or _short(method)


def _short(method: str) -> str:
    """`/muster.rpc.v1.JobService/Submit` as `JobService.Submit`."""
    service, _, call = method.rpartition("/")
    return f"{service.rpartition('.')[2]}.{call}"
