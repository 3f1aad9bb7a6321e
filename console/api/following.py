"""What jobs and nodes tell while they go on: events, logs, points and samples, as lists and as streams."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated

from fastapi import Header, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from console.api.answers import EVENTS_TYPE, LINES_TYPE, TEXT_TYPE, StreamItem, begun, many, stream
from console.api.asking import AsCaller
from console.api.reading import LARGEST_COUNT, LARGEST_EVENT, AttemptNumber, Ranks, Time
from console.api.route import Listed, Route, Streamed
from muster.domain.errors import InvalidJobError, MusterError
from muster.domain.event import FleetEvent, JobEvent, NodeEvent, NumberedEvent
from muster.domain.ids import NodeId
from muster.domain.jobs.view import JobView, LogLine
from muster.domain.notifications.cloud_event import CloudEvent, cloud_event
from muster.domain.notifications.happening import EventPlace, Happening
from muster.domain.telemetry.point import MAX_POINTS, POINTS, RankPoints
from muster.domain.telemetry.sample import NodeSample, Sample

Follow = Annotated[bool, Query(description="Go on with what comes, as server-sent events or lines of JSON.")]
After = Annotated[int, Query(ge=0, le=LARGEST_EVENT, description="The number of the last event that is known.")]
LastSeen = Annotated[
    str, Header(alias="Last-Event-ID", max_length=200, description="As `after`; browsers send it by themselves.")
]

CLOUD_EVENTS_AT_ONCE = 500
"""CloudEvents of one list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleOfNode:
    """What a node used in the last seconds."""

    node: NodeId
    sample: Sample


async def list_job_events(
    *, request: Request, client: AsCaller, job: str, follow: Follow = False, after: After = 0, last_seen: LastSeen = ""
) -> Response:
    """Tell what happened to a job, oldest first; a stream of it ends with the job."""
    seen = _seen(after, last_seen)
    if not follow:
        return many([event async for event in client.jobs.events(job, after=seen)])
    view = await client.jobs.get(job)
    return await stream(request, _events(client.jobs.events(view, after=seen, follow=True)))


async def list_node_events(
    *, request: Request, client: AsCaller, node: str, follow: Follow = False, after: After = 0, last_seen: LastSeen = ""
) -> Response:
    """Tell what happened to a node, oldest first; a stream of it has no end."""
    seen = _seen(after, last_seen)
    if not follow:
        return many([event async for event in client.nodes.events(node, after=seen)])
    await client.nodes.get(node)
    return await stream(request, _events(client.nodes.events(node, after=seen, follow=True)))


async def list_fleet_events(client: AsCaller, after: After = 0) -> Response:
    """Tell what happened to the fleet as a whole, oldest first."""
    return many([event async for event in client.fleet.events(after=after)])


async def follow_cloud_events(
    *,
    request: Request,
    client: AsCaller,
    follow: Follow = False,
    after: Annotated[
        str, Query(max_length=40, description="The id of the last event of such a stream, or `next`.")
    ] = "",
    last_seen: LastSeen = "",
) -> Response:
    """Tell what happens to jobs of one's projects, nodes and the fleet, as CloudEvents 1.0.

    A stream without `after` begins with what happens from now on; a list without it with the oldest that is stored. As
    server-sent events each has the place of its reader as its id; `next` of a list is such a place.
    """
    said = last_seen or after
    place = EventPlace.parse(said) if said else None
    if said and place is None:
        raise InvalidJobError(f"after={said[:40]} is no place like 120-7, the id of an event of such a stream")
    if follow:
        return await stream(request, _cloud_events(client.events.all(after=place, follow=True)))
    found: list[Happening] = []
    async with aclosing(client.events.all(after=place)) as told:
        async for each in told:
            if len(found) == CLOUD_EVENTS_AT_ONCE:
                return many(map(cloud_event, found), str(found[-1].place))
            found.append(each)
    return many(map(cloud_event, found))


async def read_job_logs(  # noqa: PLR0913 - one for each wish
    *,
    request: Request,
    client: AsCaller,
    job: str,
    rank: Ranks = (),
    attempt: AttemptNumber = None,
    since: Time = None,
    tail: Annotated[
        int | None, Query(ge=1, le=LARGEST_COUNT, description="The last so many lines of each rank.")
    ] = None,
    follow: Follow = False,
) -> Response:
    """Read what the ranks of a job printed, merged in the order of time.

    It is text, unless the caller accepts lines of JSON (`application/x-ndjson`) or server-sent events.
    """
    view = await client.jobs.get(job)
    lines = client.jobs.logs(view, ranks=rank, attempt=attempt, since=since, tail=tail, follow=follow)
    accepted = request.headers.get("accept", "")
    if LINES_TYPE in accepted or EVENTS_TYPE in accepted:
        return await stream(request, _lines(lines))
    return StreamingResponse(_text(await begun(lines), view), media_type=TEXT_TYPE)


async def read_job_points(  # noqa: PLR0913 - one for each wish
    *,
    request: Request,
    client: AsCaller,
    job: str,
    rank: Ranks = (),
    key: Annotated[Sequence[str], Query(description="Points that have one of these; none: all.")] = (),
    attempt: AttemptNumber = None,
    most: Annotated[int, Query(ge=1, le=MAX_POINTS, description="Points of a rank; of more, so many evenly.")] = POINTS,
    follow: Follow = False,
) -> Response:
    """Read the numbers that the ranks of a job have printed, an item for each rank; a stream goes on with new ones."""
    if not follow:
        return many(await client.metrics.read(job, ranks=rank, keys=key, most=most, attempt=attempt))
    view = await client.jobs.get(job)
    points = client.metrics.follow(view, ranks=rank, keys=key, most=most, attempt=attempt)
    return await stream(request, _points(points))


