"""An identity provider in a few values: keys, and what it says of a person."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from joserfc import jwk, jws, jwt

from coordinator.logins.token import Expected

NOW = datetime(2026, 11, 21, 16, tzinfo=UTC)
ISSUER, CLIENT, NONCE = "https://login.example.org/realms/main", "muster", "a-nonce"
EXPECTED = Expected(issuer=ISSUER, client_id=CLIENT, nonce=NONCE)

RSA = jwk.RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"})
OTHER = jwk.RSAKey.generate_key(2048, {"kid": "other", "use": "sig"})
EC = jwk.ECKey.generate_key("P-256", {"kid": "ec"})


def claims(**changed: object) -> dict[str, Any]:
    """What the token of a login says; None takes a claim away."""
    seconds = int(NOW.timestamp())
    said = {"iss": ISSUER, "sub": "248289761001", "aud": CLIENT, "nonce": NONCE, "iat": seconds, "exp": seconds + 300}
    return {name: value for name, value in {**said, **changed}.items() if value is not None}


def signed(key: jwk.Key, said: Mapping[str, Any], algorithm: str = "RS256", **header: object) -> str:
    """A token; the header names the key unless it is told otherwise."""
    named = {"alg": algorithm, "kid": key.kid, **header}
    registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    given = {name: value for name, value in named.items() if value is not None}
    return jwt.encode(given, dict(said), key, registry=registry)


def published(*keys: jwk.Key) -> dict[str, Any]:
    """What the provider publishes of its keys."""
    return {"keys": [key.as_dict(private=False) for key in keys]}
