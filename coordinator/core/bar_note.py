"""Since when a term keeps the first job of a project waiting, as it is stored with the job's attempt."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BarNote:
    """The term of a unit in a pool, and since when it keeps a job waiting."""

    kind: int
    """The number of its `BarKind`."""
    unit: str
    pool: str
    since: datetime
