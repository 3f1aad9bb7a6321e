"""Sessions over HTTP: begun with a token, or with the code of `muster open`, and ended."""

from http import HTTPStatus

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from console.api.answers import one
from console.api.asking import LONGEST_TOKEN, Doorkeeper
from console.api.reading import Fields
from console.api.route import Route
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.access import Myself


class Credential(Fields):
    """What somebody signs in with: one of the two."""

    token: str = Field(default="", max_length=LONGEST_TOKEN, description="An API token.")
    code: str = Field(default="", max_length=LONGEST_TOKEN, description="A code that `muster open` has made.")


async def sign_in(request: Request, credential: Credential) -> Response:
    """Sign in with an API token, or with a code; the answer sets the cookie of a session.

    The session ends with its token, after twelve hours without a request, or at the sign-out. A code counts once, and
    for a minute after `muster open` has made it.
    """
    if bool(credential.token) == bool(credential.code):
        raise InvalidJobError("sign in with a `token` or with a `code`, one of them")
    doorkeeper: Doorkeeper = request.app.state.doorkeeper
    if credential.code:
        return one(request, await doorkeeper.begin_with_code(credential.code, request), HTTPStatus.CREATED)
    return one(request, await doorkeeper.begin_with_token(credential.token, request), HTTPStatus.CREATED)


async def sign_out(request: Request) -> Response:
    """Sign out: the cookie goes, and the token counts no more if it was made for this session."""
    doorkeeper: Doorkeeper = request.app.state.doorkeeper
    await doorkeeper.end_session(request)
    return Response(status_code=HTTPStatus.NO_CONTENT)


SESSION_ROUTES = (
    Route(
        verb="POST",
        path="/v1/session",
        operation="console.sign_in",
        handler=sign_in,
        answer=Myself,
        status=HTTPStatus.CREATED,
    ),
    Route(
        verb="DELETE",
        path="/v1/session",
        operation="console.sign_out",
        handler=sign_out,
        answer=None,
        status=HTTPStatus.NO_CONTENT,
    ),
)
"""What a browser does before it has a session, and to be rid of it."""
