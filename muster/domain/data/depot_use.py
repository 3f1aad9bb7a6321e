"""What the fleet's depot holds, as clients see it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectHolding:
    """What the jobs of a project name in the depot."""

    trees: int
    objects: int
    """Objects that its trees list, each counted once, whether other projects name them too or not."""
    bytes: int
    """Bytes of these objects."""
    limit: int = 0
    """Bytes that the project may keep; 0 for one that was removed."""


NOTHING_HELD = ProjectHolding(trees=0, objects=0, bytes=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotUse:
    """What the depot held when it was looked through last."""

    at: datetime
    projects: Mapping[str, ProjectHolding] = field(default_factory=dict)
    """Projects that the caller may look at, by name."""
    objects: int = 0
    """Objects in all, also of other projects."""
    bytes: int = 0
    unnamed_objects: int = 0
    """Objects that no job names; an object goes a day after it was sent, or asked for by a sender."""
    unnamed_bytes: int = 0
    removed_objects: int = 0
    """Objects that were removed when it was looked through."""
    removed_bytes: int = 0
