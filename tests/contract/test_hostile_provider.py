"""What the coordinator makes of an identity provider that is slow, huge, wrong or malicious."""

import gzip
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from coordinator.clock import wall_time
from coordinator.logins.desk import FAILURES, MOST_FROM_ONE, MOST_LOGINS_WAITING, LoginDesk
from coordinator.logins.person import Person
from coordinator.logins.provider import LIFE, DeviceLogin, Waiting, described
from coordinator.logins.token import IdentityError
from coordinator.logins.web import LARGEST_PROVIDER_ANSWER, ProviderError, UnreachableError, Web
from muster.domain.errors import ExhaustedError, MusterError, PermissionDeniedError, UnknownNameError
from tests.contract.hostile_provider import DEVICE, Hostile, Raw, hostile
from tests.unit.coordinator.logins.provider_values import OTHER, RSA, claims, published, signed

WELL_KNOWN = "/.well-known/openid-configuration"
DEVICE_URL = "device_authorization_endpoint"
ASKED = "does it support the device flow (RFC 8628)?"
OTHER_ISSUER = "ISSUER calls itself https://evil.example; --oidc-issuer must be that very URL"
OK = "HTTP/1.1 200 OK\r\n"


def token(told: Hostile, login: DeviceLogin, **changed: object) -> str:
    """The signed token that this login should end with."""
    now = int(wall_time().timestamp())
    said = {"iss": told.issuer, "nonce": login.nonce, "iat": now, "exp": now + 60, "groups": ["a"]}
    return signed(RSA, claims(**{**said, "preferred_username": "ada", **changed}))


async def begun(told: Hostile) -> DeviceLogin:
    login = await told.provider().start(wall_time())
    told.answers["/jwks"] = published(RSA)
    told.answers["/token"] = {"id_token": token(told, login), "access_token": "access", "token_type": "Bearer"}
    return login


async def start_refusal(told: Hostile) -> str:
    with pytest.raises(ProviderError) as refused:
        await told.provider().start(wall_time())
    return str(refused.value).replace(told.issuer, "ISSUER")


async def finish_refusal(told: Hostile, login: DeviceLogin) -> str:
    with pytest.raises(IdentityError) as refused:
        await told.provider().finish(login, wall_time())
    return str(refused.value).replace(told.issuer, "ISSUER").removeprefix("the identity provider does not prove who ")


async def test_a_provider_that_behaves_lets_a_person_in() -> None:
    async with hostile() as told:
        login = await begun(told)
        assert (login.user_code, login.interval) == ("ABCD-EFGH", timedelta(seconds=5))
        person = await told.provider().finish(login, wall_time())
        assert person == Person(identity=f"{told.issuer}|248289761001", name="ada", groups=frozenset("a"))
        paths = [path for path, _, _ in told.asked]
        assert paths == [WELL_KNOWN, "/device", "/token", "/jwks"]
        assert told.asked[1][1] == {"client_id": "muster", "scope": "openid profile email", "nonce": login.nonce}


@pytest.mark.parametrize("path", [WELL_KNOWN, "/device"])
async def test_one_that_does_not_answer_is_not_waited_for(path: str) -> None:
    async with hostile() as told:
        told.answers[path] = None
        assert await start_refusal(told) == f"the identity provider did not answer within 1 s: ISSUER{path}"
        told.answers[path] = Raw(OK + "content-type: application/json\r\n\r\n", b" ", endless=True)
        said = await start_refusal(told)
        assert "more than 256 KiB" in said or "did not answer within 1 s" in said


@pytest.mark.parametrize("path", [WELL_KNOWN, "/device"])
async def test_huge_answers_are_not_read_to_their_end(path: str) -> None:
    async with hostile() as told:
        for said in (
            Raw(OK + "\r\n", b" " * 10_000, endless=True),
            Raw(OK + "transfer-encoding: chunked\r\n\r\n", b"10000\r\n" + b" " * 0x10000 + b"\r\n", endless=True),
            {"x": "y" * LARGEST_PROVIDER_ANSWER},
        ):
            told.answers[path] = said
            assert await start_refusal(told) == f"ISSUER{path} says more than 256 KiB, which no provider needs"


