"""What a signed token of an identity provider says, once proven; the only module that knows the library for it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from joserfc import jwk, jws, jwt
from joserfc.errors import JoseError

from coordinator.logins.said import Json, shown
from coordinator.logins.web import ProviderError

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "Ed25519"),
)
"""Signatures with a key pair: whoever can verify HS256 can forge it, and `none` proves nothing."""
LEEWAY = timedelta(seconds=60)
"""How far the provider's clock may be from ours."""
OLDEST_LOGIN_TOKEN = timedelta(minutes=10)
"""A token is fetched as soon as it is made; one that is older was not made for this login."""
MOST_KEYS = 100
"""The most keys that are tried."""
LONGEST_LOGIN_TOKEN = 64 * 1024
"""Characters of a token."""
SUBJECT = 255
"""Characters of a subject, as the standard has it."""
SMALLEST_RSA = 2048

_KINDS = ("RSA", "EC", "OKP")
_HEADER = 16 * 1024
"""Characters of a header, which may have whole certificates in it."""


def _registry() -> jws.JWSRegistry:
    # Members of the header that nobody knows are to be ignored, unless `crit` lists them.
    registry = jws.JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    registry.max_header_length = _HEADER
    return registry


_REGISTRY = _registry()


class IdentityError(ProviderError):
    """What the provider says of a person is not proven; says why."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the identity provider does not prove who you are: {cause}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the token of a login must say."""

    issuer: str
    client_id: str
    nonce: str
    """Another one is refused."""
    says_nonce: bool = False
    """Whether it must be there; providers that do not know it in the device flow leave it out."""


def verified(token: str, keys: Json, expected: Expected, now: datetime) -> Json:
    """The claims of a token; raises IdentityError for one that is not proven or not meant."""
    claims = _signed(token, _candidates(token, keys))
    _meant(claims, expected)
    _timely(claims, now)
    return claims


def _candidates(token: str, keys: Json) -> Sequence[jwk.Key]:
    """The keys that may have signed it."""
    if len(token) > LONGEST_LOGIN_TOKEN or not token.isascii():
        raise IdentityError("its token is no signed token")
    try:
        header = jws.extract_compact(token.encode(), registry=_REGISTRY).headers()
    except (JoseError, ValueError, RecursionError):
        raise IdentityError("its token is no signed token") from None
    algorithm, name = header.get("alg"), header.get("kid")
    if algorithm not in ALGORITHMS:
        raise IdentityError(
            f"its token is signed with {shown(str(algorithm), 20)}; accepted are {', '.join(ALGORITHMS)}"
        )
    listed = keys.get("keys")
    found = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    fitting = list(_readable(each for each in found[:MOST_KEYS] if name is None or each.get("kid") == name))
    if not fitting:
        raise IdentityError("its token is signed with a key that it does not publish")
    return fitting


def _readable(listed: Iterator[Mapping[str, object]]) -> Iterator[jwk.Key]:
    for each in listed:
        if each.get("kty") not in _KINDS or each.get("use", "sig") != "sig" or _short(each):
            continue
        try:
            key = jwk.import_key(cast("jwk.DictKey", dict(each)))
            key.public_key  # noqa: B018 - reads it, and so finds what is wrong with it
        except (JoseError, ValueError, TypeError, KeyError):
            continue
        if not isinstance(key, jwk.RSAKey) or key.public_key.key_size >= SMALLEST_RSA:
            yield key


def _short(listed: Mapping[str, object]) -> bool:
    # Told by its text, six bits a letter: the library would warn of it on stderr.
    return listed.get("kty") == "RSA" and len(str(listed.get("n"))) * 6 < SMALLEST_RSA


def _signed(token: str, keys: Sequence[jwk.Key]) -> Json:
    cause: Exception | None = None
    for key in keys:
        try:
            return jwt.decode(token, key, registry=_REGISTRY).claims
        except (JoseError, ValueError, TypeError, RecursionError) as error:
            cause = error
    raise IdentityError("the signature of its token is wrong") from cause


def _meant(claims: Json, expected: Expected) -> None:
    issuer, audience, party = claims.get("iss"), claims.get("aud"), claims.get("azp")
    if issuer != expected.issuer:
        raise IdentityError(f"its token is of another issuer, {shown(str(issuer))}")
    audiences = audience if isinstance(audience, list) else [audience]
    if expected.client_id not in audiences:
        raise IdentityError(f"its token is for {shown(str(audience))}, not for the client {expected.client_id}")
    if (party is not None or len(audiences) > 1) and party != expected.client_id:
        raise IdentityError(f"its token was given to {shown(str(party))}, not to the client {expected.client_id}")
    if claims.get("nonce", "" if expected.says_nonce else expected.nonce) != expected.nonce:
        raise IdentityError("its token is of another login")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT or not subject.isprintable():
        raise IdentityError("its token does not say whom it is about")


def _timely(claims: Json, now: datetime) -> None:
    made, ends, begins = (_moment(claims, name) for name in ("iat", "exp", "nbf"))
    seconds, leeway = now.timestamp(), LEEWAY.total_seconds()
    if made is None or ends is None:
        raise IdentityError("its token does not say from when to when it counts")
    if seconds >= ends + leeway:
        raise IdentityError("its token has expired; are the clocks set?")
    if max(made, begins or made) > seconds + leeway:
        raise IdentityError("its token is from the future; are the clocks set?")
    if made < seconds - OLDEST_LOGIN_TOKEN.total_seconds():
        raise IdentityError("its token is too old to be of this login; are the clocks set?")


def _moment(claims: Json, name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**53:
        raise IdentityError(f"its token has no time in {name}")
    return float(value)
