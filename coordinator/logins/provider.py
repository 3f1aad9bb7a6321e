"""An identity provider: what it serves, how logins begin there, and how they end (OpenID Connect)."""

import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from coordinator.logins.code_login import CodeLogin, new_code_login, url_of
from coordinator.logins.person import Person, lacking, person_of
from coordinator.logins.said import Json, shown
from coordinator.logins.settings import LoginSettings, permitted_url
from coordinator.logins.token import Expected, IdentityError, verified
from coordinator.logins.web import HttpAnswer, Proof, ProviderError, UnreachableError, Web
from muster.domain.errors import PermissionDeniedError
from muster.trust.files import read_secret

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
INTERVAL = timedelta(seconds=5)
"""How often to ask where the provider does not say."""
SHORTEST_POLL, LONGEST_POLL = timedelta(seconds=1), timedelta(seconds=60)
LIFE = timedelta(minutes=15)
"""The longest that a login waits for its person, whatever the provider says."""

_SCOPES = ("openid", "profile", "email", "groups")
_WELL_KNOWN = "/.well-known/openid-configuration"
_URL, _CODE, _DEVICE_CODE = 2048, 64, 4096
"""The longest that are taken, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Where a provider serves what, and how."""

    issuer: str
    device_authorization: str
    """Empty: nobody logs in on the command line."""
    authorization: str
    """Empty: nobody logs in with a browser alone."""
    token: str
    keys: str
    userinfo: str
    """Empty: it does not tell more than the token says."""
    scopes: str
    secret_in_header: bool
    """How clients show their secrets; else in the form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLogin:
    """A login that has begun at the provider."""

    verification_uri: str
    verification_uri_complete: str
    user_code: str
    device_code: str = field(repr=False)
    """Whoever has it gets the token; it stays in the coordinator."""
    nonce: str
    interval: timedelta
    expires_at: datetime
    served: Served = field(repr=False)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The person has not confirmed yet."""

    slower: bool = False
    """The provider is asked too often."""


Outcome: TypeAlias = Waiting | Person


