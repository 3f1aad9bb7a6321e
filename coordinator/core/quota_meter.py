"""How much of what projects hold is above their quotas, added up over time, as it is stored."""

from dataclasses import dataclass
from datetime import datetime, timedelta

_MILLION = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaMeter:
    """How much of what a project holds of a pool is above its quota, added up over time.

    It says for how long a GPU counts as borrowed that is held all the time, so that whoever holds GPUs from one time to
    another has borrowed each of them for the difference.
    """

    project: str
    pool: str
    since: datetime
    """When the part became what it is."""
    millionths: int
    """The part of the GPUs that the project holds there which is above its quota."""
    borrowed: timedelta
    """What the meter said then."""

    def at(self, now: datetime) -> timedelta:
        """What the meter says at a time that is not before `since`."""
        return self.borrowed + max(timedelta(), now - self.since) * self.millionths // _MILLION
