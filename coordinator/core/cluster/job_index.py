"""Jobs by project, owner and label, so that what is asked of a few costs no more because there are many others."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from itertools import takewhile

from coordinator.core.cluster.job_order import AnyOf, JobOrder, Order, Place, in_all, place_of
from coordinator.core.cluster.submits import Submits
from coordinator.core.records import Job
from muster.domain.ids import JobId

Projects = Collection[str] | None
"""Projects whose jobs are looked at, the others being as if they were not there; None: all."""

IDS_TOGETHER = 512
"""Ids that lie together; a new one moves at most twice as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Among:
    """Which jobs a list is made of."""

    projects: Projects = None
    owners: Collection[str] | None = None
    """Accounts that submitted them; None: whoever did."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What they all carry."""
    live: bool = False
    """Only those that have not ended, which are few among the many that a coordinator remembers."""


EVERY_JOB = Among()


class JobIndex:
    """Every job, by project, owner and label: in the order of submission; by name, and by the beginning of its id."""

    def __init__(self) -> None:
        self.submits = Submits()
        self._every = _Listed()
        self._projects: dict[str, _ProjectJobs] = {}
        self._owners: dict[str, _Listed] = {}
        self._labels: dict[tuple[str, str], JobOrder] = {}

    def put(self, before: Job | None, after: Job) -> None:
        """Have a job among them as it is now; `before` is what was known of it."""
        self.submits.changed(before, after)
        was_live, is_live = before is not None and before.ended_at is None, after.ended_at is None
        if before is not None and was_live == is_live:
            return
        place = place_of(after)
        project = self._projects.setdefault(after.spec.project, _ProjectJobs())
        for listed in (self._every, project.listed, self._owners.setdefault(after.owner, _Listed())):
            listed.put(place, new=before is None, live=is_live)
        if before is None:
            project.add(after)
            for label in after.spec.labels.items():
                self._labels.setdefault(label, JobOrder()).add(place)

    def drop(self, job: Job) -> None:
        """Have a job among them no longer."""
        self.submits.changed(job, None)
        place, live = place_of(job), job.ended_at is None
        project, owner = self._projects[job.spec.project], self._owners[job.owner]
        for listed in (self._every, project.listed, owner):
            listed.remove(place, live=live)
        project.remove(job)
        if project.empty:
            del self._projects[job.spec.project]
        if not owner.all:
            del self._owners[job.owner]
        for label in job.spec.labels.items():
            carried = self._labels[label]
            carried.remove(place)
            if not carried:
                del self._labels[label]

    def newest_first(self, before: int | None = None, among: Among = EVERY_JOB) -> Iterator[tuple[int, JobId | None]]:
        """Jobs from the newest on, or from the newest below a sequence number; as `in_all` tells them."""
        return in_all(list(self._orders(among)), before)

    def count_in(self, project: str, *, live: bool = False) -> int:
        """How many jobs a project has; `live`: how many of them have not ended."""
        jobs = self._projects.get(project)
        return 0 if jobs is None else len(jobs.listed.order(live=live))

    def newest_named(self, name: str, seen: Projects = None) -> JobId | None:
        """The newest job of a name."""
        named = (project.named[name] for project in self._seen(seen) if name in project.named)
        newest = (next(reversed(jobs.items())) for jobs in named)
        return max(newest, key=lambda found: found[1], default=(None, 0))[0]

    def named(self, name: str, project: str) -> Iterator[JobId]:
        """The jobs of a name in a project, from the newest on; it must not change meanwhile."""
        jobs = self._projects.get(project)
        return iter(()) if jobs is None else reversed(jobs.named.get(name, {}))

    def beginning_with(self, prefix: str, seen: Projects = None) -> Iterator[JobId]:
        """Jobs whose id begins with a text, in the order of their ids; what is not taken costs nothing."""
        return merge(*(project.ids.beginning_with(prefix) for project in self._seen(seen)))

    def _orders(self, among: Among) -> Iterator[Order]:
        """Orders in which a wanted job is, all of them; at least one."""
        for label in among.labels.items():
            yield self._labels.get(label, _NONE)
        if among.owners is not None:
            owners = (self._owners[owner] for owner in among.owners if owner in self._owners)
            yield AnyOf([owner.order(live=among.live) for owner in owners])
        if among.projects is not None:
            yield AnyOf([project.listed.order(live=among.live) for project in self._seen(among.projects)])
        if among.owners is None and among.projects is None and (among.live or not among.labels):
            yield self._every.order(live=among.live)

    def _seen(self, seen: Projects) -> Iterable["_ProjectJobs"]:
        if seen is None:
            return self._projects.values()
        return [self._projects[project] for project in seen if project in self._projects]


