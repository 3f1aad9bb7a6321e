"""Wishes: what of one job somebody wants to follow; pure."""

from enum import StrEnum
from typing import NamedTuple

from muster.domain.ids import JobId

LONGEST_WISH = 200
"""Characters of one wish."""


class WatchedPart(StrEnum):
    """What of a job can be followed."""

    JOB = "job"
    LOGS = "logs"
    POINTS = "points"


class WatchWish(NamedTuple):
    """What is followed; two that are the same share one stream of the coordinator."""

    part: WatchedPart
    job: JobId
    key: str = ""
    """The number of the points; empty for the other parts."""


def wish_of(text: str) -> WatchWish | None:
    """The wish that a text like `logs:k3f0abcd` or `points:k3f0abcd:loss` says; None: it says none."""
    part, _, rest = text.partition(":")
    job, _, key = rest.partition(":")
    if len(text) > LONGEST_WISH or part not in list(WatchedPart) or not job:
        return None
    if bool(key) != (part == WatchedPart.POINTS):
        return None
    return WatchWish(WatchedPart(part), JobId(job), key)
