"""Operations on jobs: submit them, look at them, stop them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from coordinator.core.answers import Accepted, AllAccepted, Answer, NoneAccepted, Refused
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.job_index import Among
from coordinator.core.events import DeleteRequested, JobsSubmitted, StopRequested
from coordinator.core.records import Job
from coordinator.core.requests.jobs import REFUSED
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.archive import Archive
from coordinator.service.causes import error_of
from coordinator.service.finding import resolved
from coordinator.service.operations import Operation, Operations
from coordinator.service.pages import page_start
from coordinator.service.queueing.job_orders import applied, ordered
from coordinator.service.stories import StoryWish, event_pages
from coordinator.service.submitting import Submission, SubmitDesk, UnreadableSubmission
from coordinator.service.watching.logs import LogWish, PrintedLine
from coordinator.service.watching.points import PointWish
from coordinator.signals import Listener
from coordinator.trust.caller import Caller
from coordinator.views.explain import explain
from coordinator.views.jobs import job_view, jobs_page, unaccepted_view, with_executions
from muster.domain.errors import JobsRefusedError, MusterError, UnknownNameError
from muster.domain.event import JobEvent
from muster.domain.fleet.access import Access
from muster.domain.ids import JobId
from muster.domain.jobs.explanation import Explanation
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import JobView
from muster.domain.telemetry.point import RankPoints

ENDED = frozenset(phase for phase in JobPhase if phase.ended)
JOBS_PAGE = 100
"""Jobs of one page unless the caller says how many."""
MAX_PAGE = 1000
"""Most jobs of one page."""

PACE, PACE_EACH = 0.1, 0.0005
"""Seconds between two views for one watcher while the phase stays as it is: so many, and so many for each execution.

A view is of the whole job, and each execution of it changes several times: sent at once, all would cost the square.
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs of those that the caller sees."""

    name_contains: str = ""
    phases: Collection[str] = ()
    """Empty: all."""
    projects: frozenset[str] = frozenset()
    """Empty: all."""
    owners: frozenset[str] = frozenset()
    """Accounts that submitted them; empty: whoever it was."""
    mine: bool = False
    """Whether the caller is one of the owners."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that all of them have."""

    def among(self, caller: Caller) -> Among:
        """The jobs that a list is made of, of those that the caller may see."""
        seen, owners = caller.seen_projects, self.owners | ({caller.name} if self.mine else frozenset())
        if self.projects:
            seen = self.projects if seen is None else seen & self.projects
        live = bool(self.phases) and ENDED.isdisjoint(self.phases)
        return Among(projects=seen, owners=owners or None, labels=self.labels, live=live)

    def fits(self, cluster: Cluster, job: Job) -> bool:
        """Whether a job is one of them."""
        if self.name_contains not in job.spec.name:
            return False
        return not self.phases or cluster.phase(job.id) in self.phases


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsPage:
    """Some jobs, newest first, and where the next ones are."""

    jobs: Sequence[JobView]
    next_page: str = ""
    """Given back for the next page; empty: there is none."""


