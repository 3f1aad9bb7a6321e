"""The clients' side: jobs."""

import asyncio
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

import grpc
import grpc.aio

from coordinator.core.answers import Accepted, AllAccepted, Answer, NoneAccepted, Refused
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.job_index import Among
from coordinator.core.events import DeleteRequested, JobsSubmitted, JobSubmitted, StopRequested
from coordinator.core.records import Job
from coordinator.core.requests.jobs import REFUSED
from coordinator.engine import Engine
from coordinator.rpc.callers import caller
from coordinator.rpc.clients.archive import Archive
from coordinator.rpc.clients.log_merge import LogWish
from coordinator.rpc.refusals import fitting, refuse, status_of, told, translated
from coordinator.rpc.streams import offer, streaming
from coordinator.service.causes import error_of
from coordinator.signals import Listener
from coordinator.trust.caller import Caller
from coordinator.trust.policy import require_open
from coordinator.trust.secrets.secrets import Secrets
from coordinator.trust.secrets.uses import spelled_out
from coordinator.views import views
from muster import wire
from muster.domain.errors import ExhaustedError, InvalidJobError, MusterError, UnknownNameError
from muster.domain.fleet.access import Access, Policy
from muster.domain.ids import JobId
from muster.domain.jobs.explanation import Explanation
from muster.domain.jobs.job_rules import refuse_faults
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import JobView
from muster.rpc.v1 import jobs_pb2 as pb
from muster.rpc.v1 import jobs_pb2_grpc
from muster.wire import checks

Context = grpc.aio.ServicerContext[Any, Any]
# A streaming handler here is a coroutine that writes to its context, which gRPC allows and the stubs do not know.

ENDED = frozenset(phase for phase in JobPhase if phase.ended)
PAGE = 100
MAX_PAGE = 1000
_LONGEST_TOKEN = 18
"""Digits, which fit into what a machine counts with."""
LINES_PER_MESSAGE = 500

READER_PATIENCE = 900.0
"""Seconds for which a reader of logs or of a job may read nothing; somebody may look at a page for long."""
PACE, PACE_EACH = 0.1, 0.0005
"""Seconds between two views for one watcher while the phase stays as it is: so many, and so many for each execution.

A view is of the whole job, and each execution of it changes several times: sent at once, all would cost the square.
"""
MAX_SPEC = 4 * 1024 * 1024
"""Bytes of one job as it is submitted; job files and their inline files are at most a quarter of it each."""
MAX_SUBMITS = 4000
"""Most submits that are being taken in at once; bounds memory however many clients there are."""

_AT_A_TIME = 50
"""Of many jobs so many are checked before others have their turn."""

Refusal = tuple[grpc.StatusCode, str]
"""As a call by itself would have ended."""

