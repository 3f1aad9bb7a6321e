"""What a target says to an event."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetAnswer:
    """Whether a target has taken an event."""

    taken: bool
    told: str
    """What it has said, or what went wrong; never a secret."""
    status: int = 0
    """The status of HTTP or of SMTP that it has answered with; 0: none."""
    gone: bool = False
    """Whether it wants no more events, ever."""
