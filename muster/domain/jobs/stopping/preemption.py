"""What a job says about a stop after which it comes back: when it is preempted, suspended, or its node is drained."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

LEAST_PREEMPT_GRACE = timedelta(seconds=30)
"""The grace of such a stop, where the job names none and its own is shorter."""
LONGEST_PREEMPT_GRACE = timedelta(hours=1)
"""The longest grace that a job may ask for."""
DEFAULT_GRACE_MAX = timedelta(minutes=5)
"""The longest grace that a job gets, whatever it asks for."""


class PreemptSignal(StrEnum):
    """The signals by which user code can be told that it is stopped for others."""

    HUP = "HUP"
    INT = "INT"
    QUIT = "QUIT"
    TERM = "TERM"  #: in containers the stop signal of the image, which is the same as a rule
    USR1 = "USR1"
    USR2 = "USR2"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnPreempt:
    """How a job is told, and what follows."""

    signal: PreemptSignal = PreemptSignal.TERM
    """Sent to every rank at once when the grace begins."""
    restart: bool = True
    """Whether it waits for its next start; False: it ends as stopped."""


DEFAULT_ON_PREEMPT = OnPreempt()


def preempt_grace(asked: timedelta | None, grace: timedelta, most: timedelta = DEFAULT_GRACE_MAX) -> timedelta:
    """The time between notice and SIGKILL; `asked` by the job, None: it says nothing; `grace` of its other stops."""
    return min(max(grace, LEAST_PREEMPT_GRACE) if asked is None else asked, most)
