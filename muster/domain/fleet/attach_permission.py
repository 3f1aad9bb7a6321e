"""The permission to attach to running executions: for which accounts of a project, and in which ways."""

from dataclasses import dataclass
from enum import StrEnum


class Attachers(StrEnum):
    """Accounts that may attach to the executions of a job."""

    OWNER = "owner"  #: whoever submitted it, and operators of its project
    MEMBERS = "members"  #: all who may submit jobs in its project
    NOBODY = "nobody"  #: nobody, operators and admins included


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachPermission:
    """Accounts that may attach to the executions of a project, and the kinds of attachments that are open."""

    who: Attachers = Attachers.OWNER
    commands: bool = True
    """Whether commands and shells may be started in them."""
    connections: bool = True
    """Whether connections may be made to their ports."""
    files: bool = True
    """Whether their files may be read and written."""