async def read_job_samples(request: Request, client: AsCaller, job: str, follow: Follow = False) -> Response:
    """Read what a job uses at the moment, an item for each of its nodes; a stream goes on with new samples."""
    if not follow:
        return many(map(_of_node, await client.telemetry.of_job(job)))
    view = await client.jobs.get(job)
    return await stream(request, _samples(client.telemetry.follow_job(view)))


async def read_node_samples(
    request: Request,
    client: AsCaller,
    node: Annotated[Sequence[str], Query(description="Nodes; none: all.")] = (),
    follow: Follow = False,
) -> Response:
    """Read what nodes use at the moment, an item for each; a stream goes on with new samples."""
    now = await client.telemetry.of_nodes(node)
    if not follow:
        return many(map(_of_node, now))
    return await stream(request, _samples(client.telemetry.follow_nodes(node)))


def _seen(after: int, last_seen: str) -> int:
    """The number of the last event that is known; a reader that comes back says it in a header."""
    return min(int(last_seen), LARGEST_EVENT) if last_seen.isdecimal() else after


async def _events(told: AsyncGenerator[NumberedEvent, None]) -> AsyncGenerator[StreamItem, None]:
    async with aclosing(told):
        async for event in told:
            yield StreamItem(value=event, name="event", id=str(event.number))


async def _cloud_events(told: AsyncGenerator[Happening, None]) -> AsyncGenerator[StreamItem, None]:
    async with aclosing(told):
        async for each in told:
            yield StreamItem(value=cloud_event(each), name="cloudevent", id=str(each.place))


async def _lines(lines: AsyncGenerator[LogLine, None]) -> AsyncGenerator[StreamItem, None]:
    async with aclosing(lines):
        async for line in lines:
            yield StreamItem(value=line, name="log")


async def _points(found: AsyncGenerator[RankPoints, None]) -> AsyncGenerator[StreamItem, None]:
    async with aclosing(found):
        async for each in found:
            yield StreamItem(value=each, name="points")


async def _samples(batches: AsyncGenerator[tuple[NodeSample, ...], None]) -> AsyncGenerator[StreamItem, None]:
    async with aclosing(batches):
        async for batch in batches:
            for each in batch:
                yield StreamItem(value=_of_node(each), name="sample")


async def _text(lines: AsyncGenerator[LogLine, None], job: JobView) -> AsyncGenerator[bytes, None]:
    """The lines, each with its rank before it where there are several."""
    several = job.spec.size > 1
    unfinished: tuple[int, str] | None = None
    try:
        async with aclosing(lines):
            async for line in lines:
                of = (line.rank, line.stream)
                lead = b"\n" if unfinished is not None and unfinished != of else b""
                head = f"[{line.rank}] ".encode() if several and unfinished != of else b""
                unfinished = of if line.partial else None
                yield lead + head + line.text + (b"" if line.partial else b"\n")
    except MusterError as error:  # the status was sent long ago
        yield f"\n[muster] {error}\n".encode()


def _of_node(found: NodeSample) -> SampleOfNode:
    return SampleOfNode(node=found.node, sample=found.sample)


FOLLOWING_ROUTES = (
    Route(
        verb="GET",
        path="/v1/cloudevents",
        operation="events.list",
        handler=follow_cloud_events,
        answer=Streamed(CloudEvent),
        example="-N '{url}/v1/cloudevents?follow=true'",
    ),
    Route(
        verb="GET",
        path="/v1/jobs/{job}/events",
        operation="jobs.events",
        handler=list_job_events,
        answer=Streamed(JobEvent),
        example="-N -H 'Accept: text/event-stream' '{url}/v1/jobs/{job}/events?follow=true'",
    ),
    Route(
        verb="GET",
        path="/v1/jobs/{job}/logs",
        operation="jobs.logs",
        handler=read_job_logs,
        answer=Streamed(LogLine, text=True),
        example="-N '{url}/v1/jobs/{job}/logs?follow=true'",
    ),
    Route(
        verb="GET",
        path="/v1/jobs/{job}/points",
        operation="jobs.points",
        handler=read_job_points,
        answer=Streamed(RankPoints),
        example="'{url}/v1/jobs/{job}/points?key=loss'",
    ),
    Route(
        verb="GET",
        path="/v1/jobs/{job}/samples",
        operation="jobs.samples",
        handler=read_job_samples,
        answer=Streamed(SampleOfNode),
    ),
    Route(
        verb="GET",
        path="/v1/samples",
        operation="nodes.samples",
        handler=read_node_samples,
        answer=Streamed(SampleOfNode),
    ),
    Route(
        verb="GET",
        path="/v1/nodes/{node}/events",
        operation="nodes.events",
        handler=list_node_events,
        answer=Streamed(NodeEvent),
    ),
    Route(
        verb="GET",
        path="/v1/events",
        operation="fleet.events",
        handler=list_fleet_events,
        answer=Listed(FleetEvent),
    ),
)
