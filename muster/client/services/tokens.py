"""The SDK for tokens: API tokens of people and programs, join tokens of nodes, and logins that end in a token."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

from muster.client.calls import Calls
from muster.domain.fleet.access import Access, IssuedJoinToken, IssuedToken
from muster.domain.fleet.login import BrowserLogin, HandedCode, PendingLogin, SignedIn
from muster.rpc.v1 import trust_pb2 as pb
from muster.rpc.v1.trust_pb2_grpc import LoginServiceStub, TrustServiceStub
from muster.wire import checks, trust
from muster.wire.checks import WireError

SHORTEST_INTERVAL = timedelta(seconds=1)


class TokensClient:
    """API tokens, reached as `client.tokens`. A token is made once only: a second answer would be a second token."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of TrustService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(TrustServiceStub)

    async def create(
        self,
        account: str = "",
        *,
        note: str = "",
        ttl: timedelta | None = None,
        access: Access | None = None,
        projects: Collection[str] = (),
    ) -> tuple[str, IssuedToken]:
        """Make an API token: the text that is shown this once, and what is kept of it.

        It may all that its account may, unless `access` says the most, or `projects` where alone it counts. Without
        `ttl` a person's token ends after 90 days, that of a program when it is revoked.

        >>> secret, token = await client.tokens.create(note="nightly sweep", ttl=timedelta(days=7))
        """
        request = pb.CreateTokenRequest(account=account, note=note, access=access or "", projects=projects)
        if ttl is not None:
            request.ttl.FromTimedelta(ttl)
        answer = await self._calls.ask(self._stub.CreateToken, request, pauses=())
        return answer.secret, trust.token_from_wire(answer.token)

    async def list(self) -> tuple[IssuedToken, ...]:
        """API tokens, oldest first.

        >>> unused = [token for token in await client.tokens.list() if token.last_used_at is None]
        """
        answer = await self._calls.ask(self._stub.ListTokens, pb.ListTokensRequest())
        return tuple(map(trust.token_from_wire, answer.tokens))

    async def revoke(self, token: str) -> IssuedToken:
        """Have an API token count no more; what is kept of it.

        >>> await client.tokens.revoke("k3x9a1b2")
        """
        return trust.token_from_wire(await self._calls.ask(self._stub.RevokeToken, pb.RevokeTokenRequest(id=token)))

    async def prune(self, tokens: Collection[str]) -> tuple[IssuedToken, ...]:
        """Clear API tokens away: those that counted are revoked and given, the others are forgotten.

        >>> await client.tokens.prune([token.id for token in unused])
        """
        answer = await self._calls.ask(self._stub.PruneTokens, pb.PruneTokensRequest(ids=tokens), pauses=())
        return tuple(map(trust.token_from_wire, answer.revoked))


class JoinTokensClient:
    """Join tokens, reached as `client.join_tokens`. A token is made once only."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of TrustService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(TrustServiceStub)

    async def create(
        self, *, ttl: timedelta | None = None, uses: int = 1, labels: Mapping[str, str] | None = None
    ) -> tuple[str, IssuedJoinToken]:
        """Make a join token: the text that is shown this once, and what is kept of it. Its nodes get the labels.

        >>> secret, token = await client.join_tokens.create(uses=8, labels={"rack": "7"})
        """
        request = pb.CreateJoinTokenRequest(uses=uses, labels=labels or {})
        if ttl is not None:
            request.ttl.FromTimedelta(ttl)
        answer = await self._calls.ask(self._stub.CreateJoinToken, request, pauses=())
        return answer.secret, trust.join_token_from_wire(answer.token)

    async def list(self) -> tuple[IssuedJoinToken, ...]:
        """Join tokens, oldest first.

        >>> tokens = await client.join_tokens.list()
        """
        answer = await self._calls.ask(self._stub.ListJoinTokens, pb.ListJoinTokensRequest())
        return tuple(map(trust.join_token_from_wire, answer.tokens))

    async def revoke(self, token: str) -> IssuedJoinToken:
        """Have a join token count no more; what is kept of it.

        >>> await client.join_tokens.revoke("k3x9a1b2")
        """
        request = pb.RevokeJoinTokenRequest(id=token)
        return trust.join_token_from_wire(await self._calls.ask(self._stub.RevokeJoinToken, request))


class LoginsClient:
    """Logins, reached as `client.logins`: through the identity provider, without a token, and sessions of browsers.

    Provider and coordinator want time: allow 45 s.
    """

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
            verification_uri=_line(answer.verification_uri, "StartLoginResponse.verification_uri"),
            verification_uri_complete=_line(
                answer.verification_uri_complete, "StartLoginResponse.verification_uri_complete"
            ),
            user_code=_line(answer.user_code, "StartLoginResponse.user_code"),
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

    async def hand(self) -> HandedCode:
        """Make a code with which a browser begins a session of one's own at the console; it counts once, for 60 s.

        >>> code = await client.logins.hand()
        >>> print("open", code.link())
        """
        answer = await self._calls.ask(self._stub.Hand, pb.HandRequest(), pauses=())
        return HandedCode(
            code=_line(answer.code, "HandResponse.code"),
            expires_at=checks.moment(answer.expires_at, "HandResponse.expires_at"),
            console=_line(answer.console, "HandResponse.console"),
        )

    async def redeem(self, code: str, browser: str) -> SignedIn:
        """Begin the session of whoever was handed a code, for the browser at this address; only consoles do.

        >>> signed_in = await client.logins.redeem(code, "203.0.113.7:51234")
        """
        request = pb.RedeemRequest(code=code, browser=browser)
        answer = await self._calls.ask(self._stub.Redeem, request, pauses=())
        return SignedIn(token=answer.secret, own=answer.own)

    async def begin(self, redirect_uri: str, browser: str) -> BrowserLogin:
        """Begin a login in the browser at this address, which comes back to `redirect_uri`; only consoles do.

        >>> login = await client.logins.begin("https://muster.example.org/v1/login/callback", "203.0.113.7:51234")
        """
        request = pb.BeginLoginRequest(redirect_uri=redirect_uri, browser=browser)
        answer = await self._calls.ask(self._stub.Begin, request, pauses=())
        return BrowserLogin(
            url=_line(answer.url, "BeginLoginResponse.url"),
            secret=_line(answer.login, "BeginLoginResponse.login"),
            expires_at=checks.moment(answer.expires_at, "BeginLoginResponse.expires_at"),
        )

    async def complete(self, login: str, *, state: str, code: str, browser: str) -> SignedIn:
        """End a login with what the provider has sent the browser back with; only consoles do. `login` is its secret.

        >>> signed_in = await client.logins.complete(login.secret, state=state, code=code, browser="203.0.113.7:51234")
        """
        request = pb.CompleteLoginRequest(login=login, state=state, code=code, browser=browser)
        answer = await self._calls.ask(self._stub.Complete, request, pauses=())
        return SignedIn(token=answer.secret, own=answer.own)


def _line(value: str, where: str) -> str:
    """A text that is shown to a person, and does nothing else to a terminal."""
    if not value.isprintable():
        raise WireError(where, "has characters that cannot be shown")
    return value
