"""The watch over one gang: what its ranks use and print now, and which of them differs."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from console.telemetry.history.bands import GangBands, bands_of
from muster.domain.event import JobEvent, JobEventKind
from muster.domain.ids import AttemptId, NodeId
from muster.domain.jobs.view import AttemptView, ExecutionView, JobView
from muster.domain.notifications.happening import ToldJob
from muster.domain.telemetry.difference_book import Difference, DifferenceBook
from muster.domain.telemetry.differences import (
    LEAST_COMPARED,
    ComparedRank,
    DifferenceKind,
    Sign,
    behind_signs,
    metric_signs,
    silent_signs,
    usage_signs,
)
from muster.domain.telemetry.point import STEP_KEYS, Point
from muster.domain.telemetry.quantities import amounts_of_rank
from muster.domain.telemetry.sample import SAMPLE_SPAN, Sample

WATCHED_AFTER = timedelta(minutes=5)
"""The time after its release from which on a gang is watched: ranks begin differently."""
USE_IS_NOW = timedelta(seconds=30)
"""The age at which what a rank used says nothing of it any more."""
WATCHED_POINTS = 20
"""Newest points of a rank that are compared."""
WATCHED_KEYS = 8
"""Numbers of a point that are compared."""
_OF_POINTS = (DifferenceKind.METRIC, DifferenceKind.BEHIND, DifferenceKind.SILENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDifference:
    """A rank of a job that is, or was, unlike the others of its role."""

    attempt: int
    rank: int
    node: NodeId | None
    kind: DifferenceKind
    what: str
    """The quantity, or the key of the number; empty for the other kinds."""
    since: datetime
    until: datetime | None
    """When it was seen last; None: it goes on."""
    text: str
    """One sentence for people, without the rank."""


class GangWatch:
    """One attempt of a job that runs."""

    def __init__(self, job: JobView, attempt: AttemptView) -> None:
        """The job and its newest attempt, with executions."""
        self.attempt = AttemptId(job.id, attempt.number)
        self.told = ToldJob(
            id=job.id, name=job.spec.name, project=job.spec.project, owner=job.owner, labels=job.spec.labels
        )
        self._released_at = attempt.released_at
        self._members = {each.rank: each for each in attempt.executions}
        self._uses: dict[int, tuple[datetime, ComparedRank]] = {}
        self._points: dict[int, deque[Point]] = {}
        self._book = DifferenceBook()

    def hear(self, rank: int, sample: Sample, now: datetime) -> None:
        """Take in what a rank's node used."""
        if (member := self._members.get(rank)) is not None:
            amounts = amounts_of_rank(sample, member.id, member.gpus)
            self._uses[rank] = (now, ComparedRank(amounts=amounts, gpus=len(member.gpus)))

    def print(self, rank: int, points: Sequence[Point]) -> None:
        """Take in what a rank printed next."""
        kept = self._points.setdefault(rank, deque(maxlen=WATCHED_POINTS))
        kept += (_cut(point) for point in points)

    def bands(self, now: datetime) -> GangBands:
        """What its ranks use now."""
        used = {rank: use.amounts for rank, use in self._used(now).items()}
        return GangBands(now, SAMPLE_SPAN, bands_of(used))

    def _used(self, now: datetime) -> Mapping[int, ComparedRank]:
        """What ranks use, of those that were told of lately."""
        return {rank: use for rank, (at, use) in self._uses.items() if now - at < USE_IS_NOW}

    def look(self, now: datetime) -> list[Difference]:
        """The differences that have begun since the look before."""
        if self._released_at is None or now - self._released_at < WATCHED_AFTER:
            return []
        uses = self._used(now)
        looked_at: Mapping[DifferenceKind, Collection[int]] = {
            DifferenceKind.USAGE: uses.keys(),
            **dict.fromkeys(_OF_POINTS, self._points.keys()),
        }
        return self._book.note(now, list(self._signs(uses)), looked_at)

    @property
    def size(self) -> int:
        """How many ranks it has."""
        return len(self._members)

    @property
    def differences(self) -> Iterator[JobDifference]:
        """All differences of the attempt, those that have ended first."""
        for each in self._book.told:
            yield JobDifference(
                attempt=self.attempt.number,
                rank=each.rank,
                node=self._node(each.rank),
                kind=each.kind,
                what=each.what,
                since=each.since,
                until=each.until,
                text=each.text,
            )

    def events(self, begun: Sequence[Difference]) -> Iterator[JobEvent]:
        """An event for each rank that differs."""
        for rank in dict.fromkeys(each.rank for each in begun):
            told = [each for each in begun if each.rank == rank]
            node = self._node(rank)
            where = "" if node is None else f" on {node}"
            yield JobEvent(
                job=self.attempt.job,
                attempt=self.attempt.number,
                kind=JobEventKind.RANK_DIFFERS,
                at=min(each.since for each in told),
                text=f"rank {rank}{where} differs: " + "; ".join(each.text for each in told),
                rank=rank,
                ranks=str(rank),
                nodes=() if node is None else (node,),
            )

    def _signs(self, uses: Mapping[int, ComparedRank]) -> Iterator[Sign]:
        for ranks in compared_ranks(self._members.values()):
            points = {rank: tuple(self._points[rank]) for rank in ranks if rank in self._points}
            yield from usage_signs({rank: uses[rank] for rank in ranks if rank in uses})
            for signs in (metric_signs, behind_signs, silent_signs):
                yield from signs(points)

    def _node(self, rank: int) -> NodeId | None:
        member = self._members.get(rank)
        return None if member is None else member.node


def compared_ranks(executions: Collection[ExecutionView]) -> list[list[int]]:
    """The ranks of each role that has enough of them."""
    by_role: dict[str, list[int]] = {}
    for each in executions:
        by_role.setdefault(each.role, []).append(each.rank)
    return [ranks for ranks in by_role.values() if len(ranks) >= LEAST_COMPARED]


def _cut(point: Point) -> Point:
    """A point with those numbers alone that are compared."""
    keys = sorted(point.values, key=lambda key: key not in STEP_KEYS)[:WATCHED_KEYS]  # these first, else as printed
    return Point(time=point.time, values={key: point.values[key] for key in keys})
