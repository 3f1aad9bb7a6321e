"""Volumes: directories beside the image that an execution gets by name."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

VOLUMES_DIRECTORY = "/muster/volumes"
"""Where a container finds volumes for which the job names no path."""
VOLUME_VARIABLE = "MUSTER_VOLUME_"
"""The beginning of the names of variables that lead to volumes."""
MAX_VOLUMES = 16
"""Volumes of one role."""
VOLUME_SLACK = 10
"""Percent of its size by which a volume may be larger before its execution is ended: file systems count in blocks."""
MOST_KEPT_VOLUMES = 256
"""Volumes that one node keeps."""


class VolumeKeep(StrEnum):
    """How long what lies in a volume is kept."""

    EXECUTION = "execution"  #: it goes with the execution
    NODE = "node"  #: it stays on the node, for the jobs of the project that name it


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A directory that each execution of a role finds; exactly one of `size` and `tmpfs` is there."""

    name: str
    path: str | None = None
    """Where a container has it; None: below `VOLUMES_DIRECTORY`. A plain process finds it by its variable alone."""
    size: int | None = None
    """Bytes of the node's disk that it may have."""
    tmpfs: int | None = None
    """Bytes of memory that it may have; it then lies on no disk."""
    keep: VolumeKeep = VolumeKeep.EXECUTION
    writable: bool = True
    """Whether user code may write to it; one that it may only read is kept, and others have filled it."""

    @property
    def target(self) -> str:
        """Where a container has it."""
        return self.path or f"{VOLUMES_DIRECTORY}/{self.name}"

    @property
    def variable(self) -> str:
        """The name of the variable that leads to it."""
        return f"{VOLUME_VARIABLE}{self.name.upper().replace('-', '_')}"

    @property
    def is_scratch(self) -> bool:
        """Whether it lies on the node's disk and goes with the execution."""
        return self.size is not None and self.keep is VolumeKeep.EXECUTION

    @property
    def is_kept(self) -> bool:
        """Whether it stays on the node."""
        return self.size is not None and self.keep is VolumeKeep.NODE

    @property
    def is_bounded(self) -> bool:
        """Whether its size is held to while user code runs, which might write more into it."""
        return self.size is not None and self.writable


class VolumeId(NamedTuple):
    """Names a kept volume on its node."""

    project: str
    name: str

    def __str__(self) -> str:
        return f"{self.project}/{self.name}"


def no_kept_volume(node: str, volume: VolumeId) -> str:
    """A sentence on a node that does not keep a volume."""
    return (
        f"node {node} keeps no volume {volume.name} of project {volume.project}; `muster volumes` lists what nodes keep"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptVolume:
    """What an agent tells of a volume that its node keeps."""

    id: VolumeId
    bytes: int
    """Bytes of the disk that lay in it when it was looked at last."""
    used_at: datetime
    """When a job last began or ended to use it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptVolumeNews:
    """What has changed of the volumes that a node keeps."""

    volumes: tuple[KeptVolume, ...] = ()
    """Volumes that are new or other than before."""
    gone: tuple[VolumeId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeRemoval:
    """The order to remove a kept volume from a node."""

    number: str
    """Names the order, for the answer to it."""
    volume: VolumeId


class RemovalOutcome(StrEnum):
    """What has come of the order to remove a kept volume."""

    REMOVED = "removed"  #: no job finds anything of it any more
    IN_USE = "in_use"  #: executions on the node use it, so it stays
    UNKNOWN = "unknown"  #: the node keeps none of this name
    FAILED = "failed"  #: the node could not remove it


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedVolume:
    """An agent's answer to the order to remove a kept volume."""

    number: str
    outcome: RemovalOutcome
    why: str = ""
    """Which executions use it, or what went wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptVolumeView:
    """A volume that a node keeps, as people see it."""

    node: str
    project: str
    name: str
    bytes: int
    """Bytes of the disk that lay in it when it was looked at last."""
    used_at: datetime
    """When a job last began or ended to use it."""
    jobs: tuple[str, ...] = ()
    """Ids of the jobs that use it now."""
    connected: bool = True
    """Whether the node is there; otherwise this is what it told last."""
