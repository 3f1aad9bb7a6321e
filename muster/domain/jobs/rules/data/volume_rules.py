"""What is wrong with the volumes of a role."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from muster.domain.data.volume import MAX_VOLUMES, Volume, VolumeKeep
from muster.domain.fault import Fault, Path
from muster.domain.jobs.job import Role
from muster.domain.jobs.rules import job_values as values
from muster.domain.jobs.rules.data.covering import covering_faults, mount_places, secret_places
from muster.domain.jobs.rules.job_values import Wrong
from muster.domain.jobs.rules.telling import told
from muster.domain.quantity import format_memory
from muster.domain.quoting import quote

MIN_VOLUME = 2**20
"""Bytes; a volume for less is a mistake in the unit."""


def volume_path(text: str) -> Wrong | None:
    """A path at which a container can have a volume."""
    if wrong := values.absolute(text) or values.mount_target(text):
        return wrong
    if any(PurePosixPath(text).is_relative_to(each) for each in values.SYSTEM_DIRECTORIES):
        return Wrong(f"{quote(text)} is the system's own; name another directory")
    return None


def volume_faults(role: Role) -> Iterator[Fault]:
    """Everything that is wrong with a role's volumes, by paths below the role."""
    if len(role.volumes) > MAX_VOLUMES:
        yield Fault(path=("volumes",), message=f"has {len(role.volumes)} volumes; {MAX_VOLUMES} are the most")
        return
    names: set[str] = set()
    for volume in role.volumes:
        where = ("volumes", volume.name)
        if volume.name in names:
            yield Fault(path=where, message="is there twice")
        names.add(volume.name)
        yield from told(where, values.label(volume.name))
        yield from _amounts(volume, where)
        yield from _writing(role, volume, where)
        yield from _place(role, volume, where)
    yield from _in_each_other(role)
    yield from _in_memory(role)


def _amounts(volume: Volume, where: Path) -> Iterator[Fault]:
    if (volume.size is None) == (volume.tmpfs is None):
        yield Fault(path=where, message="needs exactly one of size and tmpfs")
        return
    if volume.size is not None:
        yield from told((*where, "size"), values.memory(volume.size, MIN_VOLUME))
    if volume.tmpfs is not None:
        yield from told((*where, "tmpfs"), values.memory(volume.tmpfs, MIN_VOLUME))
        if volume.keep is VolumeKeep.NODE:
            yield Fault(
                path=(*where, "keep"), message="needs size: what lies in memory (tmpfs) goes with the execution"
            )


def _writing(role: Role, volume: Volume, where: Path) -> Iterator[Fault]:
    """What is wrong with a volume that may only be read."""
    if volume.writable:
        return
    if volume.keep is not VolumeKeep.NODE:
        message = "needs keep: node: any other volume is empty at the start, and there would be nothing to read"
        yield Fault(path=(*where, "writable"), message=message)
    elif role.image is None:
        message = "needs an image: nothing keeps a plain process from writing to a directory of its own user"
        yield Fault(path=(*where, "writable"), message=message)


def _place(role: Role, volume: Volume, where: Path) -> Iterator[Fault]:
    if role.image is None and volume.path is not None:
        message = f"needs an image: a plain process finds the volume by the variable {volume.variable}"
        yield Fault(path=(*where, "path"), message=message)
    elif volume.path is not None:
        yield from told((*where, "path"), volume_path(volume.path))
    if role.image is None and volume.tmpfs is not None:
        message = "needs an image: a plain process cannot have it; take /dev/shm of the node, or size"
        yield Fault(path=(*where, "tmpfs"), message=message)


def _in_each_other(role: Role) -> Iterator[Fault]:
    """Volumes of which one would cover another one, or what else the container has there."""
    if role.image is not None:
        places = [(volume.name, volume.target) for volume in role.volumes]
        yield from covering_faults("volumes", "volume", places, [*mount_places(role), *secret_places(role)])


def _in_memory(role: Role) -> Iterator[Fault]:
    limit = role.resources.most_memory
    wanted = sum(volume.tmpfs or 0 for volume in role.volumes)
    if wanted and limit is not None and wanted >= limit:
        last = next(volume for volume in reversed(role.volumes) if volume.tmpfs)
        message = (
            f"makes {format_memory(wanted)} of volumes in memory, and the execution may use {format_memory(limit)} in "
            "all (resources.memory)"
        )
        yield Fault(path=("volumes", last.name, "tmpfs"), message=message)
