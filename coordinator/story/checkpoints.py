"""Sentences about the checkpoints of jobs."""

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.saved.checkpoints import SavedCheckpoint, savers
from coordinator.core.records import Attempt
from coordinator.story.moves import listed_ranks

RANKS_NAMED = 10
"""Ranks without a part that a sentence names."""


def restoring_text(cluster: Cluster, attempt: Attempt) -> str:
    """What a later attempt begins with, or why with nothing; empty where its job saves nothing, or it is the first."""
    spec = cluster.jobs[attempt.job].spec
    if attempt.number == 1 or not savers(spec):
        return ""
    if attempt.checkpoints.restores is not None:
        return f"attempt {attempt.number} goes on from checkpoint {attempt.checkpoints.restores}"
    text = f"attempt {attempt.number} begins anew: there is no whole checkpoint"
    halves = sorted(cluster.gangs.checkpoints.of(attempt.job), key=lambda each: each.place)
    return f"{text}; {_why_not(cluster, attempt, halves[-1])}" if halves else text


def _why_not(cluster: Cluster, attempt: Attempt, saved: SavedCheckpoint) -> str:
    if saved.spoiled:
        return f"{saved.id} was written anew by {_ranks(sorted(saved.spoiled))}"
    return f"{saved.id} lacks {_ranks(list(cluster.gangs.checkpoints.lacking(attempt.job, saved)))}"


def _ranks(ranks: list[int]) -> str:
    more = " and others" if len(ranks) > RANKS_NAMED else ""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {listed_ranks(ranks[:RANKS_NAMED])}{more}"