async def test_what_unfolds_into_a_huge_answer_is_not_unfolded() -> None:
    async with hostile() as told:
        small = gzip.compress(b"[" * 10_000_000)
        assert len(small) < LARGEST_PROVIDER_ANSWER
        head = f"{OK}content-encoding: gzip\r\ncontent-length: {len(small)}\r\n\r\n"
        told.answers[WELL_KNOWN] = Raw(head, small)
        assert "does not answer with a JSON object" in await start_refusal(told)
        assert told.asked[0][2]["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "said",
    [b"", b"<html>", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"a": NaN, '],
    ids=lambda said: repr(said[:12]),
)
async def test_what_is_no_json_object_is_refused(said: bytes) -> None:
    async with hostile() as told:
        told.answers[WELL_KNOWN] = said
        assert await start_refusal(told) == (
            f"ISSUER{WELL_KNOWN} does not answer with a JSON object; is it an identity provider?"
        )


async def test_a_redirect_is_not_followed() -> None:
    async with hostile() as told:
        told.answers["/elsewhere"] = told.described()
        told.answers[WELL_KNOWN] = Raw(
            f"HTTP/1.1 302 Found\r\nlocation: {told.issuer}/elsewhere\r\ncontent-length: 0\r\n\r\n"
        )
        assert await start_refusal(told) == f"ISSUER is no identity provider: {WELL_KNOWN} answers status 302"
        assert len(told.asked) == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"issuer": "https://evil.example"}, OTHER_ISSUER),
        ({"issuer": None}, "ISSUER calls itself None; --oidc-issuer must be that very URL"),
        ({DEVICE_URL: None}, f"the identity provider has no {DEVICE_URL}; {ASKED}"),
        *(
            (
                {DEVICE_URL: url},
                f"will not ask {url}, the {DEVICE_URL} of the identity provider: only https is encrypted",
            )
            for url in (
                "http://192.0.2.1/",
                "file:///etc/passwd",
                "https://a:b@192.0.2.1/",
                "http://127.0.0.1.example/",
            )
        ),
        ({"token_endpoint": 7}, f"the identity provider has no token_endpoint; {ASKED}"),
        ({"jwks_uri": "x" * 3000}, f"the identity provider has no jwks_uri; {ASKED}"),
    ],
    ids=lambda each: str(each)[:40],
)
async def test_what_it_serves_elsewhere_or_not_at_all_is_not_asked(changed: dict[str, object], said: str) -> None:
    async with hostile() as told:
        told.answers[WELL_KNOWN] = told.described(**changed)
        assert await start_refusal(told) == said


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"device_code": ""}, "begins a login without a device code"),
        ({"device_code": ["x"]}, "begins a login without a device code"),
        ({"user_code": "\x1b]0;x\x07"}, "begins a login without a code that can be read out"),
        ({"user_code": "A" * 65}, "begins a login without a code that can be read out"),
        ({"user_code": "\u0410BCD"}, "begins a login without a code that can be read out"),
        ({"verification_uri": "javascript:alert(1)"}, "sends people to javascript:alert(1), which is no https URL"),
        ({"verification_uri": "http://evil.example/"}, "sends people to http://evil.example/, which is no https URL"),
        ({"verification_uri": "https://a/\x1b[31m"}, "sends people to https://a/?[31m, which is no https URL"),
        ({"verification_uri": None}, "sends people to None, which is no https URL"),
    ],
    ids=lambda each: ascii(each)[:40],
)
async def test_nothing_is_shown_to_people_that_harms_them(changed: dict[str, object], said: str) -> None:
    async with hostile() as told:
        told.answers["/device"] = {**DEVICE, "verification_uri": "https://a.example/", **changed}
        assert await start_refusal(told) == f"the identity provider {said}"


async def test_spans_are_kept_within_reason() -> None:
    async with hostile() as told:
        for interval, seconds in ((0, 5), (-3, 5), ("1", 5), (0.1, 1), (600, 60), (True, 5), (1e308, 5), (7, 7)):
            told.answers["/device"] = {
                **DEVICE,
                "verification_uri": "https://a/",
                "interval": interval,
                "expires_in": 1e18,
            }
            now = wall_time()
            login = await told.provider().start(now)
            assert (login.interval, login.expires_at) == (timedelta(seconds=seconds), now + LIFE)


async def test_one_that_knows_no_nonce_or_scope_is_asked_without() -> None:
    async with hostile() as told:
        well = told.answers["/device"]
        told.answers["/device"] = [(400, {"error": "invalid_request"}), well]
        told.answers[WELL_KNOWN] = told.described(scopes_supported=["openid", "groups"])
        login = await told.provider().start(wall_time())
        assert [form for path, form, _ in told.asked if path == "/device"] == [
            {"client_id": "muster", "scope": "openid groups", "nonce": login.nonce},
            {"client_id": "muster", "scope": "openid profile email"},
        ]


