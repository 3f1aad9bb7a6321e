"""Live: what one may look at, then its changes as they come, for pages that stay open."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Annotated, Any, NamedTuple

from fastapi import Header, Query
from starlette.requests import Request
from starlette.responses import Response

from console.alerts.alert_watch import AlertWatch, ViewedAlerts
from console.api.answers import StreamItem, stream
from console.api.asking import AsCaller, Doorkeeper
from console.api.mirrored.lists import NO_MIRROR
from console.api.mirrored.live_seats import LiveSeats
from console.api.mirrored.live_wishes import ALERTS, LiveWishes, live_wishes
from console.api.route import Route, Streamed
from console.mirror.follower import MirrorFollower
from console.mirror.viewing import LiveView, ViewerRights
from console.watched.follows import SharedFollows, ViewedFollow
from console.watched.wish import LONGEST_WISH, WatchWish
from muster.client.client import Client
from muster.domain.errors import NotSignedInError, UnavailableError
from muster.domain.feed import FeedBatch
from muster.domain.ids import JobId

LIVE_PACE = 0.25
"""Seconds between two rounds for one viewer; what changes meanwhile is told once."""
LONGEST_PLACE = 200
"""Characters of the id of an event."""

On = Annotated[
    Sequence[Annotated[str, Query(max_length=LONGEST_WISH * 20)]],
    Query(
        description="What is told: `jobs`, `job_rows` (what lists show of jobs), `nodes`, `projects`, `queue`, "
        "`alerts`, `job:ID`, `logs:ID`, `points:ID:KEY`; several with commas between them, or each as a parameter of "
        "its own. None: jobs."
    ),
]
LastPlace = Annotated[
    str,
    Header(
        alias="Last-Event-ID",
        max_length=LONGEST_PLACE,
        description="The id of the last event; browsers send it by themselves.",
    ),
]


class LiveSources(NamedTuple):
    """What live streams are told from; None: this console has it not."""

    follower: MirrorFollower | None
    follows: SharedFollows | None
    alerts: AlertWatch | None
    seats: LiveSeats


async def show_live(request: Request, client: AsCaller, on: On = (), last_seen: LastPlace = "") -> Response:
    """Tell of jobs, nodes, projects and the queue as they are, then of what changes; without an end.

    Each event has lists under the names of the parts, and under `jobs_gone` and the like the names of what is gone. One
    with `anew` says that what was told before does not count any more. `job:ID` tells the whole view of a job,
    `logs:ID` its newest lines and those that come, `points:ID:KEY` the numbers under a key, `alerts` what somebody
    should look at. The stream ends when the caller's rights change.
    """
    wishes = live_wishes(on)
    state = request.app.state
    doorkeeper: Doorkeeper = state.doorkeeper
    sources = LiveSources(state.follower, state.follows, state.alerts, state.seats)
    return await stream(request, _told(client, doorkeeper.token_of(request), sources, wishes, last_seen))


async def _told(
    client: Client, token: str, sources: LiveSources, wishes: LiveWishes, last_seen: str
) -> AsyncGenerator[StreamItem, None]:
    async with AsyncExitStack() as stack:
        stack.enter_context(sources.seats.seat(token))
        held = await stack.enter_async_context(aclosing(client.fleet.feed(())))
        await anext(held)  # raises unless the caller may look at something
        follower = sources.follower
        if follower is None or sources.follows is None or sources.alerts is None:
            raise UnavailableError(NO_MIRROR)
        myself = await client.accounts.myself()
        seen = ViewerRights.of(myself)
        view = LiveView(seen, wishes.parts, last_seen, brief_jobs=wishes.brief_jobs)
        heard = stack.enter_context(follower.looking())
        told: list[tuple[str, ViewedFollow | ViewedAlerts]] = []
        if wishes.alerts:
            told.append((ALERTS, stack.enter_context(sources.alerts.viewing(myself.grants, heard))))
        told += await _viewed(client, sources.follows, wishes.jobs, heard, stack)
        rights = asyncio.create_task(_last(held, client, seen), name="rights of a viewer")
        try:
            while True:
                if (wishes.parts or wishes.brief_jobs) and (mirror := follower.current) is not None:
                    for event in view.news(mirror):
                        yield StreamItem(value=event.data, name="changes", id=event.place)
                for name, each in told:
                    if (news := each.news()) is not None:
                        yield StreamItem(value=news, name=name)
                await _either(rights, asyncio.sleep(LIVE_PACE))
                await _either(rights, heard.wait())
                heard.clear()
        finally:
            rights.cancel()
            await asyncio.wait([rights])


async def _viewed(
    client: Client, follows: SharedFollows, wishes: Sequence[WatchWish], heard: asyncio.Event, stack: AsyncExitStack
) -> list[tuple[str, ViewedFollow]]:
    """What is told of single jobs; raises what the coordinator says to who may not look at one of them."""
    views = {name: await client.jobs.get(name) for name in dict.fromkeys(wish.job for wish in wishes)}
    found = []
    for wish in wishes:
        job = views[wish.job]
        meant = wish._replace(job=JobId(job.id))  # of a name there may be a newer one later
        viewing = follows.viewing(meant, job.spec.size, heard)
        found.append((str(wish.part), await stack.enter_async_context(viewing)))
    return found


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
        example="-N -H 'Accept: text/event-stream' '{url}/v1/live?on=jobs,queue'",
    ),
)