_ID_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no letters that look like digits."""
_ID_LETTERS = _ID_ALPHABET[10:]
_ID_PLACES = range(0, 7 * 5, 5)
"""Of the bits of each further character."""


class JobService(jobs_pb2_grpc.JobServiceServicer):
    """Submit jobs, look at them, stop them."""

    def __init__(
        self,
        engine: Engine,
        policy_of: Callable[[str], Policy],
        archive: Archive,
        secrets: Secrets,
        patience: float = READER_PATIENCE,
        pace: float = PACE,
    ) -> None:
        self._engine = engine
        self._secrets = secrets
        self._policy_of = policy_of
        """What a project is opened for."""
        self._archive = archive
        self._patience = patience
        self._pace = pace
        self._submits = 0
        """How many are being taken in."""
        self.closing = asyncio.Event()

    @translated
    async def Submit(self, request: pb.SubmitRequest, context: Context) -> pb.SubmitResponse:  # noqa: N802 - gRPC's name
        """Accept a job."""
        with self._taking_in(1):
            view = await self._engine.ask_and_read(self._checked(request), _as_answered)
        if isinstance(view, Refused):
            await refuse(context, view)
        assert isinstance(view, JobView)
        return pb.SubmitResponse(job=wire.job_to_wire(view))

    @translated
    async def SubmitMany(self, request: pb.SubmitManyRequest, context: Context) -> pb.SubmitManyResponse:  # noqa: ARG002, N802
        """Accept many jobs or none."""
        checks.between(len(request.jobs), 1, checks.MAX_JOBS, "SubmitManyRequest.jobs")
        with self._taking_in(len(request.jobs)):
            taken, refusals = await self._checked_all(request.jobs)
            if refusals:  # the others are only tried out, to learn which of them would be refused, too
                taken = {place: replace(each, dry_run=True) for place, each in taken.items()}
            answer = await self._engine.ask(JobsSubmitted(jobs=tuple(taken.values())))
        if isinstance(answer, NoneAccepted):
            places = list(taken)
            for number, refused in answer.refused.items():
                error = error_of(refused)
                refusals[places[number]] = (status_of(error), told(error))
        if refusals:
            return _refusals(refusals)
        assert isinstance(answer, AllAccepted)
        tried = (each.dry_run and each.job == job.id for each, job in zip(taken.values(), answer.jobs, strict=True))
        return pb.SubmitManyResponse(ids=["" if only else job.id for only, job in zip(tried, answer.jobs, strict=True)])

    @translated
    async def Get(self, request: pb.GetJobRequest, context: Context) -> pb.Job:  # noqa: ARG002, N802
        """One job with its attempts and the executions that are at hand, or those of one attempt wherever they are."""
        if request.attempt:
            return wire.job_to_wire(await self._view_of(request.job, request.attempt))
        return wire.job_to_wire(await self._view(request.job))

    @translated
    async def List(self, request: pb.ListJobsRequest, context: Context) -> pb.ListJobsResponse:  # noqa: ARG002, N802
        """A page of jobs, newest first."""
        before = page_token(request.page_token)
        size, who = min(request.page_size or PAGE, MAX_PAGE), caller()
        among = _among(request, who)

        def read(cluster: Cluster, _: datetime) -> tuple[list[JobView], int | None]:
            def wanted(job: Job) -> bool:
                named = request.name_contains in job.spec.name
                return named and (not request.phases or cluster.phase(job.id) in request.phases)

            return views.jobs_page(cluster, before, size, wanted, among)

        page, following = await self._engine.look(read)
        return pb.ListJobsResponse(
            jobs=[wire.job_to_wire(view) for view in page],
            next_page_token="" if following is None else str(following),
        )

    @translated
    async def Stop(self, request: pb.StopRequest, context: Context) -> pb.StopResponse:  # noqa: N802
        """Order a job to stop."""
        job = await _accepted(await self._engine.ask(StopRequested(job=await self._id(request.job))), context)
        return pb.StopResponse(job=wire.job_to_wire(await self._view(job.id)))

    @translated
    async def Delete(self, request: pb.DeleteRequest, context: Context) -> pb.DeleteResponse:  # noqa: N802
        """Forget a job."""
        event = DeleteRequested(job=await self._id(request.job), force=request.force)
        job = await _accepted(await self._engine.ask(event), context)
        return pb.DeleteResponse(job=job.id)

    @streaming
    async def Watch(self, request: pb.WatchRequest, context: Context) -> None:  # type: ignore[override]  # noqa: N802
        """The job now and after changes, until it has ended: a new phase at once, all else a moment later.

        Who asks for the end alone is told nothing in between: thousands of executions are much to be told of.
        """
        job = await self._id(request.job)
        with self._engine.signals.listen(job) as listener:
            while True:
                view = await self._engine.look(lambda cluster, _: _view_if_there(cluster, job))
                if view is None:
                    raise UnknownNameError(f"job {job} was deleted")
                await offer(context, wire.job_to_wire(view), self._patience)
                if view.phase.ended:
                    return
                if request.end_only:
                    await self._end(job, listener)
                else:
                    await self._change(view, listener)

    @streaming
    async def Logs(self, request: pb.LogsRequest, context: Context) -> None:  # type: ignore[override]  # noqa: N802
        """Lines of a job's logs, merged by time."""
        wish = LogWish(
            job=await self._id(request.job),
            attempt=request.attempt,
            ranks=frozenset(request.ranks),
            since=checks.optional_moment(request, "since"),
            tail=request.tail if request.HasField("tail") else None,
            follow=request.follow,
        )
        async for lines in self._archive.logs.lines(wish):
            for start in range(0, len(lines), LINES_PER_MESSAGE):
                await offer(context, pb.LogLines(lines=lines[start : start + LINES_PER_MESSAGE]), self._patience)

    @translated
    async def Why(self, request: pb.WhyRequest, context: Context) -> pb.WhyResponse:  # noqa: ARG002, N802
        """Why a job is where it is."""
        who = caller()

        def read(cluster: Cluster, now: datetime) -> Explanation:
            def visible(job: Job) -> bool:
                return who.may(Access.VIEWER, job.spec.project)

            return views.explain(cluster, views.resolve(cluster, request.job), now, visible)

        explanation = await self._engine.look(read)
        return wire.explanation_to_wire(explanation)

    async def _checked_all(
        self, requests: Sequence[pb.SubmitRequest]
    ) -> tuple[dict[int, JobSubmitted], dict[int, Refusal]]:
        """What passes and what does not, by place; of very many refusals the first ones. Others go on meanwhile."""
        taken, refusals = dict[int, JobSubmitted](), dict[int, Refusal]()
        for place, request in enumerate(requests):
            try:
                taken[place] = self._checked(request)
            except MusterError as error:
                refusals[place] = (status_of(error), fitting(str(error)))
            if len(refusals) == REFUSED:
                break
            if place % _AT_A_TIME == _AT_A_TIME - 1:
                await asyncio.sleep(0)
        return taken, refusals

    def _checked(self, request: pb.SubmitRequest) -> JobSubmitted:
        """What is asked for, with what it says of secrets in full.

        Raises an error for what is malformed, too large, names a secret that its project lacks, or wants what the
        project is not opened for.
        """
        submitted = _submitted(request)
        project = submitted.spec.project
        spec = spelled_out(submitted.spec, self._secrets.of_project(project))
        require_open(spec, self._policy_of(project))
        return submitted if spec is submitted.spec else replace(submitted, spec=spec)

    @contextmanager
    def _taking_in(self, jobs: int) -> Iterator[None]:
        if self._submits + jobs > MAX_SUBMITS:
            raise ExhaustedError(f"{self._submits} jobs are being taken in at this moment; try again in a few seconds")
        self._submits += jobs
        try:
            yield
        finally:
            self._submits -= jobs

    async def _change(self, seen: JobView, listener: Listener) -> None:
        """Wait until there is something worth another view."""
        rest = asyncio.get_running_loop().time() + self._pace + PACE_EACH * seen.spec.size
        await listener.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(rest):
                while self._engine.glance(lambda cluster: _phase_if_there(cluster, seen.id)) is seen.phase:
                    await listener.wait()

    async def _end(self, job: JobId, listener: Listener) -> None:
        """Wait until a job has ended or is gone."""
        while (phase := self._engine.glance(lambda cluster: _phase_if_there(cluster, job))) and not phase.ended:
            await listener.wait()

    async def _id(self, name: str) -> JobId:
        return await self._engine.look(lambda cluster, _: views.resolve(cluster, name))

    async def _view(self, name: str) -> JobView:
        return await self._engine.look(lambda cluster, _: views.job_view(cluster, views.resolve(cluster, name)))

    async def _view_of(self, name: str, number: int) -> JobView:
        """A job with the executions of one attempt, from the store if memory does not have them."""

        def read(cluster: Cluster, _: datetime) -> tuple[Job, JobView]:
            job = views.resolve(cluster, name)
            return cluster.jobs[job], views.job_view(cluster, job, only=number)

        job, view = await self._engine.look(read)
        attempt = view.attempts[number - 1]
        if attempt.executions or attempt.executions_dropped:
            return view
        if stored := await self._archive.attempts.executions(job.id, number):
            return views.with_executions(view, job, number, stored)
        return (await self._engine.look(read))[1]  # deleted meanwhile, or dropped