@pytest.mark.parametrize(
    ("methods", "header", "form"),
    [
        (None, "Basic bXVzdGVyOmElM0FiKyUyNQ==", {}),
        (["client_secret_post"], None, {"client_secret": "a:b %"}),
        (["client_secret_post", "client_secret_basic"], "Basic bXVzdGVyOmElM0FiKyUyNQ==", {}),
    ],
)
async def test_the_secret_is_shown_as_the_provider_wants(
    methods: object, header: str | None, form: Mapping[str, str], tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("a:b %\n")
    async with hostile() as told:
        told.answers[WELL_KNOWN] = told.described(token_endpoint_auth_methods_supported=methods)
        await told.provider(client_secret_file=tmp_path / "secret").start(wall_time())
        _, asked, headers = told.asked[1]
        assert headers.get("authorization") == header
        assert {name: value for name, value in asked.items() if name == "client_secret"} == form


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ((400, {"error": "authorization_pending"}), Waiting()),
        ((400, {"error": "slow_down"}), Waiting(slower=True)),
        ((400, {"error": "access_denied"}), PermissionDeniedError("the login was refused at the identity provider")),
        (
            (400, {"error": "expired_token"}),
            PermissionDeniedError("the login was not confirmed in time; begin anew with `muster login`"),
        ),
        (
            (401, {"error": "invalid_client", "error_description": "no\x1bno"}),
            ProviderError("the identity provider does not finish the login: invalid_client (no?no)"),
        ),
        ((400, b"<html>"), ProviderError("the identity provider does not finish the login: status 400")),
        ((503, {}), UnreachableError("the identity provider does not answer: ISSUER/token: status 503")),
    ],
    ids=lambda each: str(each)[:50],
)
async def test_each_answer_to_the_question_whether_it_was_confirmed(answer: object, outcome: object) -> None:
    async with hostile() as told:
        login = await begun(told)
        told.answers["/token"] = answer
        try:
            found: object = await told.provider().finish(login, wall_time())
        except MusterError as error:
            found = error
        assert type(found) is type(outcome)
        assert str(found).replace(told.issuer, "ISSUER") == str(outcome)


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ({}, "it gives no ID token; does the client have the scope openid?"),
        ({"id_token": 7}, "it gives no ID token; does the client have the scope openid?"),
        ({"id_token": "a.b.c"}, "its token is no signed token"),
        ({"id_token": "x" * 100_000}, "its token is no signed token"),
    ],
    ids=lambda each: str(each)[:30],
)
async def test_a_login_without_proof_ends(said: object, cause: str) -> None:
    async with hostile() as told:
        login = await begun(told)
        told.answers["/token"] = said
        assert await finish_refusal(told, login) == f"you are: {cause}"


async def test_tokens_of_others_let_nobody_in() -> None:
    async with hostile() as told:
        login = await begun(told)
        for changed, cause in (
            ({"iss": "https://evil.example"}, "its token is of another issuer, https://evil.example"),
            ({"aud": "other"}, "its token is for other, not for the client muster"),
            ({"nonce": "replayed"}, "its token is of another login"),
            ({"exp": 1}, "its token has expired; are the clocks set?"),
        ):
            told.answers["/token"] = {"id_token": token(told, login, **changed)}
            assert await finish_refusal(told, login) == f"you are: {cause}"


async def test_keys_are_asked_for_at_each_login() -> None:
    async with hostile() as told:
        login = await begun(told)
        told.answers["/jwks"] = published(OTHER)
        assert await finish_refusal(told, login) == "you are: its token is signed with a key that it does not publish"
        told.answers["/jwks"] = published(OTHER, RSA)
        assert isinstance(await told.provider().finish(login, wall_time()), Person)
        told.answers["/jwks"] = (404, {})
        assert await finish_refusal(told, login) == "you are: its keys cannot be read: status 404"


async def test_what_the_token_leaves_out_is_asked_for_and_must_be_of_the_same_person() -> None:
    async with hostile() as told:
        login = await begun(told)
        told.answers["/token"] = {"id_token": token(told, login, groups=None), "access_token": "the access token"}
        told.answers["/me"] = {"sub": "248289761001", "groups": ["a", "b"], "preferred_username": "root"}
        person = await told.provider().finish(login, wall_time())
        assert person == Person(identity=f"{told.issuer}|248289761001", name="ada", groups=frozenset("ab"))
        assert told.asked[-1][2]["authorization"] == "Bearer the access token"
        told.answers["/me"] = {"sub": "somebody else", "groups": ["admins"]}
        assert await finish_refusal(told, login) == (
            "you are: it tells about another person than the one who has logged in"
        )
        told.answers["/me"] = (401, {"error": "invalid_token"})
        assert await finish_refusal(told, login) == (
            "you are: it does not tell more of you when it is asked: invalid_token"
        )


