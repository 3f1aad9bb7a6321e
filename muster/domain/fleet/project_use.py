"""What keeps a project from being removed, or a new one from taking its name, and what to do about each."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import assert_never

from muster.domain.quantity import counted

USERS_NAMED = 5
"""Most jobs, secrets, accounts or tokens of which a refusal has the names."""


class UseKind(Enum):
    """What a project is used by."""

    JOB = auto()  #: a job that has not ended
    KEPT_JOB = auto()  #: a job of a project that was removed
    SECRET = auto()  #: a secret of the project
    SUBSCRIPTION = auto()  #: a subscription of the project
    GRANT = auto()  #: an account that was granted access to this project
    TOKEN = auto()  #: a token that still counts, and was made for this project


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectUse:
    """How many things of one kind use a project; there is at least one."""

    kind: UseKind
    count: int
    first: tuple[str, ...]
    """Names of the first ones."""

    def told(self, project: str) -> str:
        """What uses the project, and the command that ends that."""
        names = ", ".join(self.first) + (", …" if self.count > len(self.first) else "")
        return f"{self._users()} ({names}): `muster {self._remedy(project)}`"

    def _users(self) -> str:
        one = self.count == 1
        match self.kind:
            case UseKind.JOB:
                return f"{counted(self.count, 'job')} {'has' if one else 'have'} not ended"
            case UseKind.KEPT_JOB:
                return f"{counted(self.count, 'job')} of it {'is' if one else 'are'} still kept"
            case UseKind.SECRET:
                return f"{counted(self.count, 'secret')} {'is' if one else 'are'} kept in it"
            case UseKind.SUBSCRIPTION:
                return f"{counted(self.count, 'subscription')} {'is' if one else 'are'} kept in it"
            case UseKind.GRANT:
                return f"{counted(self.count, 'account')} {'has' if one else 'have'} access to it"
            case UseKind.TOKEN:
                return f"{counted(self.count, 'token')} {'is' if one else 'are'} made for it"
            case _:
                assert_never(self.kind)

    def _remedy(self, project: str) -> str:
        only = self.first[0] if self.count == 1 else None
        match self.kind:
            case UseKind.JOB:
                return f"stop {only}" if only else f"stop --all --project {project}"
            case UseKind.KEPT_JOB:
                return f"delete {only}" if only else f"delete --all --project {project}"
            case UseKind.SECRET:
                return f"secrets remove {only or 'NAME'} --project {project}"
            case UseKind.SUBSCRIPTION:
                return f"notify remove {only or 'NAME'} --project {project}"
            case UseKind.GRANT:
                return f"projects revoke {project} {only or 'ACCOUNT'}"
            case UseKind.TOKEN:
                return f"tokens revoke {only or 'ID'}"
            case _:
                assert_never(self.kind)


def use_by(kind: UseKind, names: Sequence[str]) -> tuple[ProjectUse, ...]:
    """The use by things of one kind, of which all names are given; empty where there are none."""
    if not names:
        return ()
    return (ProjectUse(kind=kind, count=len(names), first=tuple(names[:USERS_NAMED])),)
