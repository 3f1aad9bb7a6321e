"""The synchronous form of `muster.client.services.logins`, made from it by `make sync`; change that one."""

from datetime import timedelta

from muster.client.blocking.loop_thread import LoopThread
from muster.client.services.logins import LoginsClient
from muster.domain.fleet.access import IssuedToken
from muster.domain.fleet.login import PendingLogin


class SyncLoginsClient:
    """Logins, reached as `client.logins`; they need no token. Provider and coordinator want time: allow 45 s."""

    def __init__(self, own: LoginsClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def start(self) -> PendingLogin:
        """Begin a login, which then waits for its person; UnknownNameError where there is no identity provider.

        >>> login = client.logins.start()
        >>> print("open", login.verification_uri, "and type", login.user_code)
        """
        return self._loop.run(self._own.start())

    def finish(self, login: PendingLogin) -> tuple[str, IssuedToken] | timedelta:
        """The API token, shown this once, and what is kept of it; or how long to wait before asking again.

        Raises PermissionDeniedError where the person or the provider refused, or nobody confirmed in time.

        >>> answer = client.logins.finish(login)
        """
        return self._loop.run(self._own.finish(login))
