"""The clients' calls about jobs, as gRPC has them."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.refusals import status_of, told, translated
from coordinator.rpc.streams import offer, streaming
from coordinator.service.jobs import JobFilter, JobOperations
from coordinator.service.queueing.job_orders import JobOrders
from coordinator.service.stories import StoryWish
from coordinator.service.submitting import Submission, UnreadableSubmission
from coordinator.service.watching.logs import LogWish, PrintedLine
from coordinator.service.watching.points import PointWish
from muster import wire
from muster.domain.errors import InvalidJobError, JobsRefusedError, MusterError
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.telemetry.point import MAX_POINTS, POINTS
from muster.jobfile.presets import named_by
from muster.rpc.v1 import jobs_pb2 as pb
from muster.rpc.v1 import jobs_pb2_grpc
from muster.wire import checks

# A streaming handler here is a coroutine that writes to its context, which gRPC allows and the stubs do not know.

LINES_PER_MESSAGE = 500
POINTS_PER_MESSAGE = 100
"""So few that a message stays below 4 MiB, whatever they say."""

READER_PATIENCE = 900.0
"""Seconds for which a reader of logs or of a job may read nothing; somebody may look at a page for long."""
MAX_SPEC = 4 * 1024 * 1024
"""Bytes of one job as it is submitted; job files and their inline files are at most a quarter of it each."""
MAX_DOCUMENT = 3 * 1024 * 1024
"""Bytes of the values of a job file that names presets; as many as a job file and its inline files have."""


class JobService(jobs_pb2_grpc.JobServiceServicer):
    """Translates calls about jobs."""

    def __init__(self, jobs: JobOperations, orders: JobOrders, patience: float = READER_PATIENCE) -> None:
        self._jobs = jobs
        self._orders = orders
        self._patience = patience
        self.closing = asyncio.Event()

    @translated
    async def Submit(self, request: pb.SubmitRequest, context: Context) -> pb.SubmitResponse:
        """Accept a job."""
        return pb.SubmitResponse(job=wire.job_to_wire(await self._jobs.submit(caller(), _submission(request))))

    @translated
    async def SubmitMany(self, request: pb.SubmitManyRequest, context: Context) -> pb.SubmitManyResponse:
        """Accept many jobs or none."""
        count = checks.between(len(request.jobs), 1, checks.MAX_JOBS, "SubmitManyRequest.jobs")
        try:
            ids = await self._jobs.submit_many(caller(), map(_submission_if_readable, request.jobs), count)
        except JobsRefusedError as error:
            return _refusals(error.refused)
        return pb.SubmitManyResponse(ids=ids)

    @translated
    async def Get(self, request: pb.GetJobRequest, context: Context) -> pb.Job:
        """One job with its attempts and the executions that are at hand, or those of one attempt wherever they are."""
        return wire.job_to_wire(await self._jobs.get(caller(), request.job, request.attempt))

    @translated
    async def List(self, request: pb.ListJobsRequest, context: Context) -> pb.ListJobsResponse:
        """A page of jobs, newest first."""
        wanted = JobFilter(
            name_contains=request.name_contains,
            phases=frozenset(request.phases),
            projects=frozenset(request.projects),
            owners=frozenset(request.owners),
            mine=request.mine,
            labels=dict(request.labels),
        )
        page = await self._jobs.list(caller(), wanted, page=request.page_token, size=request.page_size)
        return pb.ListJobsResponse(jobs=map(wire.job_to_wire, page.jobs), next_page_token=page.next_page)

    @translated
    async def Stop(self, request: pb.StopRequest, context: Context) -> pb.StopResponse:
        """Order a job to stop."""
        return pb.StopResponse(job=wire.job_to_wire(await self._jobs.stop(caller(), request.job, now=request.now)))

    @translated
    async def Delete(self, request: pb.DeleteRequest, context: Context) -> pb.DeleteResponse:
        """Forget a job."""
        return pb.DeleteResponse(job=await self._jobs.delete(caller(), request.job, force=request.force))

    @translated
    async def Hold(self, request: pb.HoldRequest, context: Context) -> pb.HoldResponse:
        """Keep a job out of the queue."""
        return pb.HoldResponse(job=wire.job_to_wire(await self._orders.hold(caller(), request.job)))

    @translated
    async def Unhold(self, request: pb.UnholdRequest, context: Context) -> pb.UnholdResponse:
        """Release a job that is held."""
        return pb.UnholdResponse(job=wire.job_to_wire(await self._orders.unhold(caller(), request.job)))

    @translated
    async def Suspend(self, request: pb.SuspendRequest, context: Context) -> pb.SuspendResponse:
        """Stop a job until it is resumed."""
        return pb.SuspendResponse(job=wire.job_to_wire(await self._orders.suspend(caller(), request.job)))

    @translated
    async def Resume(self, request: pb.ResumeRequest, context: Context) -> pb.ResumeResponse:
        """Let a suspended job go on."""
        return pb.ResumeResponse(job=wire.job_to_wire(await self._orders.resume(caller(), request.job)))

    @translated
    async def Change(self, request: pb.ChangeRequest, context: Context) -> pb.ChangeResponse:
        """Make a job other than it was submitted."""
        change = wire.job_change_from_wire(request)
        return pb.ChangeResponse(job=wire.job_to_wire(await self._orders.change(caller(), request.job, change)))

    @streaming
    async def Watch(self, request: pb.WatchRequest, context: Context) -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """The job now and after changes, until it has ended; or its end alone."""
        async with aclosing(self._jobs.watch(caller(), request.job, end_only=request.end_only)) as views:
            async for view in views:
                await offer(context, wire.job_to_wire(view), self._patience)

    @streaming
    async def Logs(self, request: pb.LogsRequest, context: Context) -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """Lines of a job's logs, merged by time."""
        wish = LogWish(
            job=JobId(request.job),
            attempt=request.attempt,
            ranks=frozenset(request.ranks),
            since=checks.optional_moment(request, "since"),
            tail=request.tail if request.HasField("tail") else None,
            follow=request.follow,
        )
        async with aclosing(self._jobs.logs(caller(), wish)) as batches:
            async for lines in batches:
                for start in range(0, len(lines), LINES_PER_MESSAGE):
                    piece = map(_line, lines[start : start + LINES_PER_MESSAGE])
                    await offer(context, pb.LogLines(lines=piece), self._patience)

    @streaming
    async def Points(self, request: pb.PointsRequest, context: Context) -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """What user code tells of itself, rank by rank."""
        wish = PointWish(
            job=JobId(request.job),
            attempt=request.attempt,
            ranks=frozenset(request.ranks),
            keys=frozenset(request.keys),
            most=checks.between(request.most or POINTS, 1, MAX_POINTS, "PointsRequest.most"),
            after={
                rank: checks.between(at, -1, checks.MAX_BYTES, "PointsRequest.after")
                for rank, at in request.after.items()
            },
            follow=request.follow,
        )
        async with aclosing(self._jobs.points(caller(), wish)) as ranks:
            async for found in ranks:
                for start in range(0, max(1, len(found.points)), POINTS_PER_MESSAGE):
                    piece = replace(found, points=found.points[start : start + POINTS_PER_MESSAGE])
                    await offer(context, wire.rank_points_to_wire(piece), self._patience)

    @translated
    async def Why(self, request: pb.WhyRequest, context: Context) -> pb.WhyResponse:
        """Why a job is where it is."""
        return wire.explanation_to_wire(await self._jobs.why(caller(), request.job))

    @streaming
    async def Events(self, request: pb.EventsRequest, context: Context) -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """What happened to a job, oldest first; with `follow` until it has ended."""
        after = checks.between(request.after, 0, checks.MAX_BYTES, "EventsRequest.after")
        wish = StoryWish(after=after, most=request.limit, follow=request.follow)
        async with aclosing(self._jobs.events(caller(), request.job, wish)) as pages:
            async for events in pages:
                await offer(context, pb.JobEvents(events=map(wire.job_event_to_wire, events)), self._patience)