def _submitted(request: pb.SubmitRequest) -> JobSubmitted:
    if request.ByteSize() > MAX_SPEC:
        size, most = (round(each / 2**20, 1) for each in (request.ByteSize(), MAX_SPEC))
        raise InvalidJobError(
            f"the job is {size:g} MiB large; {most:g} MiB are the most. Put large files into the image"
        )
    return JobSubmitted(
        job=new_job_id(),
        spec=refuse_faults(wire.job_spec_from_wire(request.spec)),
        owner=caller().name,
        queue_anyway=request.queue_anyway,
        dry_run=request.dry_run,
        idempotency_key=_own_key(_key(request)),
    )


def _among(request: pb.ListJobsRequest, who: Caller) -> Among:
    """Which jobs a list is made of, of those that the caller may see."""
    seen, owners = who.seen_projects, {*request.owners, *([who.name] if request.mine else [])}
    if request.projects:
        seen = frozenset(request.projects) if seen is None else seen & frozenset(request.projects)
    return Among(
        projects=seen,
        owners=owners or None,
        labels=dict(request.labels),
        live=bool(request.phases) and ENDED.isdisjoint(request.phases),
    )


def _refusals(refusals: Mapping[int, Refusal]) -> pb.SubmitManyResponse:
    listed = [
        pb.JobRefusal(position=place, status=status.name, message=message)
        for place, (status, message) in sorted(refusals.items())
    ]
    return pb.SubmitManyResponse(refusals=listed[:REFUSED])


