"""The SDK for jobs: submit, find, watch, stop and delete them, and read what they printed."""

import asyncio
import itertools
import os
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from muster import wire
from muster.client.calls import PAGE, RESUBSCRIBE_PAUSES, RETRY_PAUSES, Calls, Patience
from muster.client.endpoint import project_of
from muster.client.mistyped import refuse_mistyped
from muster.domain.errors import UnavailableError
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.rules.job_rules import refuse_faults
from muster.rpc.v1 import jobs_pb2 as pb
from muster.rpc.v1.jobs_pb2_grpc import JobServiceStub

if TYPE_CHECKING:
    from muster.domain.event import JobEvent
    from muster.domain.jobs.explanation import Explanation
    from muster.domain.jobs.queueing.change import JobChange
    from muster.domain.jobs.view import JobPage, JobView, LogLine
    from muster.jobfile.presets.job_document import JobDocument


class JobsClient:
    """Jobs, reached as `client.jobs`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of JobService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(JobServiceStub)

    async def submit(
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
        >>> job = await client.jobs.submit(spec)
        """
        checked = refuse_faults(refuse_mistyped(spec)) if isinstance(spec, JobSpec) else spec
        request = _submission(checked, queue_anyway=queue_anyway, dry_run=dry_run, key=idempotency_key)
        # Looking up what reads the answer loads it, and takes as long as the coordinator does: the question goes first.
        answer = await self._calls.ask(self._stub.Submit, request)
        return wire.job_from_wire(answer.job)

    async def submit_many(
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

        >>> ids = await client.jobs.submit_many([replace(spec, name=f"seed-{seed}") for seed in range(100)])
        """
        from muster.client.services.job_batches import submit_in_batches  # noqa: PLC0415 - seldom

        keys = (f"{idempotency_key}/{number}" if idempotency_key else "" for number in itertools.count())
        requests = (
            _submission(spec, queue_anyway=queue_anyway, dry_run=dry_run, key=key)
            for spec, key in zip(specs, keys, strict=False)
        )
        call = partial(self._calls.ask, self._stub.SubmitMany)
        return await submit_in_batches(call, specs, requests, self._calls.connection.address)

    async def get(self, job: str, *, attempt: int | None = None) -> "JobView":
        """One job with its attempts, and executions of the first and newest ones or only those of one `attempt`.

        >>> job = await client.jobs.get("hello")
        """
        request = pb.GetJobRequest(job=job, attempt=attempt or 0)
        return wire.job_from_wire(await self._calls.ask(self._stub.Get, request))

    async def list(  # noqa: PLR0913 - one for each condition
        self,
        *,
        phases: Collection[JobPhase] = (),
        name_contains: str = "",
        projects: Collection[str] = (),
        owners: Collection[str] = (),
        mine: bool = False,
        labels: Mapping[str, str] | None = None,
        limit: int | None = None,
    ) -> "AsyncGenerator[JobView, None]":
        """Jobs, newest first, without their executions; all of them, or those that every argument allows.

        A job has one of the `phases`, `projects` and `owners`; `mine` adds the caller to the owners. It carries all
        `labels`.

        >>> async for job in client.jobs.list(phases=[JobPhase.RUNNING], mine=True):
        ...     print(job.id, job.spec.name)
        """
        next_page = ""
        while limit is None or limit > 0:
            page = await self.page(
                phases=phases,
                name_contains=name_contains,
                projects=projects,
                owners=owners,
                mine=mine,
                labels=labels,
                size=PAGE if limit is None else min(limit, PAGE),
                page=next_page,
            )
            for job in page.jobs[:limit]:
                yield job
            limit = None if limit is None else limit - len(page.jobs)
            next_page = page.next_page
            if not next_page:
                return

    async def page(  # noqa: PLR0913 - one for each condition
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

        >>> first = await client.jobs.page(size=20)
        >>> second = await client.jobs.page(size=20, page=first.next_page)
        """
        from muster.domain.jobs.view import JobPage  # noqa: PLC0415 - loaded while the coordinator answers

        request = pb.ListJobsRequest(
            phases=tuple(phases),
            name_contains=name_contains,
            projects=projects,
            owners=owners,
            mine=mine,
            labels=labels,
            page_size=size,
            page_token=page,
        )
        answer = await self._calls.ask(self._stub.List, request)
        return JobPage(jobs=tuple(map(wire.job_from_wire, answer.jobs)), next_page=answer.next_page_token)

    async def stop(self, job: str, *, now: bool = False) -> "JobView":
        """Stop a job; it is given back once the order is stored. An ended job stays as it is.

        `now`: nobody waits for its outputs; what is not stored stays on its nodes.

        >>> await client.jobs.stop("hello")
        """
        return wire.job_from_wire((await self._calls.ask(self._stub.Stop, pb.StopRequest(job=job, now=now))).job)

    async def delete(self, job: str, *, force: bool = False) -> JobId:
        """Forget a job that has ended, and its logs; its id. `force` stops it first if need be.

        >>> await client.jobs.delete("hello", force=True)
        """
        request = pb.DeleteRequest(job=job, force=force)
        # Never repeated: what was deleted by a request whose answer got lost would not be found by the next one.
        return JobId((await self._calls.ask(self._stub.Delete, request, pauses=())).job)

    async def hold(self, job: str) -> "JobView":
        """Keep a job out of the queue until it is released; raises ConflictError once it has its nodes.

        >>> await client.jobs.hold("hello")
        """
        return wire.job_from_wire((await self._calls.ask(self._stub.Hold, pb.HoldRequest(job=job))).job)

    async def unhold(self, job: str) -> "JobView":
        """Release a job that is held; what an operator holds only operators release.

        >>> await client.jobs.unhold("hello")
        """
        return wire.job_from_wire((await self._calls.ask(self._stub.Unhold, pb.UnholdRequest(job=job))).job)

    async def suspend(self, job: str) -> "JobView":
        """Stop a job with its grace period; its next attempt waits until it is resumed, and keeps its place in order.

        >>> await client.jobs.suspend("hello")
        """
        return wire.job_from_wire((await self._calls.ask(self._stub.Suspend, pb.SuspendRequest(job=job))).job)

    async def resume(self, job: str) -> "JobView":
        """Let a suspended job go on.

        >>> await client.jobs.resume("hello")
        """
        return wire.job_from_wire((await self._calls.ask(self._stub.Resume, pb.ResumeRequest(job=job))).job)

    async def change(self, job: str, change: "JobChange") -> "JobView":
        """Make a job other than it was submitted: its priority until it ends, all else until it has its nodes.

        >>> await client.jobs.change("hello", JobChange(priority=10))
        """
        request = wire.job_change_to_wire(change)
        request.job = job
        return wire.job_from_wire((await self._calls.ask(self._stub.Change, request)).job)

    async def why(self, job: str) -> "Explanation":
        """Why a job is where it is.

        >>> explanation = await client.jobs.why("hello")
        """
        return wire.explanation_from_wire(await self._calls.ask(self._stub.Why, pb.WhyRequest(job=job)))

    def watch(self, job: "str | JobView") -> "AsyncGenerator[JobView, None]":
        """The job now, then at each change, until it has ended; a slow reader misses states in between, never the last.

        Goes on after a broken connection; raises UnavailableError when nobody answers for two minutes.

        >>> async for job in client.jobs.watch("hello"):
        ...     print(job.phase)
        """
        return self._views(job)

    async def wait(
        self,
        job: "str | JobView",
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the synchronous form has no other way
    ) -> "JobView":
        """The job once it has ended; TimeoutError when that takes more than `timeout` seconds (default: no limit).

        >>> ended = await client.jobs.wait("hello", timeout=3600)
        >>> print(ended.phase, ended.failure or "")
        """
        async with asyncio.timeout(timeout):
            async for view in self._views(job, end_only=True):  # noqa: B007 - the last one is what is asked for
                pass
        return view

    async def events(
        self, job: "str | JobView", *, after: int = 0, follow: bool = False
    ) -> "AsyncGenerator[JobEvent, None]":
        """What happened to a job, oldest first; with `follow` until it has ended.

        `after` is the number of the last event that is known. A broken connection is taken up again without losing or
        repeating an event.

        >>> async for event in client.jobs.events("hello"):
        ...     print(event.at, event.kind, event.text)
        """
        from muster.client.streams.event_streams import events_of  # noqa: PLC0415 - seldom

        request = pb.EventsRequest(job=job if isinstance(job, str) else job.id, after=after, follow=follow)

        def read(message: pb.JobEvent) -> "JobEvent":
            event = wire.job_event_from_wire(message)
            request.job = event.job  # the name may be another job's when a broken stream is taken up
            return event

        async with aclosing(events_of(self._calls, self._stub.Events, request, read)) as told:
            async for event in told:
                yield event

    async def logs(
        self,
        job: "str | JobView",
        *,
        ranks: Collection[int] = (),
        since: datetime | None = None,
        tail: int | None = None,
        follow: bool = False,
        attempt: int | None = None,
    ) -> "AsyncGenerator[LogLine, None]":
        """What the ranks of a job printed, merged in the order of time as far as known.

        `tail` means the last so many lines of each rank; `follow` goes on until all logs are complete, and takes a
        broken connection up again without losing or repeating a line.

        >>> async for line in client.jobs.logs("hello", follow=True):
        ...     print(line.rank, line.text.decode(errors="replace"))
        """
        from muster.client.streams.log_position import LogPosition  # noqa: PLC0415 - seldom

        request = pb.LogsRequest(
            job=(await self.get(job)).id if isinstance(job, str) else job.id,
            ranks=sorted(ranks),
            tail=tail,
            follow=follow,
            attempt=attempt or 0,
        )
        if since is not None:
            request.since.FromDatetime(since)
        position, patience = LogPosition(), Patience()
        while True:
            try:
                async with aclosing(self._calls.stream(self._stub.Logs, request)) as batches:
                    async for batch in batches:
                        patience.renew()
                        for line in filter(position.is_new, map(wire.log_line_from_wire, batch.lines)):
                            yield line
            except UnavailableError as error:
                await patience.pause_or_raise(error)
                position.start_again()
                # From where the first subscription began there may be other last lines now.
                request.ClearField("tail")
            else:
                return

    async def _views(self, job: "str | JobView", *, end_only: bool = False) -> "AsyncGenerator[JobView, None]":
        seen = None if isinstance(job, str) else job
        request = pb.WatchRequest(job=job if isinstance(job, str) else job.id, end_only=end_only)
        patience = Patience(RETRY_PAUSES if seen is None else RESUBSCRIBE_PAUSES)
        if seen is not None:
            yield seen
        while seen is None or not seen.phase.ended:
            try:
                async with aclosing(self._calls.stream(self._stub.Watch, request)) as messages:
                    async for message in messages:
                        patience.renew()
                        before, seen = seen, wire.job_from_wire(message)
                        request.job = seen.id  # of a name there may be a newer one when it is asked again
                        if seen != before:
                            yield seen
            except UnavailableError as error:
                await patience.pause_or_raise(error)


def _submission(spec: "JobSpec | JobDocument", *, queue_anyway: bool, dry_run: bool, key: str) -> pb.SubmitRequest:
    """A request for a job, with a key of its own unless one is given: sent again, it asks for the same one."""
    request = pb.SubmitRequest(queue_anyway=queue_anyway, dry_run=dry_run, idempotency_key=key or os.urandom(16).hex())
    if isinstance(spec, JobSpec):
        request.spec.CopyFrom(wire.job_spec_to_wire(spec))
        request.spec.project = request.spec.project or project_of(os.environ)
    else:
        request.document = spec.in_project(project_of(os.environ)).text
    return request
