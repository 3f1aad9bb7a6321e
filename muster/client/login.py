"""The SDK for people who log in through the organisation's identity provider."""

from datetime import timedelta
from typing import Any

from muster.client.trust import TrustCall
from muster.domain.fleet.access import IssuedToken
from muster.domain.fleet.login import PendingLogin
from muster.rpc.v1 import trust_pb2 as pb
from muster.wire import WireError, checks, trust

SHORTEST = timedelta(seconds=1)


class LoginClient:
    """Reached as `client.logins`; needs no token. Provider and coordinator want time: give the client 45 s."""

    def __init__(self, ask: TrustCall, stub: Any) -> None:  # noqa: ANN401 - the stub of LoginService
        self._ask = ask
        self._stub = stub

    async def start(self) -> PendingLogin:
        """A login that waits for its person; UnknownNameError where the coordinator knows no identity provider."""
        answer = await self._ask(self._stub.Start, pb.StartLoginRequest(), pauses=())
        return PendingLogin(
            verification_uri=_line(answer.verification_uri, "verification_uri"),
            verification_uri_complete=_line(answer.verification_uri_complete, "verification_uri_complete"),
            user_code=_line(answer.user_code, "user_code"),
            expires_at=checks.moment(answer.expires_at, "StartLoginResponse.expires_at"),
            interval=max(checks.span(answer.interval, "StartLoginResponse.interval"), SHORTEST),
            secret=answer.login,
        )

    async def finish(self, login: PendingLogin) -> tuple[str, IssuedToken] | timedelta:
        """The API token, shown this once, and what is kept of it; or how long to wait before asking again.

        Raises PermissionDeniedError where the person or the provider refused, or nobody confirmed in time.
        """
        answer = await self._ask(self._stub.Finish, pb.FinishLoginRequest(login=login.secret))
        if not answer.secret:
            return max(checks.span(answer.interval, "FinishLoginResponse.interval"), SHORTEST)
        return answer.secret, trust.token_from_wire(answer.token)


def _line(value: str, name: str) -> str:
    """A text that is shown to a person, and nothing to his terminal."""
    where = f"StartLoginResponse.{name}"
    if not value.isprintable():
        raise WireError(where, "has characters that cannot be shown")
    return value
