"""Logins in browsers that wait for their people to come back from the provider."""

import hmac
from datetime import datetime, timedelta
from typing import NamedTuple

from coordinator.logins.code_login import CodeLogin
from coordinator.logins.person import Person
from coordinator.logins.provider import Provider, Served
from coordinator.logins.waiting_room import WaitingRoom
from muster.domain.errors import PermissionDeniedError, UnknownNameError
from muster.domain.fleet.login import BrowserLogin

BROWSER_LOGIN_LIFE = timedelta(minutes=10)
"""How long a person may take at the provider."""
MOST_BROWSER_LOGINS = 500
"""Logins in browsers that may wait at once."""
MOST_BROWSER_LOGINS_OF_ONE = 20
"""Logins from one address that wait; the next one takes the place of the oldest."""


class _Begun(NamedTuple):
    login: CodeLogin
    served: Served


class BrowserDesk:
    """Begins logins in browsers and completes them; each has one try."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._room = WaitingRoom[_Begun](most=MOST_BROWSER_LOGINS, most_of_one=MOST_BROWSER_LOGINS_OF_ONE)

    async def begin(self, redirect_uri: str, place: str, now: datetime) -> BrowserLogin:
        """A login whose person is sent back to `redirect_uri`; ExhaustedError where too many wait."""
        login, served, url = await self._provider.begin(redirect_uri)
        expires_at = now + BROWSER_LOGIN_LIFE
        secret = self._room.enter(_Begun(login, served), place, expires_at, now)
        return BrowserLogin(url=url, secret=secret, expires_at=expires_at)

    async def complete(self, secret: str, state: str, code: str, now: datetime) -> Person:
        """The person who has come back with this state and code.

        Raises UnknownNameError, PermissionDeniedError and ProviderError; the login has ended, however it goes.
        """
        begun = self._room.leave(secret, now)
        if begun is None:
            minutes = BROWSER_LOGIN_LIFE.total_seconds() / 60
            raise UnknownNameError(
                f"there is no such login, or it took longer than {minutes:.0f} minutes; sign in again"
            )
        if not hmac.compare_digest(begun.login.state.encode(), state.encode()):
            raise PermissionDeniedError("the identity provider answers another login than yours; sign in again")
        return await self._provider.complete(begun.login, begun.served, code, now)
