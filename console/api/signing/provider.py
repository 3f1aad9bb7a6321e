"""Signing in through the organisation's identity provider, over HTTP: the way there, and the way back."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from console.api.asking import Doorkeeper
from console.api.route import Route
from muster.domain.errors import PermissionDeniedError
from muster.domain.fleet.login import WAY_BACK

LONGEST_SENT_BACK = 4096
"""Characters of what the provider sends a person back with."""

_Said = Annotated[str, Query(max_length=LONGEST_SENT_BACK)]


async def begin_login(request: Request) -> Response:
    """Send a browser to the identity provider of the organisation, to sign in there."""
    doorkeeper: Doorkeeper = request.app.state.doorkeeper
    return RedirectResponse(await doorkeeper.begin_login(request, WAY_BACK), HTTPStatus.SEE_OTHER)


async def complete_login(request: Request, state: _Said = "", code: _Said = "", error: _Said = "") -> Response:
    """Take a browser back from the identity provider; the answer sets the cookie of a session and leads on."""
    doorkeeper: Doorkeeper = request.app.state.doorkeeper
    if error or not code:
        doorkeeper.forget_login(request)
        raise PermissionDeniedError(f"the identity provider has let nobody in: {error or 'it gives no code'}")
    await doorkeeper.complete_login(request, state, code)
    return RedirectResponse("/", HTTPStatus.SEE_OTHER)


LOGIN_ROUTES = (
    Route(
        verb="GET",
        path="/v1/login",
        operation="console.login",
        handler=begin_login,
        answer=None,
        status=HTTPStatus.SEE_OTHER,
    ),
    Route(
        verb="GET",
        path=WAY_BACK,
        operation="console.login",
        handler=complete_login,
        answer=None,
        status=HTTPStatus.SEE_OTHER,
    ),
)
"""What a browser asks on its way to the identity provider and back."""
