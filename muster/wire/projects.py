"""Projects, and what they are opened for; what roles ask for is in `security`."""

from muster.domain.fleet.access import Policy, Project
from muster.rpc.v1 import projects_pb2 as pb
from muster.wire import checks
from muster.wire.security import known_capabilities, known_pids


def project_to_wire(project: Project) -> pb.Project:
    """The project as a message."""
    return pb.Project(
        name=project.name, created_at=checks.timestamp(project.created_at), policy=policy_to_wire(project.policy)
    )


def project_from_wire(message: pb.Project) -> Project:
    """The project of a message; raises WireError."""
    return Project(
        name=message.name,
        created_at=checks.moment(message.created_at, "Project.created_at"),
        policy=policy_from_wire(message.policy),
    )


def policy_to_wire(policy: Policy) -> pb.Policy | None:
    """What a project is opened for; nothing for one that is not opened."""
    if policy == Policy():
        return None
    return pb.Policy(
        capabilities=sorted(policy.capabilities),
        privileged=policy.privileged,
        gain_privileges=policy.gain_privileges,
        any_user=policy.any_user,
        host_paths=policy.host_paths,
        pids=policy.pids or 0,
    )


def policy_from_wire(message: pb.Policy) -> Policy:
    """What a project is opened for; raises WireError."""
    checks.few(message.host_paths, "Policy.host_paths")
    checks.unique(message.host_paths, "Policy.host_paths")
    return Policy(
        capabilities=frozenset(known_capabilities(message.capabilities, "Policy.capabilities")),
        privileged=message.privileged,
        gain_privileges=message.gain_privileges,
        any_user=message.any_user,
        host_paths=tuple(checks.absolute(path, "Policy.host_paths") for path in message.host_paths),
        pids=known_pids(message.pids, "Policy.pids"),
    )
