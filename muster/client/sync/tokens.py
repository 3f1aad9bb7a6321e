"""The synchronous form of `muster.client.services.tokens`, made from it by `make sync`; change that one."""

from collections.abc import Collection, Mapping
from datetime import timedelta

from muster.client.blocking.loop_thread import LoopThread
from muster.client.services.tokens import JoinTokensClient, LoginsClient, TokensClient
from muster.domain.fleet.access import Access, IssuedJoinToken, IssuedToken
from muster.domain.fleet.login import BrowserLogin, HandedCode, PendingLogin, SignedIn


class SyncTokensClient:
    """API tokens, reached as `client.tokens`. A token is made once only: a second answer would be a second token."""

    def __init__(self, own: TokensClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def create(
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

        >>> secret, token = client.tokens.create(note="nightly sweep", ttl=timedelta(days=7))
        """
        return self._loop.run(self._own.create(account, note=note, ttl=ttl, access=access, projects=projects))

    def list(self) -> tuple[IssuedToken, ...]:
        """API tokens, oldest first.

        >>> unused = [token for token in client.tokens.list() if token.last_used_at is None]
        """
        return self._loop.run(self._own.list())

    def revoke(self, token: str) -> IssuedToken:
        """Have an API token count no more; what is kept of it.

        >>> client.tokens.revoke("k3x9a1b2")
        """
        return self._loop.run(self._own.revoke(token))

    def prune(self, tokens: Collection[str]) -> tuple[IssuedToken, ...]:
        """Clear API tokens away: those that counted are revoked and given, the others are forgotten.

        >>> client.tokens.prune([token.id for token in unused])
        """
        return self._loop.run(self._own.prune(tokens))


class SyncJoinTokensClient:
    """Join tokens, reached as `client.join_tokens`. A token is made once only."""

    def __init__(self, own: JoinTokensClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def create(
        self, *, ttl: timedelta | None = None, uses: int = 1, labels: Mapping[str, str] | None = None
    ) -> tuple[str, IssuedJoinToken]:
        """Make a join token: the text that is shown this once, and what is kept of it. Its nodes get the labels.

        >>> secret, token = client.join_tokens.create(uses=8, labels={"rack": "7"})
        """
        return self._loop.run(self._own.create(ttl=ttl, uses=uses, labels=labels))

    def list(self) -> tuple[IssuedJoinToken, ...]:
        """Join tokens, oldest first.

        >>> tokens = client.join_tokens.list()
        """
        return self._loop.run(self._own.list())

    def revoke(self, token: str) -> IssuedJoinToken:
        """Have a join token count no more; what is kept of it.

        >>> client.join_tokens.revoke("k3x9a1b2")
        """
        return self._loop.run(self._own.revoke(token))


class SyncLoginsClient:
    """Logins, reached as `client.logins`: through the identity provider, without a token, and sessions of browsers.

    Provider and coordinator want time: allow 45 s.
    """

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

    def hand(self) -> HandedCode:
        """Make a code with which a browser begins a session of one's own at the console; it counts once, for 60 s.

        >>> code = client.logins.hand()
        >>> print("open", code.link())
        """
        return self._loop.run(self._own.hand())

    def redeem(self, code: str, browser: str) -> SignedIn:
        """Begin the session of whoever was handed a code, for the browser at this address; only consoles do.

        >>> signed_in = client.logins.redeem(code, "203.0.113.7:51234")
        """
        return self._loop.run(self._own.redeem(code, browser))

    def begin(self, redirect_uri: str, browser: str) -> BrowserLogin:
        """Begin a login in the browser at this address, which comes back to `redirect_uri`; only consoles do.

        >>> login = client.logins.begin("https://muster.example.org/v1/login/callback", "203.0.113.7:51234")
        """
        return self._loop.run(self._own.begin(redirect_uri, browser))

    def complete(self, login: str, *, state: str, code: str, browser: str) -> SignedIn:
        """End a login with what the provider has sent the browser back with; only consoles do. `login` is its secret.

        >>> signed_in = client.logins.complete(login.secret, state=state, code=code, browser="203.0.113.7:51234")
        """
        return self._loop.run(self._own.complete(login, state=state, code=code, browser=browser))