def new_job_id() -> JobId:
    """Eight random characters, the first a letter: safe as a name everywhere, and unique among a trillion."""
    number, letter = divmod(secrets.randbits(128), len(_ID_LETTERS))  # so many bits that each letter is as likely
    return JobId(_ID_LETTERS[letter] + "".join(_ID_ALPHABET[number >> place & 31] for place in _ID_PLACES))


async def _accepted(answer: Answer, context: Context) -> Job:
    if isinstance(answer, Refused):
        await refuse(context, answer)
    assert isinstance(answer, Accepted)
    return answer.job


def _as_answered(cluster: Cluster, answer: Answer) -> JobView | Answer:
    if not isinstance(answer, Accepted):
        return answer
    there = answer.job.id in cluster.jobs
    return views.job_view(cluster, answer.job.id) if there else views.unaccepted_view(answer.job)


def _key(request: pb.SubmitRequest) -> str:
    where = "SubmitRequest.idempotency_key"
    return checks.plain(checks.text(request.idempotency_key, where), where)


def _own_key(key: str) -> str:
    """No key is answered with the job of somebody else who happened to choose, or to learn, the same."""
    return f"{caller().name}:{key}" if key else ""


def _view_if_there(cluster: Cluster, job: JobId) -> JobView | None:
    return views.job_view(cluster, job) if job in cluster.jobs else None


def _phase_if_there(cluster: Cluster, job: JobId) -> JobPhase | None:
    return cluster.phase(job) if job in cluster.jobs else None


def page_token(token: str) -> int | None:
    """Where a page begins; None: at the beginning. Raises InvalidJobError."""
    if not token:
        return None
    if not token.isdecimal() or len(token) > _LONGEST_TOKEN:
        raise InvalidJobError(f"{token[:80]!r} is not a page token of this service")
    return int(token)
