"""How a coordinator fails."""

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Weakness:
    """How often the coordinator dies in a turn, and how long the store takes."""

    before_commit: float = 0.0
    at_commit: float = 0.0
    """The store fails: nothing is kept."""
    after_commit: float = 0.0
    between_effects: float = 0.0
    slow_commit: float = 0.0
    tardiness: float = 0.001
    """Seconds for which a stream that is to be closed may still be read."""
