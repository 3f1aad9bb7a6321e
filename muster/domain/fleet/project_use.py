"""What keeps a project from being removed, or a new one from taking its name, and what to do about each."""

from collections.abc import Mapping, Sequence
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
    POLICY = auto()  #: the policy of the project
    PRESET = auto()  #: a preset of the project
    VOLUME = auto()  #: a volume that a node keeps for the project
    GRANT = auto()  #: an account that was granted access to this project
    TOKEN = auto()  #: a token that still counts, and was made for this project


_USERS: Mapping[UseKind, tuple[str, str, str]] = {
    UseKind.JOB: ("job", "has not ended", "have not ended"),
    UseKind.KEPT_JOB: ("job", "of it is still kept", "of it are still kept"),
    UseKind.SECRET: ("secret", "is kept in it", "are kept in it"),
    UseKind.SUBSCRIPTION: ("subscription", "is kept in it", "are kept in it"),
    UseKind.POLICY: ("policy", "is set for it", "are set for it"),
    UseKind.PRESET: ("preset", "is kept in it", "are kept in it"),
    UseKind.VOLUME: ("volume", "of it is kept by a node", "of it are kept by nodes"),
    UseKind.GRANT: ("account", "has access to it", "have access to it"),
    UseKind.TOKEN: ("token", "is made for it", "are made for it"),
}
"""The noun for one user of a kind, and what one or several do."""


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
        noun, one, several = _USERS[self.kind]
        return f"{counted(self.count, noun)} {one if self.count == 1 else several}"

    def _remedy(self, project: str) -> str:  # noqa: PLR0911 - one for each kind
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
            case UseKind.POLICY:
                return f"projects policy {project} --remove"
            case UseKind.PRESET:
                return f"presets remove {only or 'KIND NAME'} --project {project}"
            case UseKind.VOLUME:
                node, _, name = (only or "NODE NAME").partition(" ")
                return f"volumes remove {node} {project} {name}"
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
