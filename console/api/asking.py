"""Callers: the token that comes with a request, and the client that asks the coordinator with it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from console.api.sessions.cookies import (
    LOGIN_COOKIE,
    LOOKING_VERBS,
    refuse_foreign_page,
    session_of,
    set_login_cookie,
    set_session_cookie,
)
from console.api.sessions.session import Session, SessionSeal
from console.upstream.callers import Callers
from muster.client.client import Client
from muster.daemon.rates import Buckets, Rate
from muster.domain.errors import (
    ConflictError,
    ExhaustedError,
    NotSignedInError,
    PermissionDeniedError,
    UnavailableError,
)
from muster.domain.fleet.access import Myself
from muster.domain.fleet.login import SignedIn

STRANGERS = Rate(burst=20, per_second=1 / 3)
"""Tokens of one address that nobody has seen to count: so many at once, and from then on so many per second."""
LONGEST_TOKEN = 4096
"""Characters of a token; a longer one is none of Muster's."""
_SCHEME = "bearer "


class Doorkeeper:
    """Gives each request the client of its caller, and slows down who tries tokens."""

    def __init__(self, callers: Callers, seal: SessionSeal, origin: str, own: Client | None) -> None:
        """`origin` is the console's own, as browsers say it; `own` asks with its own token, if it has one."""
        self._callers = callers
        self._seal = seal
        self._origin = origin
        self._own = own
        self._strangers = Buckets[str](STRANGERS)

    @asynccontextmanager
    async def client(self, request: Request) -> AsyncIterator[Client]:
        """The client of who asks; raises NotSignedInError, or ExhaustedError after too many tokens that do not count.

        What goes wrong in the body tells whether the token counts.
        """
        async with self._client_with(self.token_of(request), request) as client:
            yield client

    async def begin_with_token(self, token: str, request: Request) -> Myself:
        """Whoever signs in with a token; the answer begins a session."""
        refuse_foreign_page(request, self._origin)
        return await self._begun(SignedIn(token=_sound(token), own=False), request)

    async def begin_with_code(self, code: str, request: Request) -> Myself:
        """Whoever was handed a code; the answer begins a session."""
        refuse_foreign_page(request, self._origin)
        self._count_try(request)
        begun = await self._begun(await self._own_client().logins.redeem(code, _browser(request)), request)
        self._strangers.give_back(_address(request))
        return begun

    async def begin_login(self, request: Request, way_back: str) -> str:
        """Where a browser logs in at the identity provider; it comes back to a path of this console."""
        if not self._origin:
            raise ConflictError("this console was not told how browsers reach it; whoever runs it says so with --url")
        self._count_try(request)
        login = await self._own_client().logins.begin(f"{self._origin}{way_back}", _browser(request))
        set_login_cookie(request, login.secret)
        return login.url

    async def complete_login(self, request: Request, state: str, code: str) -> Myself:
        """Whoever has come back from the identity provider; the answer begins a session."""
        login = request.cookies.get(LOGIN_COOKIE, "")
        self.forget_login(request)
        if not login:
            raise PermissionDeniedError("no login has begun in this browser, or it took too long; sign in again")
        signed_in = await self._own_client().logins.complete(login, state=state, code=code, browser=_browser(request))
        self._strangers.give_back(_address(request))
        return await self._begun(signed_in, request)

    def forget_login(self, request: Request) -> None:
        """Have the answer take the login away that has begun in a browser."""
        set_login_cookie(request, "")

    async def end_session(self, request: Request) -> None:
        """Have the answer end the session of a browser, and the token that was made for it count no more."""
        refuse_foreign_page(request, self._origin)
        try:
            session = session_of(request, self._seal, self._origin, time.time())
            if session is not None and session.own:
                client = await self._callers.client(session.token)
                await client.tokens.revoke((await client.accounts.myself()).token)
        except NotSignedInError:
            pass  # it has ended already
        finally:
            set_session_cookie(request, "")

    async def _begun(self, signed_in: SignedIn, request: Request) -> Myself:
        async with self._client_with(signed_in.token, request) as client:
            myself = await client.accounts.myself()
        session = Session(token=signed_in.token, used_at=time.time(), own=signed_in.own)
        set_session_cookie(request, self._seal.written(session))
        return myself

    def _own_client(self) -> Client:
        if self._own is None:
            raise ConflictError(
                "this console signs in by API token alone; whoever runs it can give it a token of its own with "
                "--token-file (docs/rest.md)"
            )
        return self._own

    def _count_try(self, request: Request) -> None:
        """Count what a stranger tries against the address, which is given back where it ends well."""
        if wait := self._strangers.take(_address(request), asyncio.get_running_loop().time()):
            raise _too_many(wait)

    @asynccontextmanager
    async def _client_with(self, token: str, request: Request) -> AsyncIterator[Client]:
        address = _address(request)
        counted = known = self._callers.has_counted(token)
        if not known:
            self._count_try(request)
        self._note_change(request, token)
        try:
            yield await self._callers.client(token)
            counted = True
        except NotSignedInError:
            counted = False
            raise
        except UnavailableError:
            raise  # nobody has said anything of the token
        except Exception:
            counted = True
            raise
        finally:
            self._note_change(request, token)
            self._callers.note(token, counts=counted)
            if counted and not known:
                self._strangers.give_back(address)

    def _note_change(self, request: Request, token: str) -> None:
        if request.method not in LOOKING_VERBS:
            self._callers.note_change(token, asyncio.get_running_loop().time())

    def token_of(self, request: Request) -> str:
        """The token that a request shows, or that of its session. Raises NotSignedInError or PermissionDeniedError."""
        shown = request.headers.get("authorization", "")
        if shown:
            return _sound(shown[len(_SCHEME) :].strip() if shown.lower().startswith(_SCHEME) else "")
        session = session_of(request, self._seal, self._origin, time.time())
        return _sound("" if session is None else session.token)


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _browser(request: Request) -> str:
    """The address of a browser with its port, as the coordinator writes it down."""
    host, port = request.client or ("", 0)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _sound(token: str) -> str:
    if not token or len(token) > LONGEST_TOKEN or not token.isascii():
        raise NotSignedInError("show an API token as `Authorization: Bearer TOKEN`; `muster tokens create` makes one")
    return token


def _too_many(wait: float) -> ExhaustedError:
    error = ExhaustedError("too many tokens that do not count were tried from this address; wait a little")
    error.retry_after = wait
    return error


async def _client(request: Request) -> AsyncIterator[Client]:
    doorkeeper: Doorkeeper = request.app.state.doorkeeper
    async with doorkeeper.client(request) as client:
        yield client


AsCaller = Annotated[Client, Depends(_client)]
"""The client that asks with the token of the request. A handler asks something with it before it answers."""