def _submission(request: pb.SubmitRequest) -> Submission:
    if request.ByteSize() > MAX_SPEC:
        size, most = (round(each / 2**20, 1) for each in (request.ByteSize(), MAX_SPEC))
        raise InvalidJobError(
            f"the job is {size:g} MiB large; {most:g} MiB are the most. Put large files into the image"
        )
    if (size := len(request.document.encode())) > MAX_DOCUMENT:
        raise InvalidJobError(f"the document of the job has {size} bytes; {MAX_DOCUMENT} are the most")
    where = "SubmitRequest.idempotency_key"
    return Submission(
        spec=_named_by(request.document) if request.document else wire.job_spec_from_wire(request.spec),
        document=request.document,
        key=checks.plain(checks.text(request.idempotency_key, where), where),
        queue_anyway=request.queue_anyway,
        dry_run=request.dry_run,
    )


def _named_by(document: str) -> JobSpec:
    """A job of which no more is known than the name and project that its document gives it."""
    name, project = named_by(document)
    return JobSpec(name=name, project=project, roles=(Role(),))


def _submission_if_readable(request: pb.SubmitRequest) -> Submission | UnreadableSubmission:
    try:
        return _submission(request)
    except MusterError as error:
        return UnreadableSubmission(name=request.spec.name or "job", error=InvalidJobError(str(error)))


def _refusals(refused: Mapping[int, MusterError]) -> pb.SubmitManyResponse:
    return pb.SubmitManyResponse(
        refusals=[
            pb.JobRefusal(position=place, status=status_of(error).name, message=told(error))
            for place, error in refused.items()
        ]
    )


def _line(printed: PrintedLine) -> pb.LogLine:
    record = printed.record
    line = pb.LogLine(
        rank=printed.rank,
        attempt=printed.attempt,
        stream=record.stream,
        text=record.text,
        partial=record.partial,
    )
    line.time.FromNanoseconds(record.time_ns)
    return line
