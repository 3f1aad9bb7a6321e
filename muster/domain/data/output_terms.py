"""What a role says of its outputs: which of them are stored, after which end, and for how long."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class StoredAfter(StrEnum):
    """The ends of user code after which its outputs are stored."""

    ALWAYS = "always"  #: however it ended
    SUCCESS = "success"  #: only where the execution has succeeded


class LiveOutputs(StrEnum):
    """Which outputs are stored while user code runs."""

    OFF = "off"  #: none: all are stored once it has ended
    READ_ONLY = "read-only"  #: files that nobody may write to any more, as Valohai has it
    SETTLED = "settled"  #: also those that have not changed for a while; refused so far


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
    to: str = ""
    """The place in a store below which they go, as `s3://BUCKET/PREFIX`; empty: the depot.

    A node that stores outputs is told the very place of its execution.
    """
    secret: str = ""
    """The secret of the project that opens that store."""
    live: LiveOutputs | None = None
    """Which of them are stored while user code runs; None: nobody said so, which is none of them."""

    @property
    def are_live(self) -> bool:
        """Whether some of them are stored while user code runs."""
        return self.live not in {None, LiveOutputs.OFF}

    @property
    def bind_nodes(self) -> bool:
        """Whether the node that stores them has to know of these terms."""
        return self.after is not StoredAfter.ALWAYS or bool(self.only) or self.limit is not None


ALL_OUTPUTS = OutputTerms()
"""All that an execution leaves, as long as its job is there."""
