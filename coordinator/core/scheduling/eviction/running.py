"""The gangs of one pool that may have to make room for a job, as an eviction sees them at one moment."""

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.scheduling.eviction.entitlement import EvictionBound, is_over
from coordinator.core.scheduling.eviction.gangs import RoomSeeker, RunningGang
from coordinator.core.scheduling.eviction.measure import lost_work
from coordinator.core.sharing.pool_standings import Path
from coordinator.core.sharing.standing import PLACES, Standing

DEFAULT_MIN_RUNTIME = timedelta(minutes=10)
"""How long an attempt is safe from other projects, unless the terms of its own say otherwise."""
MOST_DOUBLINGS = 2
"""How often that is doubled for jobs that were evicted again and again."""


SECOND = timedelta(seconds=1)


class SeenGangs:
    """What looks at one moment have seen of projects, for the next looks of the same cycle."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Sequence[RunningGang]] = {}
        self._safe_until: dict[RunningGang, datetime | None] = {}

    def of(self, key: Hashable) -> Sequence[RunningGang] | None:
        """The gangs that were noted; None: none were."""
        return self._found.get(key)

    def note(self, key: Hashable, found: Mapping[RunningGang, datetime | None]) -> Sequence[RunningGang]:
        """Remember gangs, each with the time until which it is safe."""
        self._found[key] = tuple(found)
        self._safe_until.update(found)
        return self._found[key]

    def safe_until(self, gang: RunningGang) -> datetime | None:
        """Until when a gang that was noted is safe; None: that cannot be told yet, as it has not started."""
        return self._safe_until[gang]


class RunningGangs:
    """Gangs of any age that some rule may open to a job: those of its own project, spare ones, and some others."""

    def __init__(
        self, cluster: Cluster, seeker: RoomSeeker, pool: str, now: datetime, most: int, seen: SeenGangs | None = None
    ) -> None:
        """`most`: about so many others that are not safe, of the units that have most too much."""
        self._cluster = cluster
        self._seeker = seeker
        self._pool = pool
        self._now = now
        self._seen = seen or SeenGangs()
        found = [*self._of_project(seeker.path, within=True)]
        may_have_more = self._may_have_more(found)
        for path in self._spare():
            found += self._of_project(path, spare_alone=True)
        self.has_more = False
        """Whether there are others, of units that have less too much."""
        left = most
        for path in self._over() if may_have_more else ():
            if left <= 0:
                self.has_more = True
                break
            there = self._of_project(path)
            left -= sum(not each.is_safe for each in there)
            found += there
        self.gangs: Sequence[RunningGang] = found
        """The gangs; of other projects those that have most too much come first."""

    def safe_until(self, gang: RunningGang) -> datetime | None:
        """Until when a gang is safe from the job; None: that cannot be told yet, as it has not started."""
        return self._seen.safe_until(gang)

    def _may_have_more(self, own: Sequence[RunningGang]) -> bool:
        """Whether the project of the job has a right to what the job needs, if all of these made room for it."""
        project, size = self._seeker.project, self._seeker.size
        taken = [sum(each.size[place] for each in own) for place in PLACES]
        return all(
            not size[place]
            or project.load(place) - taken[place] + size[place] <= EvictionBound.SHARE.kept(project, place)
            for place in self._seeker.counted
        )

    def _over(self) -> Iterator[Path]:
        """Projects of units that have more than nobody takes, the units with most too much first."""
        sides = []
        for depth, own in enumerate(self._seeker.path):
            assert own.above is not None, "a pool looks for no room"
            above = self._seeker.path[:depth]
            sides += [(*above, side) for side in own.above.below.values() if side is not own and self._is_over(side)]
        for path in sorted(sides, key=self._too_little):
            if path[-1].below:
                yield from sorted(((*path, project) for project in path[-1].below.values()), key=self._too_little)
            else:
                yield path

    def _is_over(self, side: Standing) -> bool:
        return is_over(side, EvictionBound.QUOTA, self._seeker.counted)

    def _too_little(self, path: Path) -> tuple[int, str]:
        """What a unit has less than it is promised; below zero: it has more."""
        unit, place = path[-1], self._seeker.counted[0]
        return (unit.entitlement.quota[place] - unit.load(place), unit.name)

    def _spare(self) -> Iterator[Path]:
        """Projects of which something spare runs."""
        for project in self._cluster.gangs.evictable.with_spare:
            if project != self._seeker.project.name:
                yield self._cluster.unit_load.units.path(project, self._pool)

    def _of_project(self, path: Path, *, within: bool = False, spare_alone: bool = False) -> Sequence[RunningGang]:
        """The gangs of a project; spare ones of other projects come by themselves."""
        key = (path[-1].name, self._pool, within, spare_alone)
        found = self._seen.of(key)
        if found is None:
            found = self._seen.note(key, self._look_at(path, within=within, spare_alone=spare_alone))
        return found

    def _look_at(self, path: Path, *, within: bool, spare_alone: bool) -> dict[RunningGang, datetime | None]:
        """The same, each with the time until which it is safe; None: that cannot be told yet."""
        project = path[-1].name
        there = list(self._cluster.gangs.evictable.running(project))
        if not there:
            return {}
        found: dict[RunningGang, datetime | None] = {}
        priorities = sorted({held.job.spec.priority for held in there if not held.is_spare})
        load, now, safe_for = self._cluster.unit_load, self._now, self._min_runtime(project, within=within)
        for held in there:
            keeps = not held.is_spare
            if (not within and keeps is spare_alone) or load.pool_of(held.job) != self._pool:
                continue
            started, since, until = held.attempt.started_at, held.since, None
            if started is not None:
                until = started + safe_for * (1 << min(held.job.evictions, MOST_DOUBLINGS))
            passed = 0 if since is None or since > now else (now - since) // SECOND
            is_safe = keeps and (until is None or until > now)
            gang = RunningGang(
                attempt=held.attempt_id,
                path=path,
                size=held.size,
                job_class=held.job.job_class,
                priority=held.job.spec.priority,
                level=bisect_left(priorities, held.job.spec.priority),
                lost=lost_work(held.weight, passed),
                order=held.order,
                freed=held.freed,
                is_safe=is_safe,
                is_safe_within=is_safe,
            )
            found[gang] = until
        return found

    def _min_runtime(self, project: str, *, within: bool) -> timedelta:
        """How long a gang is safe from the job after its start."""
        for unit in self._cluster.unit_load.units.get(project).line():
            terms = unit.terms.in_pool(self._pool)
            said = terms.min_runtime_within if within else terms.min_runtime
            if said is not None:
                return said
        return timedelta() if within else DEFAULT_MIN_RUNTIME
