"""Jobs by project, so that what one project is asked costs no more because others have many jobs."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Iterator
from heapq import merge
from itertools import takewhile

from coordinator.core.job_order import JobOrder, place_of
from coordinator.core.records import Job
from muster.domain.ids import JobId

Projects = Collection[str] | None
"""Projects whose jobs are looked at, the others being as if they were not there; None: all."""

CHUNK = 512
"""Ids that lie together; a new one moves at most twice as many."""


class JobIndex:
    """Every job, by project: in the order of submission, by name, and by the beginning of its id."""

    def __init__(self) -> None:
        self._all = JobOrder()
        self._live = JobOrder()
        self._projects: dict[str, _ProjectJobs] = {}

    def put(self, before: Job | None, after: Job) -> None:
        """Have a job among them as it is now; `before` is what was known of it."""
        project = self._projects.setdefault(after.spec.project, _ProjectJobs())
        place = place_of(after)
        if before is None:
            self._all.add(place)
            project.add(after)
        was_live, is_live = before is not None and before.ended_at is None, after.ended_at is None
        if is_live and not was_live:
            self._live.add(place)
            project.live.add(place)
        elif was_live and not is_live:
            self._live.remove(place)
            project.live.remove(place)

    def drop(self, job: Job) -> None:
        """Have a job among them no longer."""
        project, place = self._projects[job.spec.project], place_of(job)
        self._all.remove(place)
        project.remove(job)
        if job.ended_at is None:
            self._live.remove(place)
            project.live.remove(place)
        if project.empty:
            del self._projects[job.spec.project]

    def newest_first(self, before: int | None = None, seen: Projects = None, *, live: bool = False) -> Iterator[JobId]:
        """Jobs from the newest on, or from the newest below a sequence number; `live`: only what has not ended."""
        if seen is None:
            return (job for _, job in (self._live if live else self._all).newest_first(before))
        orders = [project.live if live else project.all for project in self._seen(seen)]
        return (job for _, job in merge(*(order.newest_first(before) for order in orders), reverse=True))

    def newest_named(self, name: str, seen: Projects = None) -> JobId | None:
        """The newest job of a name."""
        named = (project.named[name] for project in self._seen(seen) if name in project.named)
        newest = (next(reversed(jobs.items())) for jobs in named)
        return max(newest, key=lambda found: found[1], default=(None, 0))[0]

    def beginning_with(self, prefix: str, seen: Projects = None) -> Iterator[JobId]:
        """Jobs whose id begins with a text, in the order of their ids; what is not taken costs nothing."""
        return merge(*(project.ids.beginning_with(prefix) for project in self._seen(seen)))

    def _seen(self, seen: Projects) -> Iterable["_ProjectJobs"]:
        if seen is None:
            return self._projects.values()
        return [self._projects[project] for project in seen if project in self._projects]


class _ProjectJobs:
    """The jobs of one project."""

    __slots__ = ("all", "ids", "live", "named")

    def __init__(self) -> None:
        self.all = JobOrder()
        self.live = JobOrder()
        self.ids = SortedIds()
        self.named: dict[str, dict[JobId, int]] = {}
        """Sequence numbers by id, the newest last, of the jobs of each name."""

    @property
    def empty(self) -> bool:
        """Whether the project has no job."""
        return not self.named

    def add(self, job: Job) -> None:
        """Have one more."""
        self.all.add(place_of(job))
        self.ids.add(job.id)
        self.named.setdefault(job.spec.name, {})[job.id] = job.sequence

    def remove(self, job: Job) -> None:
        """Have one less."""
        self.all.remove(place_of(job))
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
        if len(chunk) > 2 * CHUNK:
            self._chunks[place : place + 1] = [chunk[:CHUNK], chunk[CHUNK:]]
            self._firsts.insert(place + 1, chunk[CHUNK])

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
        """Those that begin with a text, from the first on."""
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
