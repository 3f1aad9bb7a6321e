"""Alerts, as far as the caller may see them."""

from contextlib import aclosing
from typing import Annotated

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from console.alerts.alert import Alert
from console.alerts.alert_watch import AlertWatch
from console.api.answers import many
from console.api.asking import AsCaller
from console.api.mirrored.lists import NO_MIRROR
from console.api.route import Listed, Route
from muster.domain.errors import UnavailableError

Ended = Annotated[bool, Query(description="Also those that have ended, the newest 200.")]


async def list_alerts(request: Request, client: AsCaller, ended: Ended = False) -> Response:
    """Tell what somebody should look at: ranks that differ, nodes, GPUs, the queue, deliveries; the newest first.

    People of a project see what is about its jobs; nodes, queues and the coordinator are for whoever sees any project.
    """
    async with aclosing(client.fleet.feed(())) as held:
        await anext(held)  # raises unless the caller may look at something
    watch: AlertWatch | None = request.app.state.alerts
    if watch is None:
        raise UnavailableError(NO_MIRROR)
    return many(watch.book.alerts((await client.accounts.myself()).grants, ended=ended))


ALERT_ROUTES = (
    Route(
        verb="GET",
        path="/v1/alerts",
        operation="feed.follow",
        handler=list_alerts,
        answer=Listed(Alert),
    ),
)