class JobOperations:
    """What callers may do with jobs; a job is named by its id, the beginning of one, or its name."""

    def __init__(
        self, operations: Operations, engine: Engine, desk: SubmitDesk, archive: Archive, pace: float = PACE
    ) -> None:
        self._operations = operations
        self._engine = engine
        self._desk = desk
        self._archive = archive
        self._pace = pace

    async def submit(self, caller: Caller, submission: Submission) -> JobView:
        """Accept a job; the job as it is then."""
        submission = self._desk.settled(caller, submission)
        async with self._operations.begin(caller, "jobs.submit", submission.spec.name) as operation:
            operation.require_in(submission.spec.project)
            with self._desk.taking_in(1):
                submission = await self._desk.merged(submission)
                event = replace(self._desk.checked(caller, submission), cause=operation.cause)
                event = await self._desk.with_data(self._engine, caller, event)
                view = await self._engine.apply_and_query(event, _as_answered)
            if isinstance(view, Refused):
                raise error_of(view)
            assert isinstance(view, JobView)
            operation.target = view.id or submission.spec.name
            made = submission.made if submission.dry_run else None
            return view if made is None else replace(view, origins=made.origins)

    async def submit_many(
        self, caller: Caller, submissions: Iterable[Submission | UnreadableSubmission], count: int
    ) -> Sequence[JobId]:
        """Accept so many jobs or none; their ids, empty for those that were only tried out.

        Raises JobsRefusedError with the first of those that were refused. Submissions are taken one by one, so that
        making them may cost something.
        """
        async with self._operations.begin(caller, "jobs.submit", f"{count} jobs") as operation:
            with self._desk.taking_in(count):
                names, taken, refused = await self._desk.checked_all(self._engine, operation, submissions)
                if refused:  # the others are only tried out, to learn which of them would be refused, too
                    taken = {place: replace(each, dry_run=True) for place, each in taken.items()}
                answer = await self._engine.apply(JobsSubmitted(jobs=tuple(taken.values()), cause=operation.cause))
            if isinstance(answer, NoneAccepted):
                places = list(taken)
                refused |= {places[number]: error_of(each) for number, each in answer.refused.items()}
            if refused:
                raise _all_refused(operation, names, refused)
            assert isinstance(answer, AllAccepted)
            ids = [
                JobId("") if each.dry_run and each.job == job.id else job.id
                for each, job in zip(taken.values(), answer.jobs, strict=True)
            ]
            for name, id_ in zip(names, ids, strict=True):
                operation.ended(id_ or name)
            return ids

    async def get(self, caller: Caller, name: str, attempt: int = 0) -> JobView:
        """One job with its attempts and the executions at hand; with `attempt` those of that one wherever they are."""

        def read(cluster: Cluster, job: JobId, _: datetime) -> tuple[Job, JobView]:
            return cluster.jobs[job], job_view(cluster, job, only=attempt)

        async with self._operations.begin(caller, "jobs.get", name) as operation:
            record, view = await self._read(operation, name, read)
            if not attempt or view.attempts[attempt - 1].executions or view.attempts[attempt - 1].executions_dropped:
                return view
            if stored := await self._archive.past.executions(record.id, attempt):
                return with_executions(view, record, attempt, stored)
            return (await self._read(operation, record.id, read))[1]  # deleted meanwhile, or dropped

    async def list(self, caller: Caller, wanted: JobFilter, *, page: str = "", size: int = 0) -> JobsPage:
        """A page of jobs that the caller sees, newest first; `size` 0: as many as usual."""
        async with self._operations.begin(caller, "jobs.list"):
            before, most, among = page_start(page), min(size or JOBS_PAGE, MAX_PAGE), wanted.among(caller)

            def read(cluster: Cluster, _: datetime) -> tuple[list[JobView], int | None]:
                def fits(job: Job) -> bool:
                    return wanted.fits(cluster, job)

                return jobs_page(cluster, before, most, fits, among)

            found, following = await self._engine.query(read, after=Freshness.COMMITTED)
            return JobsPage(jobs=found, next_page="" if following is None else str(following))

    async def stop(self, caller: Caller, name: str, *, now: bool = False) -> JobView:
        """Order a job to stop; the job as it is then. With `now` nobody waits for its outputs."""
        async with self._operations.begin(caller, "jobs.stop", name) as operation:
            return await ordered(
                self._engine, StopRequested(job=await self._id(operation, name), now=now, cause=operation.cause)
            )

    async def delete(self, caller: Caller, name: str, *, force: bool = False) -> JobId:
        """Forget a job; with `force` one that has not ended is stopped before."""
        async with self._operations.begin(caller, "jobs.delete", name) as operation:
            job = await self._id(operation, name)
            return (await applied(self._engine, DeleteRequested(job=job, force=force, cause=operation.cause))).id

    async def watch(self, caller: Caller, name: str, *, end_only: bool = False) -> AsyncGenerator[JobView, None]:
        """The job now and after changes, until it has ended: a new phase at once, all else a moment later.

        Who asks for the end alone is told nothing in between: thousands of executions are much to be told of.
        """
        async with self._operations.begin(caller, "jobs.watch", name) as operation:
            job = await self._id(operation, name)
            with self._engine.signals.listen(job) as listener:
                while True:
                    view = await self._engine.query(
                        lambda cluster, _: _view_if_there(cluster, job), after=Freshness.COMMITTED
                    )
                    if view is None:
                        raise UnknownNameError(f"job {job} was deleted")
                    yield view
                    if view.phase.ended:
                        return
                    if end_only:
                        await self._end(job, listener)
                    else:
                        await self._change(view, listener)

    async def logs(self, caller: Caller, wish: LogWish) -> AsyncGenerator[Sequence[PrintedLine], None]:
        """Lines of a job's logs, merged by time; the job of the wish is named as the caller does."""
        async with self._operations.begin(caller, "jobs.logs", wish.job) as operation:
            wish = replace(wish, job=await self._id(operation, wish.job))
            async with aclosing(self._archive.logs.lines(wish)) as batches:
                async for lines in batches:
                    yield lines

    async def points(self, caller: Caller, wish: PointWish) -> AsyncGenerator[RankPoints, None]:
        """Points of a job, each rank by itself; the job of the wish is named as the caller does."""
        async with self._operations.begin(caller, "jobs.points", wish.job) as operation:
            wish = replace(wish, job=await self._id(operation, wish.job))
            async with aclosing(self._archive.points.points(wish)) as found:
                async for points in found:
                    yield points

    async def why(self, caller: Caller, name: str) -> Explanation:
        """Why a job is where it is."""

        def read(cluster: Cluster, job: JobId, now: datetime) -> Explanation:
            return explain(cluster, job, now, lambda other: caller.may(Access.VIEWER, other.spec.project))

        async with self._operations.begin(caller, "jobs.why", name) as operation:
            return await self._read(operation, name, read)

    async def events(self, caller: Caller, name: str, wish: StoryWish) -> AsyncGenerator[Sequence[JobEvent], None]:
        """Pages of events of a job, oldest first; a follower is told more until the job has ended."""
        async with self._operations.begin(caller, "jobs.events", name) as operation:
            job = await self._id(operation, name)

            async def goes_on() -> bool:
                phase = await self._engine.query(
                    lambda cluster, _: _phase_if_there(cluster, job), after=Freshness.COMMITTED
                )
                return phase is not None and not phase.ended

            async def read(number: int, count: int) -> Sequence[JobEvent]:
                return await self._archive.past.events(job, number, count)

            with self._engine.signals.listen(job) as listener:
                async for page in event_pages(wish, read, goes_on, listener, self._pace):
                    yield page

    async def _read(self, operation: Operation, name: str, read: Callable[[Cluster, JobId, datetime], T]) -> T:
        """What a function says of the job that the caller means; raises an error unless the caller may ask."""

        def found(cluster: Cluster, now: datetime) -> T:
            return read(cluster, resolved(operation, cluster, name), now)

        return await self._engine.query(found, after=Freshness.COMMITTED)

    async def _id(self, operation: Operation, name: str) -> JobId:
        return await self._read(operation, name, lambda _, job, __: job)

    async def _change(self, seen: JobView, listener: Listener) -> None:
        """Wait until there is something worth another view."""
        rest = asyncio.get_running_loop().time() + self._pace + PACE_EACH * seen.spec.size
        await listener.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(rest):
                while self._engine.query_now(lambda cluster: _phase_if_there(cluster, seen.id)) is seen.phase:
                    await listener.wait()

    async def _end(self, job: JobId, listener: Listener) -> None:
        """Wait until a job has ended or is gone."""
        while (phase := self._engine.query_now(lambda cluster: _phase_if_there(cluster, job))) and not phase.ended:
            await listener.wait()


def _all_refused(operation: Operation, names: Sequence[str], refused: dict[int, MusterError]) -> JobsRefusedError:
    """Write down why each was refused; the error to raise, with the first ones."""
    first = dict(sorted(refused.items())[:REFUSED])
    for place, error in first.items():
        operation.failed(names[place], error)
    return JobsRefusedError(names, first, ())


def _as_answered(cluster: Cluster, answer: Answer) -> JobView | Answer:
    if not isinstance(answer, Accepted):
        return answer
    there = answer.job.id in cluster.jobs
    return job_view(cluster, answer.job.id) if there else unaccepted_view(answer.job)


def _view_if_there(cluster: Cluster, job: JobId) -> JobView | None:
    return job_view(cluster, job) if job in cluster.jobs else None


def _phase_if_there(cluster: Cluster, job: JobId) -> JobPhase | None:
    return cluster.phase(job) if job in cluster.jobs else None
