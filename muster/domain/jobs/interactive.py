"""Interactive jobs: what they have beside a command, and how long a job may go unused."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

DEFAULT_IDLE = timedelta(hours=2)
"""How long an interactive job that says nothing of it may go unused."""
NEVER_IDLE = timedelta()
"""The limit of a job that may go unused for ever, as long as it runs."""
SHORTEST_IDLE = timedelta(seconds=10)
"""The shortest such limit: people who look away for a moment lose nothing."""
LONGEST_NOTICE = timedelta(minutes=5)
"""How long before its end people hear that a job is about to be stopped; half of the limit, where that is shorter."""
USE_TOLD_EVERY = timedelta(minutes=1)
"""How often an agent tells of use at most; a quarter of the limit, where that is shorter."""


class MainProgramStreams(StrEnum):
    """What a main program has for people who attach to it."""

    STDIN = "stdin"  #: a pipe that it reads
    TTY = "tty"  #: a terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class Interactive:
    """A job in which people work: without a command, its main program waits until it is stopped."""

    setup: str = ""
    """A command for the shell of each execution, after its start and before its main program; empty: none."""


def notice_before_end(limit: timedelta) -> timedelta:
    """How long before the end of a job that nobody uses people hear of it."""
    return min(LONGEST_NOTICE, limit / 2)


def use_told_every(limit: timedelta) -> timedelta:
    """How often an agent tells of use at most, and so how old the news of a use can be."""
    return min(USE_TOLD_EVERY, limit / 4)
