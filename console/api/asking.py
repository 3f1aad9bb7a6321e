"""Callers: the token that comes with a request, and the client that asks the coordinator with it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from console.api.sessions.cookies import LOOKING_VERBS, refuse_foreign_page, set_cookie, token_of_session
from console.api.sessions.session import Session, SessionSeal
from console.upstream.callers import Callers
from muster.client.client import Client
from muster.daemon.rates import Buckets, Rate
from muster.domain.errors import ExhaustedError, NotSignedInError, UnavailableError

STRANGERS = Rate(burst=20, per_second=1 / 3)
"""Tokens of one address that nobody has seen to count: so many at once, and from then on so many per second."""
LONGEST_TOKEN = 4096
"""Characters of a token; a longer one is none of Muster's."""
_SCHEME = "bearer "


class Doorkeeper:
    """Gives each request the client of its caller, and slows down who tries tokens."""

    def __init__(self, callers: Callers, seal: SessionSeal, origin: str) -> None:
        """`origin` is the console's own, as browsers say it."""
        self._callers = callers
        self._seal = seal
        self._origin = origin
        self._strangers = Buckets[str](STRANGERS)

    @asynccontextmanager
    async def client(self, request: Request) -> AsyncIterator[Client]:
        """The client of who asks; raises NotSignedInError, or ExhaustedError after too many tokens that do not count.

        What goes wrong in the body tells whether the token counts.
        """
        async with self._client_with(self.token_of(request), request) as client:
            yield client

    @asynccontextmanager
    async def session(self, token: str, request: Request) -> AsyncIterator[Client]:
        """The client of who signs in with a token; the answer begins a session where the body ends well."""
        refuse_foreign_page(request, self._origin)
        async with self._client_with(_sound(token), request) as client:
            yield client
        set_cookie(request, self._seal.written(Session(token=token, used_at=time.time())))

    def end_session(self, request: Request) -> None:
        """Have the answer end the session of a browser, if it has one."""
        refuse_foreign_page(request, self._origin)
        set_cookie(request, "")

    @asynccontextmanager
    async def _client_with(self, token: str, request: Request) -> AsyncIterator[Client]:
        address = request.client.host if request.client else ""
        counted = known = self._callers.has_counted(token)
        if not known and (wait := self._strangers.take(address, asyncio.get_running_loop().time())):
            raise _too_many(wait)
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
        return _sound(token_of_session(request, self._seal, self._origin, time.time()) or "")


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
