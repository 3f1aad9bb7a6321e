"""Callers: the token that comes with a request, and the client that asks the coordinator with it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from console.upstream.callers import Callers
from muster.client.client import Client
from muster.daemon.rates import Buckets, Rate
from muster.domain.errors import ExhaustedError, NotSignedInError, UnavailableError

STRANGERS = Rate(burst=20, per_second=1 / 3)
"""Tokens of one address that nobody has seen to count: so many at once, and from then on so many per second."""
LONGEST_TOKEN = 4096
"""Characters of a token; a longer one is none of Muster's."""
_SCHEME = "bearer "
_LOOKS = frozenset({"GET", "HEAD"})
"""Verbs that change nothing."""


class Doorkeeper:
    """Gives each request the client of its caller, and slows down who tries tokens."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers
        self._strangers = Buckets[str](STRANGERS)

    @asynccontextmanager
    async def client(self, request: Request) -> AsyncIterator[Client]:
        """The client of who asks; raises NotSignedInError, or ExhaustedError after too many tokens that do not count.

        What goes wrong in the body tells whether the token counts.
        """
        token, address = token_of(request), request.client.host if request.client else ""
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
        if request.method not in _LOOKS:
            self._callers.note_change(token, asyncio.get_running_loop().time())


def token_of(request: Request) -> str:
    """The token that a request shows; raises NotSignedInError."""
    shown = request.headers.get("authorization", "")
    token = shown[len(_SCHEME) :].strip()
    if not shown.lower().startswith(_SCHEME) or not token or len(token) > LONGEST_TOKEN or not token.isascii():
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
