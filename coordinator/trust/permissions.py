"""What of a job its project is not opened for, and how changes of permissions are told."""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from muster.domain.errors import PermissionDeniedError
from muster.domain.fleet.access import Permissions
from muster.domain.fleet.user import numeric
from muster.domain.jobs.job import DEFAULT_PIDS, JobSpec, Role

_PRIORITIES = frozenset({"nice", "rtprio"})
"""Limits with which plain users may go before everybody else on the node."""
SYS_NICE = "SYS_NICE"
"""The capability that gives the same right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """Something that a role asks for and its project is not opened for."""

    role: str
    key: str
    """The key as the job file names it."""
    wish: str
    """What the role asks for."""
    option: str
    """The option of `muster projects allow` that opens the project for it."""

    def __str__(self) -> str:
        return f"role {self.role}, {self.key}: {self.wish} ({self.option})"


def closed(spec: JobSpec, permissions: Permissions) -> tuple[Closed, ...]:
    """All that the permissions do not open, role by role; empty: the job may be taken."""
    return tuple(
        Closed(role=role.name, key=key, wish=wish, option=option)
        for role in spec.roles
        for key, wish, option in (*_users(role, permissions), *_rights(role, permissions), *_mounts(role, permissions))
    )


def require_open(spec: JobSpec, permissions: Permissions) -> None:
    """Raise PermissionDeniedError, which names every role and key, unless the project is opened for all of the job."""
    found = closed(spec, permissions)
    if not found:
        return
    lines = "".join(f"\n  {each}" for each in found)
    options = " ".join(dict.fromkeys(each.option for each in found))
    raise PermissionDeniedError(
        f"project {spec.project} is not opened for what the job asks for:{lines}\n"
        f"leave it out, or ask an admin for `muster projects allow {spec.project} {options}`"
    )


def changes(before: Permissions, after: Permissions) -> str:
    """What changed permissions open or close, for the audit log; `nothing` if they are equal."""
    parts = [
        *_set_changes(before.capabilities, after.capabilities),
        *_set_changes(frozenset(before.host_paths), frozenset(after.host_paths)),
        *(
            f"{'+' if getattr(after, name) else '-'}{name.replace('_', '-')}"
            for name in ("privileged", "gain_privileges", "any_user")
            if getattr(before, name) != getattr(after, name)
        ),
    ]
    if before.pids != after.pids:
        parts.append(f"pids {before.pids or 'default'} -> {after.pids or 'default'}")
    if before.attach.who is not after.attach.who:
        parts.append(f"attach {before.attach.who} -> {after.attach.who}")
    parts += [
        f"{'+' if getattr(after.attach, name) else '-'}{name}"
        for name in ("commands", "connections", "files")
        if getattr(before.attach, name) != getattr(after.attach, name)
    ]
    return ", ".join(parts) or "nothing"


def _set_changes(before: frozenset[str], after: frozenset[str]) -> Iterator[str]:
    yield from (f"+{each}" for each in sorted(after - before))
    yield from (f"-{each}" for each in sorted(before - after))


Found = Iterator[tuple[str, str, str]]
"""Key, wish, and the option that opens a project for it."""


def _users(role: Role, permissions: Permissions) -> Found:
    if permissions.any_user:
        return
    if role.security.image_user:
        yield "security.image_user", "any user that the image names, root too", "--any-user"
    if role.user is None:
        return
    user = numeric(role.user)
    if user is None:
        yield "user", f"{role.user}, which is no number, and may be root in the image", "--any-user"
    elif user.is_root:
        yield "user", f"{role.user}, which is root or in its group", "--any-user"


def _rights(role: Role, permissions: Permissions) -> Found:
    asked = role.security
    for capability in asked.capabilities:
        if capability not in permissions.capabilities:
            yield "security.capabilities", capability, f"--capability {capability}"
    if asked.privileged and not permissions.privileged:
        yield "security.privileged", "all that root of the node may", "--privileged"
    if asked.gain_privileges and not permissions.gain_privileges:
        yield "security.gain_privileges", "programs that gain privileges", "--gain-privileges"
    for limit in role.ulimits:
        if limit.name in _PRIORITIES and limit.hard != 0 and SYS_NICE not in permissions.capabilities:
            yield (
                "ulimits",
                f"{limit.name}, a priority above that of the node's own programs",
                f"--capability {SYS_NICE}",
            )
    most = permissions.pids or DEFAULT_PIDS
    if asked.pids is not None and asked.pids > most:
        yield "security.pids", f"{asked.pids}, more than {most}", f"--pids {asked.pids}"


def _mounts(role: Role, permissions: Permissions) -> Found:
    for mount in role.mounts:
        source = PurePosixPath(posixpath.normpath(mount.source))
        if not any(source.is_relative_to(path) for path in permissions.host_paths):
            yield "mounts", str(source), f"--host-path {source}"
