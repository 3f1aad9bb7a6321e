"""Who may attach to running executions of a project, and in which ways."""

from dataclasses import dataclass
from enum import StrEnum


class Attachers(StrEnum):
    """Those who may attach to the executions of a job, each with the project's own access."""

    OWNER = "owner"  #: whoever submitted it, and operators of its project
    MEMBERS = "members"  #: all who may submit jobs in its project
    NOBODY = "nobody"  #: nobody, operators and admins included


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachPermission:
    """Who may attach to the executions of a project, and to which of the three kinds."""

    who: Attachers = Attachers.OWNER
    commands: bool = True
    """Whether commands and shells may be started in them."""
    connections: bool = True
    """Whether connections may be made to their ports."""
    files: bool = True
    """Whether their files may be read and written."""
