"""Logins that wait for their people: few, short-lived, and known to nobody but who began them."""

import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from coordinator.logins.browser_desk import BrowserDesk
from coordinator.logins.person import Person
from coordinator.logins.provider import LONGEST_POLL, DeviceLogin, Provider, Waiting
from coordinator.logins.settings import LoginSettings
from coordinator.logins.web import ProviderError, UnreachableError
from muster.domain.errors import ExhaustedError, PermissionDeniedError, UnknownNameError
from muster.trust.tokens import digest

MOST_LOGINS_WAITING = 500
"""Logins that may wait at once."""
MOST_FROM_ONE = 20
"""Most open logins from one address: an office behind one fits, somebody who fills the desk does not."""
FAILURES = 3
"""Times in a row that the provider may not answer before a login is given up."""
SLOWER = timedelta(seconds=5)
"""What is added to the interval when the provider is asked too often, as RFC 8628 has it."""


@dataclass(slots=True, kw_only=True)
class _Pending:
    """A login that waits."""

    login: DeviceLogin = field(repr=False)
    origin: str
    interval: timedelta
    next_at: datetime
    """Not before then is the provider asked again, however often the client asks."""
    busy: bool = False
    failures: int = 0


class LoginDesk:
    """Begins logins and finishes them. The device codes stay here, and what clients show is kept as a digest alone."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.browsers = BrowserDesk(provider)
        """Logins in browsers."""
        self._pending: dict[str, _Pending] = {}
        self._starting: Counter[str] = Counter()

    @property
    def settings(self) -> LoginSettings:
        """What those may who log in."""
        return self._provider.settings

    async def start(self, origin: str, now: datetime) -> tuple[str, DeviceLogin]:
        """A login, and what its client shows to finish it; ExhaustedError where too many wait."""
        self._forget_expired(now)
        with self._place(origin):
            login = await self._provider.start(now)
        shown = secrets.token_urlsafe(32)
        self._pending[digest(shown)] = _Pending(login=login, origin=origin, interval=login.interval, next_at=now)
        return shown, login

    async def finish(self, shown: str, now: datetime) -> Person | timedelta:
        """The person who has confirmed; or how long to wait before asking again.

        Raises UnknownNameError, PermissionDeniedError and ProviderError; then the login has ended.
        """
        key = digest(shown)
        pending = self._pending.get(key)
        if pending is None:
            raise UnknownNameError("there is no such login, or it has ended; begin anew with `muster login`")
        if now >= pending.login.expires_at:
            del self._pending[key]
            raise PermissionDeniedError("the login was not confirmed in time; begin anew with `muster login`")
        if pending.busy or now < pending.next_at:
            return pending.interval
        pending.next_at = now + pending.interval
        return await self._asked(key, pending, now)

    async def _asked(self, key: str, pending: _Pending, now: datetime) -> Person | timedelta:
        pending.busy = True
        try:
            outcome = await self._provider.finish(pending.login, now)
        except UnreachableError:
            pending.failures += 1
            if pending.failures >= FAILURES:
                self._pending.pop(key, None)
                raise
            return self._slow_down(pending, pending.interval)
        except (ProviderError, PermissionDeniedError):
            self._pending.pop(key, None)
            raise
        finally:
            pending.busy = False
        pending.failures = 0
        if isinstance(outcome, Waiting):
            return self._slow_down(pending, SLOWER) if outcome.slower else pending.interval
        self._pending.pop(key, None)
        return outcome

    def _slow_down(self, pending: _Pending, by: timedelta) -> timedelta:
        pending.next_at += by
        pending.interval = min(pending.interval + by, LONGEST_POLL)
        return pending.interval

    @contextmanager
    def _place(self, origin: str) -> Iterator[None]:
        """Count a login while it begins, so that many at once are not more than may be."""
        whole = len(self._pending) + self._starting.total()
        own = sum(each.origin == origin for each in self._pending.values()) + self._starting[origin]
        if whole >= MOST_LOGINS_WAITING or own >= MOST_FROM_ONE:
            where = "from your address " if own >= MOST_FROM_ONE else ""
            raise ExhaustedError(f"too many logins {where}wait to be confirmed; try again in a few minutes")
        self._starting[origin] += 1
        try:
            yield
        finally:
            self._starting[origin] -= 1
            if not self._starting[origin]:
                del self._starting[origin]

    def _forget_expired(self, now: datetime) -> None:
        self._pending = {key: each for key, each in self._pending.items() if now < each.login.expires_at}
