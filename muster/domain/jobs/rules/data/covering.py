"""Places in a container of which one would cover another one."""

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from muster.domain.fault import Fault
from muster.domain.jobs.job import Role


def mount_places(role: Role) -> list[tuple[str, str]]:
    """Where the mounts of a role lie, each with what it is called."""
    return [(mount.target, f"the mount at {mount.target}") for mount in role.mounts]


def secret_places(role: Role) -> list[tuple[str, str]]:
    """Where the secrets of a role lie that have a directory, each with what it is called."""
    return [(use.directory, f"the secret {use.secret}") for use in role.secrets if use.directory]


def covering_faults(
    key: str, what: str, places: Iterable[tuple[str, str]], taken: Iterable[tuple[str, str]]
) -> Iterator[Fault]:
    """A fault for each of a role's `key` that covers what is taken, or is covered by it; `places`: name, and where."""
    others = [(PurePosixPath(target), found) for target, found in taken]
    for name, target in places:
        own = PurePosixPath(target)
        for other, found in others:
            if own.is_relative_to(other) or other.is_relative_to(own):
                yield Fault(path=(key, name), message=f"lies at {own}, where {found} is")
        others.append((own, f"the {what} {name}"))
