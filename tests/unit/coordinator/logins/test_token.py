"""What counts as proof of who somebody is, and what does not."""

import base64
import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwk

from coordinator.logins.token import IdentityError, verified
from tests.unit.coordinator.logins.provider_values import (
    CLIENT,
    EC,
    EXPECTED,
    ISSUER,
    NOW,
    OTHER,
    RSA,
    claims,
    published,
    signed,
)

KEYS = published(RSA, EC)
SECONDS = int(NOW.timestamp())


def refusal(token: str, keys: dict[str, Any] = KEYS) -> str:
    with pytest.raises(IdentityError) as refused:
        verified(token, keys, EXPECTED, NOW)
    return str(refused.value).removeprefix("the identity provider does not prove who you are: ")


def parts(**header: object) -> str:
    """A header and claims without a signature."""
    texts = (json.dumps(header), json.dumps(claims()))
    return ".".join(base64.urlsafe_b64encode(text.encode()).decode().rstrip("=") for text in texts)


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [(RSA, "RS256"), (RSA, "RS512"), (RSA, "PS256"), (EC, "ES256")],
    ids=lambda each: str(each)[:6],
)
def test_what_is_signed_with_a_published_key_is_believed(key: jwk.Key, algorithm: str) -> None:
    assert verified(signed(key, claims(groups=["a"]), algorithm), KEYS, EXPECTED, NOW) == claims(groups=["a"])


def test_headers_that_nobody_knows_are_ignored() -> None:
    assert verified(signed(RSA, claims(), colour="red"), KEYS, EXPECTED, NOW) == claims()


def test_a_token_that_does_not_name_its_key_is_tried_with_all() -> None:
    nameless = jwk.RSAKey.import_key({**RSA.as_dict(private=False), "kid": "another"})
    assert verified(signed(RSA, claims(), kid=None), published(OTHER, nameless), EXPECTED, NOW) == claims()
    assert refusal(signed(RSA, claims(), kid=None), published(OTHER)) == "the signature of its token is wrong"


def test_a_wrong_signature_is_refused() -> None:
    forged = signed(OTHER, claims(), kid="rsa")
    assert refusal(forged) == "the signature of its token is wrong"
    header, _, rest = signed(RSA, claims()).partition(".")
    body = base64.urlsafe_b64encode(json.dumps(claims(sub="somebody else")).encode()).decode().rstrip("=")
    assert refusal(f"{header}.{body}.{rest.partition('.')[2]}") == "the signature of its token is wrong"


def test_a_key_that_is_not_published_is_refused() -> None:
    assert refusal(signed(OTHER, claims())) == "its token is signed with a key that it does not publish"


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "HS256", "RS1", "dir", "", 7, None, ["RS256"]])
def test_other_algorithms_prove_nothing(algorithm: object) -> None:
    for signature in ("", "AAAA"):
        said = refusal(f"{parts(alg=algorithm, kid='rsa')}.{signature}")
        assert said.startswith("its token is ")


def test_a_public_key_is_no_shared_secret() -> None:
    text = RSA.as_pem(private=False)
    for secret in (text, json.dumps(RSA.as_dict(private=False)).encode()):
        jumble = jwk.OctKey.import_key(base64.b64encode(secret), {"kid": "rsa"})
        assert "signed with HS256" in refusal(signed(jumble, claims(), "HS256"))


def test_a_key_of_another_kind_or_use_is_not_tried() -> None:
    confused = signed(EC, claims(), "ES256", kid="rsa")
    assert refusal(confused) == "the signature of its token is wrong"
    for_secrets = {"keys": [{**RSA.as_dict(private=False), "use": "enc"}]}
    assert refusal(signed(RSA, claims()), for_secrets) == "its token is signed with a key that it does not publish"
    other_algorithm = {"keys": [{**RSA.as_dict(private=False), "alg": "RS512"}]}
    assert refusal(signed(RSA, claims()), other_algorithm) == "the signature of its token is wrong"
    shared = {"keys": [{"kty": "oct", "kid": "rsa", "k": "c2VjcmV0"}]}
    assert refusal(signed(RSA, claims()), shared) == "its token is signed with a key that it does not publish"


def test_a_key_that_is_too_short_is_not_tried() -> None:
    short = {
        "kty": "RSA",
        "kid": "short",
        "e": "AQAB",
        "n": base64.urlsafe_b64encode(b"\xff" * 128).decode().rstrip("="),
    }
    token = signed(RSA, claims(), kid="short")
    assert refusal(token, {"keys": [short]}) == "its token is signed with a key that it does not publish"


