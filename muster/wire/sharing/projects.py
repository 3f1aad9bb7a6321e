"""Projects, and what they are opened for; what roles ask for is in `security`."""

from muster.domain.fleet.access import Permissions, Project
from muster.domain.fleet.attach_permission import Attachers, AttachPermission
from muster.rpc.v1 import projects_pb2 as pb
from muster.wire import checks
from muster.wire.security import known_capabilities, known_pids
from muster.wire.sharing.quotas import terms_from_wire, terms_to_wire


def project_to_wire(project: Project) -> pb.Project:
    """The project as a message."""
    return pb.Project(
        name=project.name,
        created_at=checks.timestamp(project.created_at),
        permissions=permissions_to_wire(project.permissions),
        department=project.department,
        terms=terms_to_wire(project.terms),
        storage=project.storage,
    )


def project_from_wire(message: pb.Project) -> Project:
    """The project of a message; raises WireError."""
    return Project(
        name=message.name,
        created_at=checks.moment(message.created_at, "Project.created_at"),
        permissions=permissions_from_wire(message.permissions),
        department=checks.text(message.department, "Project.department"),
        terms=terms_from_wire(message.terms),
        storage=checks.size(message.storage, "Project.storage"),
    )


def permissions_to_wire(permissions: Permissions) -> pb.Permissions | None:
    """What a project is opened for; nothing for one that is not opened."""
    if permissions == Permissions():
        return None
    return pb.Permissions(
        capabilities=sorted(permissions.capabilities),
        privileged=permissions.privileged,
        gain_privileges=permissions.gain_privileges,
        any_user=permissions.any_user,
        host_paths=permissions.host_paths,
        pids=permissions.pids or 0,
        attach=_attach_to_wire(permissions.attach),
    )


def permissions_from_wire(message: pb.Permissions) -> Permissions:
    """What a project is opened for; raises WireError."""
    checks.few(message.host_paths, "Permissions.host_paths")
    checks.unique(message.host_paths, "Permissions.host_paths")
    return Permissions(
        capabilities=frozenset(known_capabilities(message.capabilities, "Permissions.capabilities")),
        privileged=message.privileged,
        gain_privileges=message.gain_privileges,
        any_user=message.any_user,
        host_paths=tuple(checks.absolute(path, "Permissions.host_paths") for path in message.host_paths),
        pids=known_pids(message.pids, "Permissions.pids"),
        attach=_attach_from_wire(message.attach),
    )


def _attach_to_wire(permission: AttachPermission) -> pb.AttachPermission | None:
    if permission == AttachPermission():
        return None
    return pb.AttachPermission(
        who=permission.who,
        no_commands=not permission.commands,
        no_connections=not permission.connections,
        no_files=not permission.files,
    )


def _attach_from_wire(message: pb.AttachPermission) -> AttachPermission:
    return AttachPermission(
        who=checks.word(Attachers, message.who or Attachers.OWNER, "AttachPermission.who"),
        commands=not message.no_commands,
        connections=not message.no_connections,
        files=not message.no_files,
    )