_NONE = JobOrder()


class _Listed:
    """Jobs that have something in common: all of them, and those that have not ended."""

    __slots__ = ("all", "live")

    def __init__(self) -> None:
        self.all = JobOrder()
        self.live = JobOrder()

    def order(self, *, live: bool) -> JobOrder:
        return self.live if live else self.all

    def put(self, place: Place, *, new: bool, live: bool) -> None:
        """Have a job among them that is new, or whose being live has changed."""
        if new:
            self.all.add(place)
        if live:
            self.live.add(place)
        elif not new:
            self.live.remove(place)

    def remove(self, place: Place, *, live: bool) -> None:
        """Have a job among them no longer."""
        self.all.remove(place)
        if live:
            self.live.remove(place)


class _ProjectJobs:
    """The jobs of one project."""

    __slots__ = ("ids", "listed", "named")

    def __init__(self) -> None:
        self.listed = _Listed()
        self.ids = SortedIds()
        self.named: dict[str, dict[JobId, int]] = {}
        """Sequence numbers by id, the newest last, of the jobs of each name."""

    @property
    def empty(self) -> bool:
        """Whether the project has no job."""
        return not self.named

    def add(self, job: Job) -> None:
        """Have one more."""
        self.ids.add(job.id)
        self.named.setdefault(job.spec.name, {})[job.id] = job.sequence

    def remove(self, job: Job) -> None:
        """Have one less."""
        self.ids.remove(job.id)
        named = self.named[job.spec.name]
        del named[job.id]
        if not named:
            del self.named[job.spec.name]


class SortedIds:
    """Ids in their order, in chunks: one more or less moves few of them, however many there are."""

    def __init__(self) -> None:
        self._chunks: list[list[JobId]] = []
        self._firsts: list[JobId] = []
        """The first id of each chunk."""

    def add(self, job: JobId) -> None:
        """Have one more; it must not be among them."""
        if not self._chunks:
            self._chunks.append([])
            self._firsts.append(job)
        place = self._place(job)
        chunk = self._chunks[place]
        insort(chunk, job)
        self._firsts[place] = chunk[0]
        if len(chunk) > 2 * IDS_TOGETHER:
            self._chunks[place : place + 1] = [chunk[:IDS_TOGETHER], chunk[IDS_TOGETHER:]]
            self._firsts.insert(place + 1, chunk[IDS_TOGETHER])

    def remove(self, job: JobId) -> None:
        """Have one less; it must be among them."""
        place = self._place(job)
        chunk = self._chunks[place]
        del chunk[bisect_left(chunk, job)]
        if chunk:
            self._firsts[place] = chunk[0]
        else:
            del self._chunks[place], self._firsts[place]

    def beginning_with(self, prefix: str) -> Iterator[JobId]:
        """Ids that begin with a text, from the first on."""
        if not self._chunks:
            return iter(())
        return takewhile(lambda job: job.startswith(prefix), self._from(JobId(prefix)))

    def _from(self, job: JobId) -> Iterator[JobId]:
        first = self._place(job)
        yield from self._chunks[first][bisect_left(self._chunks[first], job) :]
        for chunk in self._chunks[first + 1 :]:
            yield from chunk

    def _place(self, job: JobId) -> int:
        return max(0, bisect_right(self._firsts, job) - 1)
