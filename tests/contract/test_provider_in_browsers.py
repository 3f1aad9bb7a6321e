"""What the coordinator sends a browser to an identity provider with, and what it takes back."""

import base64
import hashlib
from datetime import datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from coordinator.clock import wall_time
from coordinator.logins.browser_desk import BROWSER_LOGIN_LIFE, MOST_BROWSER_LOGINS_OF_ONE, BrowserDesk
from coordinator.logins.web import ProviderError
from muster.domain.errors import PermissionDeniedError, UnknownNameError
from muster.domain.fleet.login import BrowserLogin
from tests.contract.hostile_provider import Hostile, hostile
from tests.unit.coordinator.logins.provider_values import RSA, claims, published, signed

WELL_KNOWN = "/.well-known/openid-configuration"
WAY_BACK = "https://console.example/v1/login/callback"
PLACE = "203.0.113.7"


def serves_browsers(told: Hostile, **changed: object) -> BrowserDesk:
    told.answers[WELL_KNOWN] = told.described(**{"authorization_endpoint": f"{told.issuer}/auth?realm=1", **changed})
    return BrowserDesk(told.provider())


def asked(login: BrowserLogin) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(login.url).query).items()}


def confirms(told: Hostile, login: BrowserLogin, now: datetime, **changed: object) -> None:
    """From now on the provider gives a token of this login for any code."""
    seconds = int(now.timestamp())
    said = {"iss": told.issuer, "nonce": asked(login)["nonce"], "iat": seconds, "exp": seconds + 60, "groups": ["a"]}
    token = signed(RSA, claims(**{**said, "preferred_username": "ada", **changed}))
    told.answers["/jwks"] = published(RSA)
    told.answers["/token"] = {"id_token": token, "access_token": "access", "token_type": "Bearer"}


async def test_a_code_is_exchanged_with_the_verifier_that_the_provider_was_told_a_hash_of() -> None:
    async with hostile() as told:
        desk, now = serves_browsers(told), wall_time()
        login = await desk.begin(WAY_BACK, PLACE, now)
        said = asked(login)
        assert login.url.startswith(f"{told.issuer}/auth?realm=1&response_type=code&client_id=muster&")
        confirms(told, login, now)
        assert (await desk.complete(login.secret, said["state"], "a-code", now)).name == "ada"
        path, form, _ = told.asked[-2]
        assert (path, form["grant_type"], form["code"], form["redirect_uri"]) == (
            *("/token", "authorization_code"),
            *("a-code", WAY_BACK),
        )
        hashed = hashlib.sha256(form["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(hashed).decode().rstrip("=") == said["code_challenge"]
        assert len({said["state"], said["nonce"], form["code_verifier"], login.secret}) == 4


@pytest.mark.parametrize("nonce", [None, "another"])
async def test_a_token_without_the_nonce_of_the_login_is_refused(nonce: str | None) -> None:
    async with hostile() as told:
        desk, now = serves_browsers(told), wall_time()
        login = await desk.begin(WAY_BACK, PLACE, now)
        confirms(told, login, now, nonce=nonce)
        with pytest.raises(ProviderError, match="its token is of another login"):
            await desk.complete(login.secret, asked(login)["state"], "a-code", now)


async def test_a_login_has_one_try_and_ten_minutes() -> None:
    async with hostile() as told:
        desk, now = serves_browsers(told), wall_time()
        login, late = [await desk.begin(WAY_BACK, PLACE, now) for _ in range(2)]
        with pytest.raises(PermissionDeniedError, match="answers another login than yours"):
            await desk.complete(login.secret, asked(late)["state"], "a-code", now)
        with pytest.raises(UnknownNameError, match="there is no such login"):
            await desk.complete(login.secret, asked(login)["state"], "a-code", now)
        assert late.expires_at == now + BROWSER_LOGIN_LIFE == now + timedelta(minutes=10)
        with pytest.raises(UnknownNameError, match="or it took longer than 10 minutes"):
            await desk.complete(late.secret, asked(late)["state"], "a-code", now + BROWSER_LOGIN_LIFE)


async def test_whoever_begins_many_logins_loses_the_oldest() -> None:
    async with hostile() as told:
        desk, now = serves_browsers(told), wall_time()
        other = await desk.begin(WAY_BACK, "198.51.100.1", now)
        first, *_, last = [await desk.begin(WAY_BACK, PLACE, now) for _ in range(MOST_BROWSER_LOGINS_OF_ONE + 1)]
        with pytest.raises(UnknownNameError):
            await desk.complete(first.secret, asked(first)["state"], "a-code", now)
        for login in (last, other):
            confirms(told, login, now)
            assert (await desk.complete(login.secret, asked(login)["state"], "a-code", now)).name == "ada"


async def test_a_provider_may_do_without_one_of_the_flows() -> None:
    async with hostile() as told:
        with pytest.raises(ProviderError, match="no authorization_endpoint; does it support the authorization code"):
            await serves_browsers(told, authorization_endpoint=None).begin(WAY_BACK, PLACE, wall_time())
        desk = serves_browsers(told, device_authorization_endpoint=None)
        assert (await desk.begin(WAY_BACK, PLACE, wall_time())).url.startswith(told.issuer)
        with pytest.raises(ProviderError, match=r"will not ask http://login\.example\.org/auth"):
            await serves_browsers(told, authorization_endpoint="http://login.example.org/auth").begin(
                WAY_BACK, PLACE, wall_time()
            )
