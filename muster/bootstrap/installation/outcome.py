"""How it went with each computer."""

from dataclasses import dataclass
from enum import StrEnum

from muster.bootstrap.inspect.checks import Finding


class Status(StrEnum):
    """How it ended."""

    PLANNED = "planned"  #: nothing was done, as nothing was to be done yet
    UNCHANGED = "unchanged"  #: all was as it should be
    INSTALLED = "installed"  #: it is a node now, with the version of the bundle
    UPGRADED = "upgraded"  #: it has another version now
    REMOVED = "removed"  #: it is no node any more
    REFUSED = "refused"  #: it was not touched, because something is wrong with it
    FAILED = "failed"  #: it went wrong, and what was done was undone
    SKIPPED = "skipped"  #: not begun, because it went wrong elsewhere
    INTERRUPTED = "interrupted"  #: Ctrl-C, and what was done was undone


SUCCESSES = frozenset({Status.PLANNED, Status.UNCHANGED, Status.INSTALLED, Status.UPGRADED, Status.REMOVED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one computer."""

    host: str
    """The host as it was named."""
    node: str
    """The name of the node; empty: it is not known."""
    status: Status
    message: str = ""
    """Why, or what else is to be said."""
    seconds: float = 0.0
    """Seconds that it took, without looking."""
    left: tuple[str, ...] = ()
    """What could not be undone."""
    findings: tuple[Finding, ...] = ()
    """Warnings and errors."""
    steps: tuple[str, ...] = ()
    """What was planned."""
