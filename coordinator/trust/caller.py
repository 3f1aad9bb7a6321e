"""Callers, and what each may."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from muster.domain.errors import PermissionDeniedError
from muster.domain.fleet.access import EVERYWHERE, Access, seen_projects
from muster.domain.ids import NodeId
from muster.domain.jobs.job import DEFAULT_PROJECT


class RefusedError(PermissionDeniedError):
    """A token or certificate does not count; the message may be shown to a stranger, `cause` stays in the audit log."""

    def __init__(self, message: str, cause: str, who: str = "") -> None:
        super().__init__(message)
        self.cause = cause
        self.who = who


class CallerKind(StrEnum):
    """How the coordinator knows a caller."""

    STRANGER = "stranger"  #: not at all
    USER = "user"  #: a person's token
    SERVICE = "service"  #: a program's token
    CONSOLE = "console"  #: a console's token
    NODE = "node"  #: a node's certificate
    LOCAL = "local"  #: the token of `muster up`: whoever may read that file, and this fleet's own agents


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """One who calls."""

    kind: CallerKind
    name: str = ""
    """Name of the account; `node/NAME` for a node."""
    node: NodeId | None = None
    grants: Mapping[str, Access] = field(default_factory=dict)
    token: str = ""
    """Id of the token that was shown."""
    key: str = ""
    """Fingerprint of the key of the certificate that was shown."""
    authority: str = ""
    """Id of the authority that has signed this certificate."""
    until: datetime | None = None
    """When token or certificate ends."""
    access: Access | None = None
    """The most that the token may; None: all that its account may."""
    projects: tuple[str, ...] = ()
    """The only projects in which the token counts; empty: wherever its account has access."""
    warned_from: datetime | None = None
    """When the caller begins to be told that the token ends; None: never."""
    origin: str = ""
    """The address from which the call comes, as gRPC names peers; the audit log has it."""

    @property
    def narrowed(self) -> bool:
        """Whether the token may less than its account."""
        return self.access is not None or bool(self.projects)

    def may(self, access: Access, project: str = EVERYWHERE) -> bool:
        """Whether the caller has this access to a project, or to all."""
        granted = (self.grants.get(EVERYWHERE), self.grants.get(project))
        return any(has is not None and has.covers(access) for has in granted)

    def access_to(self, project: str) -> Access | None:
        """The most that the caller may in a project; None: nothing."""
        granted = (self.grants.get(EVERYWHERE), self.grants.get(project))
        return max((has for has in granted if has is not None), key=list(Access).index, default=None)

    @property
    def seen_projects(self) -> frozenset[str] | None:
        """The projects whose jobs the caller may look at; None: all."""
        return seen_projects(self.grants)

    def meant_project(self, said: str = "") -> str:
        """The project that is `said`, else the only one in which the caller may submit, else `default`."""
        if said or self.may(Access.MEMBER):
            return said or DEFAULT_PROJECT
        own = [project for project, has in self.grants.items() if has.covers(Access.MEMBER)]
        return own[0] if len(own) == 1 else DEFAULT_PROJECT

    def may_anywhere(self, access: Access) -> bool:
        """Whether the caller has this access to any project."""
        return any(has.covers(access) for has in self.grants.values())

    def speaks_for(self, node: NodeId) -> bool:
        """Whether what the caller says about a node is the node's own word."""
        return self.kind is CallerKind.LOCAL or (self.kind is CallerKind.NODE and self.node == node)


STRANGER = Caller(kind=CallerKind.STRANGER)
LOCAL = Caller(kind=CallerKind.LOCAL, name="local", grants={EVERYWHERE: Access.ADMIN})
