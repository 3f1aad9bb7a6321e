"""The synchronous form of `muster.client.services.jobs`, made from it by `make sync`; change that one."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from muster.client.blocking.loop_thread import LoopThread
from muster.client.blocking.stream import SyncStream
from muster.client.calls import PAGE
from muster.client.services.jobs import JobsClient
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase

if TYPE_CHECKING:
    from muster.domain.event import JobEvent
    from muster.domain.jobs.explanation import Explanation
    from muster.domain.jobs.queueing.change import JobChange
    from muster.domain.jobs.view import JobPage, JobView, LogLine
    from muster.jobfile.presets.job_document import JobDocument


class SyncJobsClient:
    """Jobs, reached as `client.jobs`."""

    def __init__(self, own: JobsClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def submit(
        self,
        spec: "JobSpec | JobDocument",
        *,
        queue_anyway: bool = False,
        dry_run: bool = False,
        idempotency_key: str = "",
    ) -> "JobView":
        """Submit a job; it is given back once it is stored durably. With `dry_run` it is only checked, and has no id.

        Raises InvalidJobError for a malformed job and ConflictError when no present node could ever run it, unless
        `queue_anyway`. An answer that got lost never leads to a second job; with an `idempotency_key` of one's own
        neither does a program that asks again after it was restarted. The presets that a `JobDocument` names are
        joined with it.

        >>> spec = JobSpec(name="hello", roles=(Role(command=("hostname",), count=3),))
        >>> job = client.jobs.submit(spec)
        """
        return self._loop.run(
            self._own.submit(spec, queue_anyway=queue_anyway, dry_run=dry_run, idempotency_key=idempotency_key)
        )

    def submit_many(
        self,
        specs: "Sequence[JobSpec | JobDocument]",
        *,
        queue_anyway: bool = False,
        dry_run: bool = False,
        idempotency_key: str = "",
    ) -> tuple[JobId, ...]:
        """Submit many jobs, several times as fast as one by one; their ids in the order of the list.

        Up to 1,000 are accepted all together or not at all, longer lists in parts, one after the other. Raises
        JobsRefusedError, which says of each refused job why, and what was accepted before. With `dry_run` all are only
        checked, and the ids are empty. An answer that got lost never leads to a second job; `idempotency_key` is as for
        `submit`, and counts for the whole list.

        >>> ids = client.jobs.submit_many([replace(spec, name=f"seed-{seed}") for seed in range(100)])
        """
        return self._loop.run(
            self._own.submit_many(specs, queue_anyway=queue_anyway, dry_run=dry_run, idempotency_key=idempotency_key)
        )

    def get(self, job: str, *, attempt: int | None = None) -> "JobView":
        """One job with its attempts, and executions of the first and newest ones or only those of one `attempt`.

        >>> job = client.jobs.get("hello")
        """
        return self._loop.run(self._own.get(job, attempt=attempt))

    def list(  # noqa: PLR0913 - one for each condition
        self,
        *,
        phases: Collection[JobPhase] = (),
        name_contains: str = "",
        projects: Collection[str] = (),
        owners: Collection[str] = (),
        mine: bool = False,
        labels: Mapping[str, str] | None = None,
        limit: int | None = None,
    ) -> "SyncStream[JobView]":
        """Jobs, newest first, without their executions; all of them, or those that every argument allows.

        A job has one of the `phases`, `projects` and `owners`; `mine` adds the caller to the owners. It carries all
        `labels`.

        >>> for job in client.jobs.list(phases=[JobPhase.RUNNING], mine=True):
        ...     print(job.id, job.spec.name)
        """
        return self._loop.stream(
            self._own.list(
                phases=phases,
                name_contains=name_contains,
                projects=projects,
                owners=owners,
                mine=mine,
                labels=labels,
                limit=limit,
            )
        )

    def page(  # noqa: PLR0913 - one for each condition
        self,
        *,
        phases: Collection[JobPhase] = (),
        name_contains: str = "",
        projects: Collection[str] = (),
        owners: Collection[str] = (),
        mine: bool = False,
        labels: Mapping[str, str] | None = None,
        size: int = PAGE,
        page: str = "",
    ) -> "JobPage":
        """So many of the jobs that `list` gives, and where the next ones are; `page` is `next_page` of the page before.

        >>> first = client.jobs.page(size=20)
        >>> second = client.jobs.page(size=20, page=first.next_page)
        """
        return self._loop.run(
            self._own.page(
                phases=phases,
                name_contains=name_contains,
                projects=projects,
                owners=owners,
                mine=mine,
                labels=labels,
                size=size,
                page=page,
            )
        )

    def stop(self, job: str, *, now: bool = False) -> "JobView":
        """Stop a job; it is given back once the order is stored. An ended job stays as it is.

        `now`: nobody waits for its outputs; what is not stored stays on its nodes.

        >>> client.jobs.stop("hello")
        """
        return self._loop.run(self._own.stop(job, now=now))

    def delete(self, job: str, *, force: bool = False) -> JobId:
        """Forget a job that has ended, and its logs; its id. `force` stops it first if need be.

        >>> client.jobs.delete("hello", force=True)
        """
        return self._loop.run(self._own.delete(job, force=force))

    def hold(self, job: str) -> "JobView":
        """Keep a job out of the queue until it is released; raises ConflictError once it has its nodes.

        >>> client.jobs.hold("hello")
        """
        return self._loop.run(self._own.hold(job))

    def unhold(self, job: str) -> "JobView":
        """Release a job that is held; what an operator holds only operators release.

        >>> client.jobs.unhold("hello")
        """
        return self._loop.run(self._own.unhold(job))

    def suspend(self, job: str) -> "JobView":
        """Stop a job with its grace period; its next attempt waits until it is resumed, and keeps its place in order.

        >>> client.jobs.suspend("hello")
        """
        return self._loop.run(self._own.suspend(job))

    def resume(self, job: str) -> "JobView":
        """Let a suspended job go on.

        >>> client.jobs.resume("hello")
        """
        return self._loop.run(self._own.resume(job))

    def change(self, job: str, change: "JobChange") -> "JobView":
        """Make a job other than it was submitted: its priority until it ends, all else until it has its nodes.

        >>> client.jobs.change("hello", JobChange(priority=10))
        """
        return self._loop.run(self._own.change(job, change))

    def why(self, job: str) -> "Explanation":
        """Why a job is where it is.

        >>> explanation = client.jobs.why("hello")
        """
        return self._loop.run(self._own.why(job))

    def watch(self, job: "str | JobView") -> "SyncStream[JobView]":
        """The job now, then at each change, until it has ended; a slow reader misses states in between, never the last.

        Goes on after a broken connection; raises UnavailableError when nobody answers for two minutes.

        >>> for job in client.jobs.watch("hello"):
        ...     print(job.phase)
        """
        return self._loop.stream(self._own.watch(job))

    def wait(self, job: "str | JobView", *, timeout: float | None = None) -> "JobView":
        """The job once it has ended; TimeoutError when that takes more than `timeout` seconds (default: no limit).

        >>> ended = client.jobs.wait("hello", timeout=3600)
        >>> print(ended.phase, ended.failure or "")
        """
        return self._loop.run(self._own.wait(job, timeout=timeout))

    def events(self, job: "str | JobView", *, after: int = 0, follow: bool = False) -> "SyncStream[JobEvent]":
        """What happened to a job, oldest first; with `follow` until it has ended.

        `after` is the number of the last event that is known. A broken connection is taken up again without losing or
        repeating an event.

        >>> for event in client.jobs.events("hello"):
        ...     print(event.at, event.kind, event.text)
        """
        return self._loop.stream(self._own.events(job, after=after, follow=follow))

    def logs(
        self,
        job: "str | JobView",
        *,
        ranks: Collection[int] = (),
        since: datetime | None = None,
        tail: int | None = None,
        follow: bool = False,
        attempt: int | None = None,
    ) -> "SyncStream[LogLine]":
        """What the ranks of a job printed, merged in the order of time as far as known.

        `tail` means the last so many lines of each rank; `follow` goes on until all logs are complete, and takes a
        broken connection up again without losing or repeating a line.

        >>> for line in client.jobs.logs("hello", follow=True):
        ...     print(line.rank, line.text.decode(errors="replace"))
        """
        return self._loop.stream(
            self._own.logs(job, ranks=ranks, since=since, tail=tail, follow=follow, attempt=attempt)
        )
