"""The cookie of a session, and requests that come with it.

A browser sends the cookie along whoever has made the page. So a request that changes something counts only if its page
is the console's own: browsers say where a page is from (`Origin`, `Sec-Fetch-Site`), and no page can say otherwise.
"""

from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from console.api.sessions.session import LONGEST_REST, Session, SessionSeal
from muster.domain.errors import PermissionDeniedError

COOKIE = "__Host-muster"
"""Browsers give a cookie of such a name to this host alone, over HTTPS or loopback, and let no other host set it."""
ATTRIBUTES = "Path=/; Secure; HttpOnly; SameSite=Strict"
LOGIN_COOKIE = "__Host-muster-login"
"""The secret of a login while its person is at the identity provider."""
LOGIN_ATTRIBUTES = "Path=/; Secure; HttpOnly; SameSite=Lax"
"""Lax: the provider's page leads back here, and what it leads to is read alone."""
LOGIN_REST = 600.0
"""Seconds for which a browser keeps the secret of a login."""
LOOKING_VERBS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Verbs that change nothing."""
_WRITTEN = "written_cookies"
"""Where a request keeps the cookies that its answer sets, by name."""


def session_of(request: Request, seal: SessionSeal, origin: str, now: float) -> Session | None:
    """The session of whoever has signed in; None where there is none. `origin` is the console's own.

    Raises NotSignedInError for one that has ended, and PermissionDeniedError for a page of somebody else.
    """
    written = request.cookies.get(COOKIE)
    if not written:
        return None
    if request.method not in LOOKING_VERBS and not is_own_page(request, origin):
        raise PermissionDeniedError(
            "this request comes from a page of somebody else; with a session that changes nothing"
        )
    session = seal.read(written, now)
    if (renewed := seal.renewed(session, now)) is not None:
        set_session_cookie(request, seal.written(renewed))
    return session


def is_own_page(request: Request, origin: str) -> bool:
    """Whether a request comes from a page of this console, as its browser says."""
    if (said := request.headers.get("origin")) is not None:
        return said in {origin, f"{request.url.scheme}://{request.headers.get('host', '')}"}
    return request.headers.get("sec-fetch-site") == "same-origin"


def refuse_foreign_page(request: Request, origin: str) -> None:
    """Raise PermissionDeniedError where a page of somebody else would sign its visitor in or out."""
    if ("origin" in request.headers or "sec-fetch-site" in request.headers) and not is_own_page(request, origin):
        raise PermissionDeniedError("this request comes from a page of somebody else")


def set_session_cookie(request: Request, written: str) -> None:
    """Have the answer set the cookie of the session; an empty one ends it."""
    _set(request, COOKIE, f"{written}; Max-Age={int(LONGEST_REST) if written else 0}; {ATTRIBUTES}")


def set_login_cookie(request: Request, secret: str) -> None:
    """Have the answer set the cookie of a login that has begun; an empty one takes it away."""
    _set(request, LOGIN_COOKIE, f"{secret}; Max-Age={int(LOGIN_REST) if secret else 0}; {LOGIN_ATTRIBUTES}")


def _set(request: Request, name: str, content: str) -> None:
    written: dict[str, str] = getattr(request.state, _WRITTEN, {})
    setattr(request.state, _WRITTEN, {**written, name: content})


class CookieSetting:
    """An application whose answers set the cookies that were asked for while they were made."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        state: dict[str, Any] = scope.setdefault("state", {})

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                for name, content in state.get(_WRITTEN, {}).items():
                    MutableHeaders(scope=message).append("set-cookie", f"{name}={content}")
            await send(message)

        await self._app(scope, receive, sent)
