"""What a live stream is asked to tell; pure."""

from collections.abc import Sequence
from typing import NamedTuple

from console.mirror.viewing import BRIEF_JOBS
from console.watched.wish import WatchWish, wish_of
from muster.domain.errors import InvalidJobError
from muster.domain.feed import FeedPart

MOST_LIVE_WISHES = 20
"""Things that one live stream tells of."""

ALERTS = "alerts"
"""The word for alerts."""


class LiveWishes(NamedTuple):
    """What a live stream tells of."""

    parts: tuple[FeedPart, ...]
    """Parts of the mirror."""
    jobs: tuple[WatchWish, ...]
    """What it tells of single jobs."""
    alerts: bool = False
    """Whether it tells of alerts."""
    brief_jobs: bool = False
    """Whether it tells of jobs as lists show them."""


def live_wishes(written: Sequence[str]) -> LiveWishes:
    """What words like `jobs,queue` and `logs:k3f0abcd` ask for; none: jobs. Raises InvalidJobError."""
    words = [word for each in written for word in each.split(",") if word]
    if len(words) > MOST_LIVE_WISHES:
        raise InvalidJobError(f"on names {len(words)} things; at most {MOST_LIVE_WISHES} are told on one stream")
    parts, jobs, alerts, brief_jobs = dict[FeedPart, None](), dict[WatchWish, None](), False, False
    for word in words or [FeedPart.JOBS]:
        if word in list(FeedPart):
            parts[FeedPart(word)] = None
        elif word == ALERTS:
            alerts = True
        elif word == BRIEF_JOBS:
            brief_jobs = True
        elif (wish := wish_of(word)) is not None:
            jobs[wish] = None
        else:
            known = ", ".join((*FeedPart, BRIEF_JOBS, ALERTS, "job:ID", "logs:ID", "points:ID:KEY"))
            raise InvalidJobError(f"on={word[:80]} is nothing that is told; there are {known}")
    return LiveWishes(tuple(parts), tuple(jobs), alerts, brief_jobs)
