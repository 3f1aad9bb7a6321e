"""What was used of GPUs, CPUs and memory over time, as far as callers may see it."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Attempt, Execution, Job
from coordinator.core.spent import Spent, SpentGroup, SpentWaits, SpentWish, longest_waits, sum_known
from coordinator.core.turn.spending import spent_of
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.archive import StoredPast
from coordinator.service.operations import Operations
from coordinator.trust.caller import Caller
from muster.domain.errors import InvalidJobError, UnknownNameError
from muster.domain.fleet.access import Access, no_project
from muster.domain.fleet.quota import NO_AMOUNTS, Amounts
from muster.domain.ids import AttemptId
from muster.domain.usage import MOST_USAGE_ROWS, UsageBy, UsageReport, UsageRow, UsageWish

_WORDS: Mapping[UsageBy, tuple[str, ...]] = {
    UsageBy.DEPARTMENT: ("project",),
    UsageBy.PROJECT: ("project",),
    UsageBy.USER: ("owner",),
    UsageBy.POOL: ("pool",),
    UsageBy.CLASS: ("job_class",),
    UsageBy.JOB: ("job", "name", "project", "owner"),
}
"""What is asked of the store for each kind of row; the first one names it."""


@dataclass(frozen=True, slots=True)
class _Present:
    """What holds something now, and whose projects are whose."""

    now: datetime
    holders: Mapping[AttemptId, tuple[Job, Attempt, Sequence[Execution]]]
    departments: Mapping[str, str]
    """The department of each project."""
    meters: Mapping[tuple[str, str], timedelta]
    """What the meters of projects in pools say."""

    def spent(self) -> Iterable[Spent]:
        """What each of them has held by now."""
        found = (
            spent_of(job, attempt, members, self.now, self.meters.get((job.spec.project, attempt.pool), timedelta()))
            for job, attempt, members in self.holders.values()
        )
        return [each for each in found if each is not None]


class UsageOperations:
    """What callers may ask about usage."""

    def __init__(self, operations: Operations, engine: Engine, past: StoredPast) -> None:
        self._operations = operations
        self._engine = engine
        self._past = past

    async def report(self, caller: Caller, wish: UsageWish) -> UsageReport:
        """What was used in a span of time, also by jobs that are deleted and by those that run.

        Raises InvalidJobError where the answer would be too long, UnknownNameError for a project that the caller may
        not look at.
        """
        async with self._operations.begin(caller, "usage.show", wish.project) as operation:
            seen = caller.seen_projects
            if wish.project:
                if not caller.may(Access.VIEWER, wish.project):
                    operation.unseen()
                    raise UnknownNameError(no_project(wish.project))
                seen = frozenset({wish.project})
            present = await self._engine.query(
                lambda cluster, now: _present(cluster, now, wish, seen), after=Freshness.COMMITTED
            )
            until = min(wish.until or present.now, present.now)
            if wish.since is not None and wish.since >= until:
                raise InvalidJobError(
                    f"since ({wish.since:%Y-%m-%d %H:%M:%S} UTC) must be before until, and have passed"
                )
            words = _WORDS[wish.by]
            asked = SpentWish(
                since=wish.since, until=until, words=words, projects=seen, pool=wish.pool, most=MOST_USAGE_ROWS + 1
            )
            stored = await self._past.spent(asked)
            running = tuple(await asyncio.to_thread(present.spent))
            # Whoever has ended since is told of by both.
            edges = [each for each in stored.edges if (each.job, each.attempt) not in present.holders]
            sums = _Sums(wish.by, present.departments)
            for group in stored.groups:
                sums.add(group)
            for spent in (*edges, *running):
                if spent.placed_at < until and (wish.since is None or spent.ended_at > wish.since):
                    sums.add(spent.within(wish.since, until, words))
            if max(len(sums.rows), len(stored.groups)) > MOST_USAGE_ROWS:
                raise InvalidJobError(
                    f"that are more than {MOST_USAGE_ROWS} rows; ask for a shorter time, for one project or pool, "
                    "or by something else"
                )
            ended = await self._past.waits(asked, present.now)
            waits = [*ended, *(_waits_of(spent, words) for spent in running if asked.takes_placement(spent))]
            await asyncio.to_thread(sums.add_waits, waits)
            return UsageReport(
                by=wish.by, since=wish.since, until=until, rows=sums.sorted(), kept_since=stored.kept_since
            )


@dataclass(slots=True)
class _Sums:
    """Rows by what they are about."""

    by: UsageBy
    departments: Mapping[str, str]
    rows: dict[str, UsageRow] = field(default_factory=dict)

    def add(self, group: SpentGroup) -> None:
        """Count what some attempts have held."""
        key = self._key(group)
        before = self.rows.get(key)
        by_job = self.by is UsageBy.JOB
        self.rows[key] = UsageRow(
            of=key,
            name=group.name if by_job else "",
            project=group.project if by_job else "",
            user=group.owner if by_job else "",
            attempts=group.attempts + (before.attempts if before else 0),
            evicted=group.evicted + (before.evicted if before else 0),
            held=group.held.plus(before.held if before else NO_AMOUNTS),
            lost=group.lost + (before.lost if before else 0),
            borrowed=group.borrowed + (before.borrowed if before else 0),
            busy=sum_known(group.busy, before.busy if before else None),
        )

    def add_waits(self, waits: Iterable[SpentWaits]) -> None:
        """Tell of rows how long their attempts waited."""
        together: defaultdict[str, list[int]] = defaultdict(list)
        for each in waits:
            together[self._key(each)] += each.waits
        for key in [key for key, each in together.items() if each and key in self.rows]:
            median, long = (timedelta(milliseconds=wait) for wait in longest_waits(together[key]))
            self.rows[key] = replace(self.rows[key], median_wait=median, long_wait=long)

    def sorted(self) -> tuple[UsageRow, ...]:
        """The rows, the largest first."""
        return tuple(sorted(self.rows.values(), key=lambda row: (_negative(row.held), row.of)))

    def _key(self, group: SpentGroup | SpentWaits) -> str:
        key: str = getattr(group, _WORDS[self.by][0])
        return self.departments.get(key, "") if self.by is UsageBy.DEPARTMENT else key


def _waits_of(spent: Spent, words: Iterable[str]) -> SpentWaits:
    said: dict[str, str] = {word: getattr(spent, word) for word in words}
    return SpentWaits(waits=() if spent.waited is None else (spent.waited,), **said)


def _negative(held: Amounts) -> tuple[int, ...]:
    return tuple(-each for each in held)


def _present(cluster: Cluster, now: datetime, wish: UsageWish, seen: frozenset[str] | None) -> _Present:
    holders = {}
    for attempt_id in cluster.unit_load.holders:
        job, attempt = cluster.jobs[attempt_id.job], cluster.attempts[attempt_id]
        if (seen is None or job.spec.project in seen) and wish.pool in {"", attempt.pool}:
            holders[attempt_id] = (job, attempt, tuple(cluster.gangs.members(attempt_id)))
    departments = {project.name: project.department for project in cluster.projects.values()}
    meters = {key: meter.at(now) for key, meter in cluster.records.meters.items()}
    return _Present(now, holders, departments, meters)
