"""Volumes: directories beside the image that an execution gets by name."""

from dataclasses import dataclass
from enum import StrEnum

VOLUMES_DIRECTORY = "/muster/volumes"
"""Where a container finds volumes for which the job names no path."""
VOLUME_VARIABLE = "MUSTER_VOLUME_"
"""The beginning of the names of variables that lead to volumes."""
MAX_VOLUMES = 16
"""Volumes of one role."""
VOLUME_SLACK = 10
"""Percent of its size by which a volume may be larger before its execution is ended: file systems count in blocks."""


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
