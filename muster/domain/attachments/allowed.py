"""The rules of attaching: which account may attach to which execution, and which node takes it."""

from collections.abc import Collection
from dataclasses import dataclass

from muster.domain.attachments.request import AttachmentKind
from muster.domain.fleet.access import Access
from muster.domain.fleet.attach_permission import Attachers, AttachPermission
from muster.domain.fleet.features import ATTACH
from muster.domain.ids import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachTarget:
    """The job that somebody wants to attach to."""

    job: str
    """The job as sentences name it."""
    project: str
    owner: str
    """The account that submitted it; `local` under `muster up`."""


def refusal_to_attach(
    target: AttachTarget, *, kind: AttachmentKind, account: str, access: Access | None, permission: AttachPermission
) -> str | None:
    """Why an account with this access to the job's project, or none, may not attach, and what would let it.

    None: it may.
    """
    project = target.project
    if access is None or not access.covers(Access.MEMBER):
        return f"attaching to {target.job} needs member access to project {project}"
    if permission.who is Attachers.NOBODY:
        return (
            f"project {project} is closed for attaching; an admin opens it with "
            f"`muster projects allow {project} --attach owner`"
        )
    noun, opened = _ways(permission)[kind]
    if not opened:
        return (
            f"project {project} is closed for {noun} in running executions; an admin opens it with "
            f"`muster projects allow {project} --{noun}`"
        )
    if permission.who is Attachers.MEMBERS or account == target.owner or access.covers(Access.OPERATOR):
        return None
    return (
        f"{target.job} was submitted by another account; attaching to it needs operator access to project {project}, "
        f"or `muster projects allow {project} --attach members`"
    )


def refusal_of_node(node: NodeId, features: Collection[str]) -> str | None:
    """Why a node takes no attachments, from the features of its record; None: it does."""
    if ATTACH in features:
        return None
    return f"{node} takes no attachments (its agent was started with --no-attach, or is older)"


def _ways(permission: AttachPermission) -> dict[AttachmentKind, tuple[str, bool]]:
    """The word that `muster projects allow` has for each kind, and whether the project is open for it."""
    return {
        AttachmentKind.COMMAND: ("commands", permission.commands),
        AttachmentKind.CONNECTION: ("connections", permission.connections),
        AttachmentKind.FILES: ("files", permission.files),
    }