async def test_a_provider_that_is_away_once_the_code_is_used_up_ends_the_login() -> None:
    async with hostile() as told:
        login = await begun(told)
        told.answers["/jwks"] = (503, {})
        said = await finish_refusal(told, login)
        assert said == "you are: the identity provider does not answer: ISSUER/jwks: status 503"


def test_a_provider_elsewhere_sends_nobody_to_the_coordinators_own_machine() -> None:
    told = Hostile(issuer="https://login.example.org")
    assert described(told.described(), told.issuer).token == "https://login.example.org/token"
    for name in (DEVICE_URL, "token_endpoint", "jwks_uri", "userinfo_endpoint"):
        with pytest.raises(ProviderError, match=f"will not ask http://127.0.0.1:80/, the {name} of"):
            described(told.described(**{name: "http://127.0.0.1:80/"}), told.issuer)


async def test_the_desk_asks_as_often_as_the_provider_wants() -> None:
    async with hostile() as told:
        desk, now = LoginDesk(told.provider()), wall_time()
        shown, login = await desk.start("here", now)

        def asked() -> int:
            return sum(path == "/token" for path, _, _ in told.asked)

        told.answers["/token"] = (400, {"error": "authorization_pending"})
        assert [await desk.finish(shown, now) for _ in range(3)] == [timedelta(seconds=5)] * 3
        assert asked() == 1
        told.answers["/token"] = (400, {"error": "slow_down"})
        assert await desk.finish(shown, now + timedelta(seconds=5)) == timedelta(seconds=10)
        assert await desk.finish(shown, now + timedelta(seconds=14)) == timedelta(seconds=10)
        assert asked() == 2
        told.answers["/token"] = {"id_token": token(told, login)}
        told.answers["/jwks"] = published(RSA)
        assert isinstance(await desk.finish(shown, now + timedelta(seconds=15)), Person)
        with pytest.raises(UnknownNameError, match="there is no such login"):
            await desk.finish(shown, now + timedelta(seconds=16))


async def test_a_provider_that_is_away_for_a_moment_ends_no_login() -> None:
    async with hostile() as told:
        desk, now = LoginDesk(told.provider()), wall_time()
        shown, _ = await desk.start("here", now)
        told.answers["/token"] = (502, {})
        waited = timedelta()
        for expected in (10, 20)[: FAILURES - 1]:
            assert await desk.finish(shown, now + waited) == timedelta(seconds=expected)
            waited += timedelta(seconds=expected)
        with pytest.raises(UnreachableError, match="status 502"):
            await desk.finish(shown, now + waited)
        with pytest.raises(UnknownNameError):
            await desk.finish(shown, now + waited)


async def test_the_desk_has_room_for_so_many_and_no_more() -> None:
    async with hostile() as told:
        desk, now = LoginDesk(told.provider()), wall_time()
        for number in range(MOST_LOGINS_WAITING):
            await desk.start(f"address {number // MOST_FROM_ONE}", now)
        with pytest.raises(ExhaustedError, match="too many logins wait to be confirmed"):
            await desk.start("another address", now)
        later = now + timedelta(seconds=601)
        await desk.start("another address", later)
        for _ in range(MOST_FROM_ONE - 1):
            await desk.start("another address", later)
        with pytest.raises(ExhaustedError, match="too many logins from your address"):
            await desk.start("another address", later)


async def test_a_login_that_cannot_begin_takes_no_room() -> None:
    async with hostile() as told:
        desk, now = LoginDesk(told.provider()), wall_time()
        told.answers["/device"] = (400, {"error": "unauthorized_client"})
        for _ in range(MOST_FROM_ONE + 1):
            with pytest.raises(ProviderError, match="does not begin a login: unauthorized_client"):
                await desk.start("here", now)


async def test_what_a_login_needs_is_in_no_text_of_it() -> None:
    async with hostile() as told:
        login = await begun(told)
        assert "d-secret" not in repr(login)
        assert "d-secret" not in repr(replace(login, user_code="x"))


def test_authorities_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    for content in (None, "no certificate"):
        if content is not None:
            (tmp_path / "ca.pem").write_text(content)
        with pytest.raises(MusterError, match=r"cannot read the authorities in .*ca\.pem"):
            Web(tmp_path / "ca.pem")
