"""Live: what one may look at, then its changes as they come, for pages that stay open."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import Header, Query
from starlette.requests import Request
from starlette.responses import Response

from console.api.answers import StreamItem, stream
from console.api.asking import AsCaller
from console.api.mirrored.lists import NO_MIRROR
from console.api.route import Route, Streamed
from console.mirror.follower import MirrorFollower
from console.mirror.viewing import LiveView, ViewerRights
from muster.client.client import Client
from muster.domain.errors import NotSignedInError, UnavailableError
from muster.domain.feed import FeedBatch, FeedPart

LIVE_PACE = 0.25
"""Seconds between two rounds for one viewer; what changes meanwhile is told once."""
LONGEST_PLACE = 200
"""Characters of the id of an event."""

On = Annotated[Sequence[FeedPart], Query(description="What is told; none: jobs alone.")]
LastPlace = Annotated[
    str,
    Header(
        alias="Last-Event-ID",
        max_length=LONGEST_PLACE,
        description="The id of the last event; browsers send it by themselves.",
    ),
]


async def show_live(request: Request, client: AsCaller, on: On = (), last_seen: LastPlace = "") -> Response:
    """Tell of jobs, nodes, projects and the queue as they are, then of what changes; without an end.

    Each event has lists under the names of the parts, and under `jobs_gone` and the like the names of what is gone. One
    with `anew` says that what was told before does not count any more. The stream ends when the caller's rights change.
    """
    return await stream(request, _told(client, request.app.state.follower, tuple(on) or (FeedPart.JOBS,), last_seen))


async def _told(
    client: Client, follower: MirrorFollower | None, parts: Sequence[FeedPart], last_seen: str
) -> AsyncGenerator[StreamItem, None]:
    async with aclosing(client.fleet.feed(())) as held:
        await anext(held)  # raises unless the caller may look at something
        if follower is None:
            raise UnavailableError(NO_MIRROR)
        seen = ViewerRights.of(await client.accounts.myself())
        view = LiveView(seen, parts, last_seen)
        rights = asyncio.create_task(_last(held, client, seen), name="rights of a viewer")
        try:
            with follower.looking() as heard:
                while True:
                    if (mirror := follower.current) is not None:
                        for event in view.news(mirror):
                            yield StreamItem(value=event.data, name="changes", id=event.place)
                    await _either(rights, asyncio.sleep(LIVE_PACE))
                    await _either(rights, heard.wait())
                    heard.clear()
        finally:
            rights.cancel()
            await asyncio.wait([rights])


async def _last(held: AsyncGenerator[FeedBatch, None], client: Client, seen: ViewerRights) -> None:
    """Wait for as long as the caller's rights stay as they are; raises what ends that."""
    async for _ in held:  # the coordinator was away, and may have changed them meanwhile
        if ViewerRights.of(await client.accounts.myself()) != seen:
            raise NotSignedInError("what you may look at has changed; begin anew")


async def _either(rights: "asyncio.Task[None]", something: Coroutine[Any, Any, object]) -> None:
    """Wait for something; raises as soon as the caller's rights have changed."""
    waiting = asyncio.create_task(something, name="something of a viewer")
    try:
        await asyncio.wait([rights, waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if rights.done():
        rights.result()
        raise UnavailableError("the coordinator says nothing of the caller's rights any more")


LIVE_ROUTES = (
    Route(
        verb="GET",
        path="/v1/live",
        operation="feed.follow",
        handler=show_live,
        answer=Streamed(dict),
        example="-N -H 'Accept: text/event-stream' '{url}/v1/live?on=jobs&on=queue'",
    ),
)
