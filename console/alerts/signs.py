"""Signs: what of the fleet somebody should look at, read from the mirror and from the gangs that are watched; pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from console.alerts.alert import AlertKind, AlertSign
from console.mirror.mirror import Mirror
from console.mirror.rows import MirrorRow
from console.telemetry.gangs.gang_watch import JobDifference
from muster.domain.feed import FeedKey, FeedPart
from muster.domain.fleet.node import NodeState
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.notifications.event_types import EventSeverity
from muster.domain.notifications.happening import ToldJob

QUEUED_LONG = timedelta(hours=1)
"""The time in the queue after which somebody should look why a job waits."""


def signs_of(mirror: Mirror, differing: Iterable[tuple[ToldJob, JobDifference]], now: datetime) -> Iterator[AlertSign]:
    """Everything that is so now."""
    for row in mirror.of(FeedPart.NODES):
        yield from _of_node(row, now)
    yield from _of_queue(mirror, now)
    for job, difference in differing:
        found = mirror.rows.get(FeedKey(FeedPart.JOBS, job.id))
        if found is None or difference.until is not None:
            continue
        if found.fields["phase"] == JobPhase.RUNNING and found.fields["attempt"] == difference.attempt:
            yield _of_difference(job, difference)


def _of_node(row: MirrorRow, now: datetime) -> Iterator[AlertSign]:
    """The signs of a node; of one that is cordoned there are none, as an operator knows of it."""
    name, fields = row.key.name, row.fields
    if fields["cordoned"]:
        return
    heard = fields["last_seen_at"]
    since = heard if isinstance(heard, datetime) else now
    if fields["state"] != NodeState.READY:
        lost = fields["state"] == NodeState.LOST
        yield AlertSign(
            kind=AlertKind.NODE_UNREACHABLE,
            severity=EventSeverity.CRITICAL if lost else EventSeverity.WARNING,
            subject=f"nodes/{name}",
            text=f"node {name} is {'lost: what ran there counts as lost' if lost else 'unreachable'}",
            since=since,
        )
    broken, all_gpus = fields["gpus_broken"], fields["gpus"]
    if isinstance(broken, float) and isinstance(all_gpus, float) and broken:
        yield AlertSign(
            kind=AlertKind.GPU_BROKEN,
            severity=EventSeverity.CRITICAL,
            subject=f"nodes/{name}",
            text=f"{broken:.0f} of {all_gpus:.0f} GPUs of node {name} have problems: see `muster nodes show {name}`",
            since=now,
        )


def _of_queue(mirror: Mirror, now: datetime) -> Iterator[AlertSign]:
    oldest: dict[str, datetime] = {}
    for line in mirror.queue:
        if now - line.since >= QUEUED_LONG:
            oldest[line.pool] = min(line.since, oldest.get(line.pool, line.since))
    for pool, since in oldest.items():
        yield AlertSign(
            kind=AlertKind.QUEUE_OLD,
            severity=EventSeverity.INFO,
            subject=f"pools/{pool}",
            text=f"a job has waited for more than an hour in the queue of {pool or 'the fleet'}: see `muster queue`",
            since=since,
        )


def _of_difference(job: ToldJob, difference: JobDifference) -> AlertSign:
    where = "" if difference.node is None else f" on {difference.node}"
    return AlertSign(
        kind=AlertKind.RANK_DIFFERS,
        severity=EventSeverity.WARNING,
        subject=f"jobs/{job.id}",
        what=f"{difference.attempt}/{difference.rank}/{difference.kind}/{difference.what}".rstrip("/"),
        text=f"rank {difference.rank}{where} of {job.name} differs: {difference.text}",
        since=difference.since,
        project=job.project,
    )


def coordinator_away(now: datetime) -> AlertSign:
    """The sign of a coordinator that the console does not hear."""
    return AlertSign(
        kind=AlertKind.COORDINATOR_AWAY,
        severity=EventSeverity.CRITICAL,
        subject="fleet",
        text="the console does not hear the coordinator; jobs go on, and what is shown may be old",
        since=now,
    )


OF_MIRROR = frozenset({AlertKind.RANK_DIFFERS, AlertKind.NODE_UNREACHABLE, AlertKind.GPU_BROKEN, AlertKind.QUEUE_OLD})
"""Kinds of alerts of which nothing is known without a mirror."""