@pytest.mark.parametrize(
    "keys",
    [{}, {"keys": None}, {"keys": {}}, {"keys": [None, "x", 7]}, {"keys": [{"kty": "RSA", "kid": "rsa"}]}],
    ids=str,
)
def test_keys_that_are_none_are_not_tried(keys: dict[str, Any]) -> None:
    assert refusal(signed(RSA, claims()), keys) == "its token is signed with a key that it does not publish"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"iss": "https://evil.example"}, "its token is of another issuer, https://evil.example"),
        ({"iss": ISSUER + "/"}, f"its token is of another issuer, {ISSUER}/"),
        ({"iss": [ISSUER]}, f"its token is of another issuer, ['{ISSUER}']"),
        ({"iss": None}, "its token is of another issuer, None"),
        ({"aud": "other"}, "its token is for other, not for the client muster"),
        ({"aud": ["other"]}, "its token is for ['other'], not for the client muster"),
        ({"aud": None}, "its token is for None, not for the client muster"),
        ({"aud": {"muster": 1}}, "its token is for {'muster': 1}, not for the client muster"),
        ({"aud": [CLIENT, "other"]}, "its token was given to None, not to the client muster"),
        ({"azp": "other"}, "its token was given to other, not to the client muster"),
        ({"nonce": "of another login"}, "its token is of another login"),
        ({"sub": None}, "its token does not say whom it is about"),
        ({"sub": ""}, "its token does not say whom it is about"),
        ({"sub": 7}, "its token does not say whom it is about"),
        ({"sub": "x" * 256}, "its token does not say whom it is about"),
        ({"sub": "a\nb"}, "its token does not say whom it is about"),
        ({"exp": None}, "its token does not say from when to when it counts"),
        ({"iat": None}, "its token does not say from when to when it counts"),
        ({"exp": SECONDS - 60}, "its token has expired; are the clocks set?"),
        ({"exp": "tomorrow"}, "its token has no time in exp"),
        ({"exp": True}, "its token has no time in exp"),
        ({"exp": 1e300}, "its token has no time in exp"),
        ({"iat": SECONDS + 61}, "its token is from the future; are the clocks set?"),
        ({"nbf": SECONDS + 61}, "its token is from the future; are the clocks set?"),
        ({"iat": SECONDS - 601}, "its token is too old to be of this login; are the clocks set?"),
    ],
    ids=str,
)
def test_a_token_that_is_not_meant_is_refused(changed: dict[str, object], said: str) -> None:
    assert refusal(signed(RSA, claims(**changed))) == said


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": SECONDS - 59},
        {"iat": SECONDS + 60},
        {"nonce": None},
        {"azp": CLIENT},
        {"aud": [CLIENT]},
        {"aud": [CLIENT, "other"], "azp": CLIENT},
    ],
    ids=str,
)
def test_clocks_may_differ_a_little_and_audiences_be_many(changed: dict[str, object]) -> None:
    assert verified(signed(RSA, claims(**changed)), KEYS, EXPECTED, NOW) == claims(**changed)


def test_keys_may_change_between_logins() -> None:
    before, after = published(RSA), published(OTHER)
    assert verified(signed(RSA, claims()), before, EXPECTED, NOW + timedelta(seconds=1)) == claims()
    assert verified(signed(OTHER, claims()), after, EXPECTED, NOW + timedelta(seconds=1)) == claims()
    assert refusal(signed(RSA, claims()), after) == "its token is signed with a key that it does not publish"


@given(st.text() | st.from_regex(r"[A-Za-z0-9_-]{0,40}\.[A-Za-z0-9_-]{0,40}\.[A-Za-z0-9_-]{0,40}", fullmatch=True))
def test_nonsense_is_refused_and_breaks_nothing(token: str) -> None:
    with pytest.raises(IdentityError):
        verified(token, KEYS, EXPECTED, NOW)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["keys", "kty", "n", "e", "kid", "use", "crv", "x"]) | st.text(), inner, max_size=4
            )
        ),
        max_leaves=12,
    )
)
def test_nonsense_in_place_of_keys_breaks_nothing(keys: object) -> None:
    with pytest.raises(IdentityError):
        verified(signed(RSA, claims()), {"keys": keys}, EXPECTED, NOW)


def test_huge_and_deep_tokens_are_refused() -> None:
    assert refusal(signed(RSA, claims(groups=["x" * 100] * 1000))) == "its token is no signed token"
    deep = base64.urlsafe_b64encode(b"[" * 20_000).decode().rstrip("=")
    assert refusal(f"{deep}.{deep[:100]}.AAAA") == "its token is no signed token"
