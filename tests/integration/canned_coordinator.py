"""A coordinator that answers from values: what clients and the command line are tried against.

It is served by threads, so that tests that run an event loop of their own can use it too.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from threading import Condition, Event
from typing import Any, NoReturn, TypeVar

import grpc

from muster import wire
from muster.domain.event import FleetEvent, JobEvent, NodeEvent
from muster.domain.fleet.node import Cordon, NodeView
from muster.domain.ids import JobId
from muster.domain.jobs.explanation import Explanation
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.placing.taint import NodeTaint
from muster.domain.jobs.view import JobView, LogLine
from muster.domain.telemetry.coordinator_figures import CoordinatorFigures
from muster.domain.telemetry.point import RankPoints
from muster.domain.telemetry.sample import NodeSample
from muster.rpc.channel import SERVER_OPTIONS
from muster.rpc.v1 import fleet_pb2, jobs_pb2, nodes_pb2, telemetry_pb2
from muster.rpc.v1.fleet_pb2_grpc import FleetServiceServicer, add_FleetServiceServicer_to_server
from muster.rpc.v1.jobs_pb2_grpc import JobServiceServicer, add_JobServiceServicer_to_server
from muster.rpc.v1.nodes_pb2_grpc import (
    NodeServiceServicer,
    WindowServiceServicer,
    add_NodeServiceServicer_to_server,
    add_WindowServiceServicer_to_server,
)
from muster.rpc.v1.telemetry_pb2_grpc import TelemetryServiceServicer, add_TelemetryServiceServicer_to_server
from muster.wire.nodes import taint_from_wire
from muster.wire.telemetry.coordinator_figures import coordinator_figures_to_wire

Broken = grpc.StatusCode
"""A step of a script: the call ends with this status."""


class Pause(Enum):
    """A step of a script: nothing more is sent for a while."""

    UNTIL_STOP = "until somebody orders the job to stop"
    FOR_EVER = "until the client leaves"


CORDONED_AT = datetime(2026, 5, 1, 12, tzinfo=UTC)

_LIMIT = 60.0
_FIGURES = CoordinatorFigures(began=datetime(2026, 1, 1, tzinfo=UTC))
_Item = TypeVar("_Item", JobView, LogLine, JobEvent, NodeEvent, FleetEvent, RankPoints)


@dataclass(kw_only=True)
class Canned:
    """What the coordinator says, and what it was asked."""

    jobs: list[JobView] = field(default_factory=list)
    """Newest first."""
    nodes: list[NodeView] = field(default_factory=list)
    explanation: Explanation | None = None
    watches: list[Sequence[JobView | Broken | Pause]] = field(default_factory=list)
    """What each subscription after the other is sent; a subscription without a script gets the job as it is."""
    logs: list[Sequence[LogLine | Broken | Pause]] = field(default_factory=list)
    points: list[Sequence[RankPoints | Broken | Pause]] = field(default_factory=list)
    samples: list[Sequence[NodeSample]] = field(default_factory=list)
    """The batches of the next subscription to samples."""
    figures: CoordinatorFigures = _FIGURES
    """What the coordinator says of itself."""
    events: list[Sequence[JobEvent | Broken | Pause]] = field(default_factory=list)
    node_events: list[Sequence[NodeEvent | Broken | Pause]] = field(default_factory=list)
    fleet_events: list[Sequence[FleetEvent | Broken | Pause]] = field(default_factory=list)
    refusals: list[tuple[Broken, str]] = field(default_factory=list)
    """How the next questions end, before they are answered."""
    refused: dict[int, tuple[Broken, str]] = field(default_factory=dict)
    """Which of many jobs are refused, by place, if there are so many."""
    asked: list[Any] = field(default_factory=list)
    """Every request, in order."""
    heard: Condition = field(default_factory=Condition)
    """Notified of every request."""
    stop_ordered: Event = field(default_factory=Event)
    page: int = 1000

    def asked_for(self, kind: type) -> list[Any]:
        """The requests of one kind."""
        return [request for request in self.asked if isinstance(request, kind)]


@contextmanager
def serving(canned: Canned) -> Iterator[str]:
    """The address where `canned` answers."""
    with ThreadPoolExecutor(max_workers=4) as threads:
        server = grpc.server(threads, options=SERVER_OPTIONS)
        add_JobServiceServicer_to_server(_Jobs(canned), server)
        add_NodeServiceServicer_to_server(_Nodes(canned), server)
        add_WindowServiceServicer_to_server(_Windows(canned), server)
        add_FleetServiceServicer_to_server(_Fleet(canned), server)
        add_TelemetryServiceServicer_to_server(_Telemetry(canned), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(grace=None).wait()


class _Jobs(JobServiceServicer):
    def __init__(self, canned: Canned) -> None:
        self._canned = canned

    def Submit(self, request: jobs_pb2.SubmitRequest, context: grpc.ServicerContext) -> jobs_pb2.SubmitResponse:
        _hear(self._canned, request, context)
        job = JobView(
            id=JobId("" if request.dry_run else "new1"),
            spec=wire.job_spec_from_wire(request.spec),
            phase=JobPhase.QUEUED,
            summary="queued",
            submitted_at=datetime(2026, 11, 21, 9, tzinfo=UTC),
        )
        if not request.dry_run and not any(known.id == job.id for known in self._canned.jobs):
            self._canned.jobs.insert(0, job)
        return jobs_pb2.SubmitResponse(job=wire.job_to_wire(job))

    def SubmitMany(
        self, request: jobs_pb2.SubmitManyRequest, context: grpc.ServicerContext
    ) -> jobs_pb2.SubmitManyResponse:
        _hear(self._canned, request, context)
        if self._canned.refused.keys() & set(range(len(request.jobs))):
            refusals = [
                jobs_pb2.JobRefusal(position=place, status=status.name, message=message)
                for place, (status, message) in self._canned.refused.items()
            ]
            return jobs_pb2.SubmitManyResponse(refusals=refusals)
        ids = ["" if job.dry_run else f"new{place}" for place, job in enumerate(request.jobs, 1)]
        return jobs_pb2.SubmitManyResponse(ids=ids)

    def Get(self, request: jobs_pb2.GetJobRequest, context: grpc.ServicerContext) -> jobs_pb2.Job:
        _hear(self._canned, request, context)
        return wire.job_to_wire(self._job(request.job, context))

    def List(self, request: jobs_pb2.ListJobsRequest, context: grpc.ServicerContext) -> jobs_pb2.ListJobsResponse:
        _hear(self._canned, request, context)
        fitting = [
            job
            for job in self._canned.jobs
            if (not request.phases or job.phase in request.phases)
            and request.name_contains in job.spec.name
            and (not request.owners or job.owner in request.owners)
            and (not request.projects or job.spec.project in request.projects)
            and dict(request.labels).items() <= job.spec.labels.items()
        ]
        start = int(request.page_token or 0)
        end = start + min(request.page_size, self._canned.page)
        page = [wire.job_to_wire(replace(job, attempts=())) for job in fitting[start:end]]
        return jobs_pb2.ListJobsResponse(jobs=page, next_page_token=str(end) if end < len(fitting) else "")

    def Stop(self, request: jobs_pb2.StopRequest, context: grpc.ServicerContext) -> jobs_pb2.StopResponse:
        _hear(self._canned, request, context)
        job = self._job(request.job, context)
        self._canned.stop_ordered.set()
        return jobs_pb2.StopResponse(job=wire.job_to_wire(replace(job, phase=JobPhase.STOPPING)))

    def Hold(self, request: jobs_pb2.HoldRequest, context: grpc.ServicerContext) -> jobs_pb2.HoldResponse:
        _hear(self._canned, request, context)
        job = self._job(request.job, context)
        return jobs_pb2.HoldResponse(job=wire.job_to_wire(replace(job, phase=JobPhase.WAITING)))

    def Unhold(self, request: jobs_pb2.UnholdRequest, context: grpc.ServicerContext) -> jobs_pb2.UnholdResponse:
        _hear(self._canned, request, context)
        job = self._job(request.job, context)
        return jobs_pb2.UnholdResponse(job=wire.job_to_wire(replace(job, phase=JobPhase.QUEUED)))

    def Suspend(self, request: jobs_pb2.SuspendRequest, context: grpc.ServicerContext) -> jobs_pb2.SuspendResponse:
        _hear(self._canned, request, context)
        job = self._job(request.job, context)
        return jobs_pb2.SuspendResponse(job=wire.job_to_wire(replace(job, phase=JobPhase.STOPPING)))

    def Resume(self, request: jobs_pb2.ResumeRequest, context: grpc.ServicerContext) -> jobs_pb2.ResumeResponse:
        _hear(self._canned, request, context)
        job = self._job(request.job, context)
        return jobs_pb2.ResumeResponse(job=wire.job_to_wire(replace(job, phase=JobPhase.QUEUED)))

    def Change(self, request: jobs_pb2.ChangeRequest, context: grpc.ServicerContext) -> jobs_pb2.ChangeResponse:
        _hear(self._canned, request, context)
        job = self._job(request.job, context)
        spec = wire.job_change_from_wire(request).applied(job.spec)
        return jobs_pb2.ChangeResponse(job=wire.job_to_wire(replace(job, spec=spec)))

    def Delete(self, request: jobs_pb2.DeleteRequest, context: grpc.ServicerContext) -> jobs_pb2.DeleteResponse:
        _hear(self._canned, request, context)
        job = self._job(request.job, context)
        if not job.phase.ended and not request.force:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"{job.id} is {job.phase}; stop it first")
        self._canned.jobs.remove(job)
        return jobs_pb2.DeleteResponse(job=job.id)

    def Watch(self, request: jobs_pb2.WatchRequest, context: grpc.ServicerContext) -> Iterator[jobs_pb2.Job]:
        _hear(self._canned, request, context)
        script = self._canned.watches.pop(0) if self._canned.watches else [self._job(request.job, context)]
        for item in _told(self._canned, script, context):
            self._canned.jobs = [item if job.id == item.id else job for job in self._canned.jobs]
            yield wire.job_to_wire(item)

    def Logs(self, request: jobs_pb2.LogsRequest, context: grpc.ServicerContext) -> Iterator[jobs_pb2.LogLines]:
        # Copied: the client changes its request before it asks again.
        asked = jobs_pb2.LogsRequest.FromString(request.SerializeToString())
        _hear(self._canned, asked, context)
        script = self._canned.logs.pop(0) if self._canned.logs else ()
        for item in _told(self._canned, script, context):
            if not request.ranks or item.rank in request.ranks:
                yield jobs_pb2.LogLines(lines=[wire.log_line_to_wire(item)])

    def Points(self, request: jobs_pb2.PointsRequest, context: grpc.ServicerContext) -> Iterator[jobs_pb2.RankPoints]:
        # Copied: the client changes its request before it asks again.
        asked = jobs_pb2.PointsRequest.FromString(request.SerializeToString())
        _hear(self._canned, asked, context)
        script = self._canned.points.pop(0) if self._canned.points else ()
        for item in _told(self._canned, script, context):
            if not request.ranks or item.rank in request.ranks:
                yield wire.rank_points_to_wire(item)

    def Events(self, request: jobs_pb2.EventsRequest, context: grpc.ServicerContext) -> Iterator[jobs_pb2.JobEvents]:
        # Copied: the client changes its request before it asks again.
        asked = jobs_pb2.EventsRequest.FromString(request.SerializeToString())
        _hear(self._canned, asked, context)
        for item in _told(self._canned, self._canned.events.pop(0), context):
            yield jobs_pb2.JobEvents(events=[wire.job_event_to_wire(item)])

    def Why(self, request: jobs_pb2.WhyRequest, context: grpc.ServicerContext) -> jobs_pb2.WhyResponse:
        _hear(self._canned, request, context)
        self._job(request.job, context)
        assert self._canned.explanation is not None
        return wire.explanation_to_wire(self._canned.explanation)

    def _job(self, wanted: str, context: grpc.ServicerContext) -> JobView:
        for job in self._canned.jobs:
            if wanted in {job.id, job.spec.name}:
                return job
        return _abort(context, grpc.StatusCode.NOT_FOUND, f"there is no job {wanted}")


class _Nodes(NodeServiceServicer):
    def __init__(self, canned: Canned) -> None:
        self._canned = canned

    def List(self, request: nodes_pb2.ListNodesRequest, context: grpc.ServicerContext) -> nodes_pb2.ListNodesResponse:
        _hear(self._canned, request, context)
        start = int(request.page_token or 0)
        end = start + min(request.page_size, self._canned.page)
        nodes = self._canned.nodes
        return nodes_pb2.ListNodesResponse(
            nodes=map(wire.node_to_wire, nodes[start:end]),
            next_page_token=str(end) if end < len(nodes) else "",
        )

    def Get(self, request: nodes_pb2.GetNodeRequest, context: grpc.ServicerContext) -> nodes_pb2.Node:
        _hear(self._canned, request, context)
        for node in self._canned.nodes:
            if node.name == request.node:
                return wire.node_to_wire(node)
        return _abort(context, grpc.StatusCode.NOT_FOUND, f"there is no node {request.node}")

    def Remove(
        self, request: nodes_pb2.RemoveNodeRequest, context: grpc.ServicerContext
    ) -> nodes_pb2.RemoveNodeResponse:
        _hear(self._canned, request, context)
        (gone,) = (node for node in self._canned.nodes if node.name == request.node)
        self._canned.nodes.remove(gone)
        return nodes_pb2.RemoveNodeResponse(node=wire.node_to_wire(gone))

    def Cordon(self, request: nodes_pb2.CordonNodeRequest, context: grpc.ServicerContext) -> nodes_pb2.Node:
        """What runs there has gone by the next look."""
        _hear(self._canned, request, context)
        (known,) = (node for node in self._canned.nodes if node.name == request.node)
        cordoned = replace(known, cordon=Cordon(since=CORDONED_AT, reason=request.reason))
        self._canned.nodes[self._canned.nodes.index(known)] = replace(cordoned, executions=())
        return wire.node_to_wire(cordoned)

    def Label(self, request: nodes_pb2.LabelNodeRequest, context: grpc.ServicerContext) -> nodes_pb2.LabelNodeResponse:
        _hear(self._canned, request, context)
        return _abort(context, grpc.StatusCode.UNIMPLEMENTED, "nobody labels these nodes")

    def Taint(self, request: nodes_pb2.TaintNodeRequest, context: grpc.ServicerContext) -> nodes_pb2.Node:
        """What is taken away is not looked at, as these nodes have no taints before."""
        _hear(self._canned, request, context)
        (known,) = (node for node in self._canned.nodes if node.name == request.node)
        after = request.after.ToTimedelta()
        given = tuple(NodeTaint(taint=taint_from_wire(each), since=CORDONED_AT, after=after) for each in request.given)
        self._canned.nodes[self._canned.nodes.index(known)] = replace(known, taints=given)
        return wire.node_to_wire(replace(known, taints=given))

    def Uncordon(self, request: nodes_pb2.UncordonNodeRequest, context: grpc.ServicerContext) -> nodes_pb2.Node:
        _hear(self._canned, request, context)
        (known,) = (node for node in self._canned.nodes if node.name == request.node)
        self._canned.nodes[self._canned.nodes.index(known)] = replace(known, cordon=None)
        return wire.node_to_wire(replace(known, cordon=None))

    def Events(
        self, request: nodes_pb2.NodeEventsRequest, context: grpc.ServicerContext
    ) -> Iterator[nodes_pb2.NodeEvents]:
        _hear(self._canned, request, context)
        for event in _told(self._canned, self._canned.node_events.pop(0), context):
            yield nodes_pb2.NodeEvents(events=[wire.node_event_to_wire(event)])


class _Windows(WindowServiceServicer):
    def __init__(self, canned: Canned) -> None:
        self._canned = canned
        self._windows: dict[str, nodes_pb2.Window] = {}

    def List(
        self, request: nodes_pb2.ListWindowsRequest, context: grpc.ServicerContext
    ) -> nodes_pb2.ListWindowsResponse:
        _hear(self._canned, request, context)
        return nodes_pb2.ListWindowsResponse(windows=self._windows.values())

    def Put(self, request: nodes_pb2.PutWindowRequest, context: grpc.ServicerContext) -> nodes_pb2.Window:
        _hear(self._canned, request, context)
        self._windows[request.window.name] = request.window
        return request.window

    def Remove(self, request: nodes_pb2.RemoveWindowRequest, context: grpc.ServicerContext) -> nodes_pb2.Window:
        _hear(self._canned, request, context)
        if request.name not in self._windows:
            return _abort(context, grpc.StatusCode.NOT_FOUND, f"there is no window {request.name}")
        return self._windows.pop(request.name)


class _Telemetry(TelemetryServiceServicer):
    def __init__(self, canned: Canned) -> None:
        self._canned = canned

    def OfJob(
        self, request: telemetry_pb2.JobSamplesRequest, context: grpc.ServicerContext
    ) -> Iterator[telemetry_pb2.TelemetryBatch]:
        _hear(self._canned, request, context)
        return self._batches()

    def OfNodes(
        self, request: telemetry_pb2.NodeSamplesRequest, context: grpc.ServicerContext
    ) -> Iterator[telemetry_pb2.TelemetryBatch]:
        _hear(self._canned, request, context)
        return self._batches()

    def _batches(self) -> Iterator[telemetry_pb2.TelemetryBatch]:
        for batch in self._canned.samples:
            yield telemetry_pb2.TelemetryBatch(nodes=map(wire.node_sample_to_wire, batch))


class _Fleet(FleetServiceServicer):
    def __init__(self, canned: Canned) -> None:
        self._canned = canned

    def Events(
        self, request: fleet_pb2.FleetEventsRequest, context: grpc.ServicerContext
    ) -> Iterator[fleet_pb2.FleetEvents]:
        _hear(self._canned, request, context)
        for event in _told(self._canned, self._canned.fleet_events.pop(0), context):
            yield fleet_pb2.FleetEvents(events=[wire.fleet_event_to_wire(event)])

    def Figures(self, request: object, context: grpc.ServicerContext) -> fleet_pb2.CoordinatorFigures:
        _hear(self._canned, request, context)
        return coordinator_figures_to_wire(self._canned.figures)


def _told(
    canned: Canned,
    script: Sequence[_Item | Broken | Pause],
    context: grpc.ServicerContext,
) -> Iterator[_Item]:
    """The values of a script; its other items happen."""
    gone = Event()
    context.add_callback(gone.set)
    for item in script:
        if isinstance(item, Broken):
            context.abort(item, "as the script says")
        elif isinstance(item, Pause):
            (gone if item is Pause.FOR_EVER else canned.stop_ordered).wait(_LIMIT)
        else:
            yield item


def _hear(canned: Canned, request: object, context: grpc.ServicerContext) -> None:
    with canned.heard:
        canned.asked.append(request)
        canned.heard.notify_all()
    if canned.refusals:
        status, details = canned.refusals.pop(0)
        _abort(context, status, details)


def _abort(context: grpc.ServicerContext, status: grpc.StatusCode, details: str) -> NoReturn:
    context.abort(status, details)
    raise AssertionError("abort raises")
