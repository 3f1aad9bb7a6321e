"""What a role says of its outputs: which of them are stored, after which end, and for how long."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class StoredAfter(StrEnum):
    """The ends of user code after which its outputs are stored."""

    ALWAYS = "always"  #: however it ended
    SUCCESS = "success"  #: only where the execution has succeeded


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTerms:
    """Which outputs of an execution are stored, and for how long."""

    after: StoredAfter = StoredAfter.ALWAYS
    only: tuple[str, ...] = ()
    """Names with wildcards of the files that are stored; empty: all."""
    limit: int | None = None
    """Most bytes that one execution may leave; None: as much as its project may keep."""
    keep: timedelta | None = None
    """How long they stay once they are stored; None: as long as their job."""

    @property
    def bind_nodes(self) -> bool:
        """Whether the node that stores them has to know of these terms."""
        return self.after is not StoredAfter.ALWAYS or bool(self.only) or self.limit is not None


ALL_OUTPUTS = OutputTerms()
"""All that an execution leaves, as long as its job is there."""