class Provider:
    """One identity provider, asked anew for each login: logins are rare, and what changed there is known at once."""

    def __init__(self, settings: LoginSettings, web: Web | None = None) -> None:
        self._settings = settings
        self._web = web or Web(settings.ca_file)
        file = settings.client_secret_file
        self._secret = "" if file is None else read_secret(file)

    @property
    def settings(self) -> LoginSettings:
        """What was chosen."""
        return self._settings

    async def start(self, now: datetime) -> DeviceLogin:
        """A login that waits for its person; raises ProviderError."""
        served, nonce = await self._served(), secrets.token_urlsafe(24)
        url = served.device_authorization
        if not url:
            raise _lacks("device_authorization_endpoint", "the device flow (RFC 8628)")
        answer = await self._asked(url, {"scope": served.scopes, "nonce": nonce}, served)
        if answer.error in {"invalid_request", "invalid_scope"} and not answer.ok:
            # Some know no nonce in this flow, and some offer scopes that not every client may use.
            answer = await self._asked(url, {"scope": "openid profile email"}, served)
        if not answer.ok:
            raise ProviderError(f"the identity provider does not begin a login: {_explained(answer)}")
        return _begun(answer.said, served, nonce, now)

    async def finish(self, login: DeviceLogin, now: datetime) -> Outcome:
        """Whether the person has confirmed; raises PermissionDeniedError where the person refuses, and
        ProviderError.
        """
        form = {"grant_type": DEVICE_GRANT, "device_code": login.device_code}
        answer = await self._asked(login.served.token, form, login.served)
        if not answer.ok:
            return _not_yet(answer)
        return await self._person(answer.said, login.served, self._expected(login.served, login.nonce), now)

    async def begin(self, redirect_uri: str) -> tuple[CodeLogin, Served, str]:
        """A login in a browser, what is served for it, and where its person logs in; raises ProviderError."""
        served = await self._served()
        if not served.authorization:
            raise _lacks("authorization_endpoint", "the authorization code flow")
        login = new_code_login(redirect_uri)
        return login, served, url_of(login, served.authorization, self._settings.client_id, served.scopes)

    async def complete(self, login: CodeLogin, served: Served, code: str, now: datetime) -> Person:
        """The person whom the provider has sent back with this code; raises PermissionDeniedError and ProviderError."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": login.redirect_uri,
            "code_verifier": login.verifier,
        }
        answer = await self._asked(served.token, form, served)
        if not answer.ok:
            raise ProviderError(f"the identity provider does not finish the login: {_explained(answer)}")
        expected = replace(self._expected(served, login.nonce), says_nonce=True)
        return await self._person(answer.said, served, expected, now)

    def _expected(self, served: Served, nonce: str) -> Expected:
        return Expected(issuer=served.issuer, client_id=self._settings.client_id, nonce=nonce)

    async def _person(self, said: Json, served: Served, expected: Expected, now: datetime) -> Person:
        try:
            claims = await self._claims(said, served, expected, now)
        except UnreachableError as error:
            raise IdentityError(str(error)) from error  # the code is used up, so there is no next time
        return person_of(claims, self._settings)

    async def _served(self) -> Served:
        issuer = self._settings.issuer
        answer = await self._web.get(issuer.rstrip("/") + _WELL_KNOWN)
        if not answer.ok:
            raise ProviderError(f"{issuer} is no identity provider: {_WELL_KNOWN} answers {answer.error}")
        named = answer.said.get("issuer")
        if not isinstance(named, str) or named.rstrip("/") != issuer.rstrip("/"):
            raise ProviderError(f"{issuer} calls itself {shown(str(named))}; --oidc-issuer must be that very URL")
        return described(answer.said, named)

    async def _asked(self, url: str, form: dict[str, str], served: Served) -> HttpAnswer:
        """The answer to a form of this client, which shows its secret in the way that the provider wants."""
        client = self._settings.client_id
        if self._secret and served.secret_in_header:
            proof = Proof(client_id=client, client_secret=self._secret)
            return await self._web.post(url, {"client_id": client, **form}, proof)
        secret = {"client_secret": self._secret} if self._secret else {}
        return await self._web.post(url, {"client_id": client, **secret, **form})

    async def _claims(self, said: Json, served: Served, expected: Expected, now: datetime) -> Json:
        token = said.get("id_token")
        if not isinstance(token, str):
            raise IdentityError("it gives no ID token; does the client have the scope openid?")
        keys = await self._web.get(served.keys)
        if not keys.ok:
            raise IdentityError(f"its keys cannot be read: {keys.error}")
        claims = verified(token, keys.said, expected, now)
        if not lacking(claims, self._settings):
            return claims
        return {**await self._more(said, served, claims), **claims}

    async def _more(self, said: Json, served: Served, claims: Json) -> Json:
        """What the provider tells of the person only when it is asked."""
        access = said.get("access_token")
        if not isinstance(access, str) or not (access.isascii() and access.isprintable()) or not served.userinfo:
            return {}
        answer = await self._web.get(served.userinfo, Proof(bearer=access))
        if not answer.ok:
            raise IdentityError(f"it does not tell more of you when it is asked: {answer.error}")
        if answer.said.get("sub") != claims["sub"]:
            raise IdentityError("it tells about another person than the one who has logged in")
        return answer.said


def described(said: Json, issuer: str) -> Served:
    """What a provider says that it serves; raises ProviderError for what is missing or not to be asked."""
    methods = said.get("token_endpoint_auth_methods_supported")
    return Served(
        issuer=issuer,
        device_authorization=_optional(said, "device_authorization_endpoint", issuer),
        authorization=_optional(said, "authorization_endpoint", issuer),
        token=_endpoint(said, "token_endpoint", issuer),
        keys=_endpoint(said, "jwks_uri", issuer),
        userinfo=_optional(said, "userinfo_endpoint", issuer),
        scopes=_scopes(said),
        secret_in_header=not isinstance(methods, list) or "client_secret_basic" in methods,
    )


def _optional(said: Json, name: str, issuer: str) -> str:
    """What a provider may do without; empty where it does."""
    return _endpoint(said, name, issuer) if said.get(name) else ""


def _lacks(name: str, flow: str) -> ProviderError:
    return ProviderError(f"the identity provider has no {name}; does it support {flow}?")


def _endpoint(said: Json, name: str, issuer: str) -> str:
    url = said.get(name)
    if not isinstance(url, str) or len(url) > _URL:
        raise _lacks(name, "the device flow (RFC 8628)")
    # One that is elsewhere must not send the coordinator to what listens on its own machine.
    if not permitted_url(url) or (issuer.startswith("https:") and not url.startswith("https:")):
        raise ProviderError(f"will not ask {shown(url)}, the {name} of the identity provider: only https is encrypted")
    return url


def _scopes(said: Json) -> str:
    listed = said.get("scopes_supported")
    known = listed if isinstance(listed, list) else ("profile", "email")
    return " ".join(each for each in _SCOPES if each == "openid" or each in known)


def _begun(said: Json, served: Served, nonce: str, now: datetime) -> DeviceLogin:
    url = said.get("verification_uri", said.get("verification_url"))  # as Google calls it
    code, device, whole = said.get("user_code"), said.get("device_code"), said.get("verification_uri_complete", "")
    if not isinstance(device, str) or not 0 < len(device) <= _DEVICE_CODE:
        raise ProviderError("the identity provider begins a login without a device code")
    if not isinstance(code, str) or not 0 < len(code) <= _CODE or not (code.isascii() and code.isprintable()):
        raise ProviderError("the identity provider begins a login without a code that can be read out")
    if not _may_be_shown(url):
        raise ProviderError(f"the identity provider sends people to {shown(str(url))}, which is no https URL")
    return DeviceLogin(
        verification_uri=str(url),
        verification_uri_complete=str(whole) if _may_be_shown(whole) else "",
        user_code=code,
        device_code=device,
        nonce=nonce,
        interval=min(max(_span(said.get("interval"), INTERVAL), SHORTEST_POLL), LONGEST_POLL),
        expires_at=now + min(_span(said.get("expires_in"), LIFE), LIFE),
        served=served,
    )


def _may_be_shown(url: object) -> bool:
    return isinstance(url, str) and len(url) <= _URL and url.isascii() and permitted_url(url)


def _span(seconds: object, otherwise: timedelta) -> timedelta:
    usable = isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 < seconds <= LIFE.total_seconds()
    return timedelta(seconds=float(seconds)) if usable else otherwise  # type: ignore[arg-type]  # `usable` says that it is a number


def _not_yet(answer: HttpAnswer) -> Waiting:
    match answer.error:
        case "authorization_pending":
            return Waiting()
        case "slow_down":
            return Waiting(slower=True)
        case "access_denied":
            raise PermissionDeniedError("the login was refused at the identity provider")
        case "expired_token":
            raise PermissionDeniedError("the login was not confirmed in time; begin anew with `muster login`")
        case _:
            raise ProviderError(f"the identity provider does not finish the login: {_explained(answer)}")


def _explained(answer: HttpAnswer) -> str:
    more = answer.said.get("error_description")
    return f"{answer.error} ({shown(more)})" if isinstance(more, str) and more else answer.error
