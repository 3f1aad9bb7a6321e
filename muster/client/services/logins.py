"""The SDK for people who log in through the organisation's identity provider."""

from datetime import timedelta
from typing import Any

from muster.client.calls import Calls
from muster.domain.fleet.access import IssuedToken
from muster.domain.fleet.login import PendingLogin
from muster.rpc.v1 import trust_pb2 as pb
from muster.rpc.v1.trust_pb2_grpc import LoginServiceStub
from muster.wire import checks, trust
from muster.wire.checks import WireError

SHORTEST_INTERVAL = timedelta(seconds=1)


class LoginsClient:
    """Logins, reached as `client.logins`; they need no token. Provider and coordinator want time: allow 45 s."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of LoginService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(LoginServiceStub)

    async def start(self) -> PendingLogin:
        """Begin a login, which then waits for its person; UnknownNameError where there is no identity provider.

        >>> login = await client.logins.start()
        >>> print("open", login.verification_uri, "and type", login.user_code)
        """
        answer = await self._calls.ask(self._stub.Start, pb.StartLoginRequest(), pauses=())
        return PendingLogin(
            verification_uri=_line(answer.verification_uri, "verification_uri"),
            verification_uri_complete=_line(answer.verification_uri_complete, "verification_uri_complete"),
            user_code=_line(answer.user_code, "user_code"),
            expires_at=checks.moment(answer.expires_at, "StartLoginResponse.expires_at"),
            interval=max(checks.span(answer.interval, "StartLoginResponse.interval"), SHORTEST_INTERVAL),
            secret=answer.login,
        )

    async def finish(self, login: PendingLogin) -> tuple[str, IssuedToken] | timedelta:
        """The API token, shown this once, and what is kept of it; or how long to wait before asking again.

        Raises PermissionDeniedError where the person or the provider refused, or nobody confirmed in time.

        >>> answer = await client.logins.finish(login)
        """
        answer = await self._calls.ask(self._stub.Finish, pb.FinishLoginRequest(login=login.secret))
        if not answer.secret:
            return max(checks.span(answer.interval, "FinishLoginResponse.interval"), SHORTEST_INTERVAL)
        return answer.secret, trust.token_from_wire(answer.token)


def _line(value: str, name: str) -> str:
    """A text that is shown to a person, and does nothing else to a terminal."""
    where = f"StartLoginResponse.{name}"
    if not value.isprintable():
        raise WireError(where, "has characters that cannot be shown")
    return value
