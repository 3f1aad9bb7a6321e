"""Tokens: what is handed to people, programs and nodes once, and what is kept of it.

A secret has 256 random bits, so its plain SHA-256 is kept: nobody can try all of them, salt or no salt.
"""

import os
import re
from dataclasses import dataclass, field

from muster.domain.errors import MusterError

JOIN_PREFIX = "muster-join"
API_PREFIX = "muster-token"

_ID_BYTES = 5
_SECRET_BYTES = 32
_JOIN = re.compile(rf"{JOIN_PREFIX}-([0-9a-f]{{10}})-([0-9a-f]{{64}})-([0-9a-f]{{64}})")
_API = re.compile(rf"{API_PREFIX}-([0-9a-f]{{10}})-([0-9a-f]{{64}})")


class TokenFormError(MusterError):
    """A text is no token; does not repeat the text, which may be half a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinToken:
    """What a node joins with: who lets it in, and how it knows the coordinator."""

    id: str
    secret: str = field(repr=False)
    authority: str
    """Fingerprint of the key of the fleet's authority."""

    def __str__(self) -> str:
        return f"{JOIN_PREFIX}-{self.id}-{self.secret}-{self.authority}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    """What a person or a program is known by to the coordinator."""

    id: str
    secret: str = field(repr=False)

    def __str__(self) -> str:
        return f"{API_PREFIX}-{self.id}-{self.secret}"


def new_join_token(authority: str) -> JoinToken:
    """A token that nobody has yet."""
    return JoinToken(id=os.urandom(_ID_BYTES).hex(), secret=os.urandom(_SECRET_BYTES).hex(), authority=authority)


def new_api_token() -> ApiToken:
    """A token that nobody has yet."""
    return ApiToken(id=os.urandom(_ID_BYTES).hex(), secret=os.urandom(_SECRET_BYTES).hex())


def parse_join_token(text: str) -> JoinToken:
    """The parts of a join token; raises TokenFormError."""
    found = _JOIN.fullmatch(text.strip())
    if found is None:
        raise TokenFormError(f"that is no join token: one begins with {JOIN_PREFIX}- and has 151 characters")
    return JoinToken(id=found[1], secret=found[2], authority=found[3])


def parse_api_token(text: str) -> ApiToken:
    """The parts of an API token; raises TokenFormError."""
    found = _API.fullmatch(text.strip())
    if found is None:
        raise TokenFormError(f"that is no token: one begins with {API_PREFIX}- and has 88 characters")
    return ApiToken(id=found[1], secret=found[2])


def digest(secret: str) -> str:
    """What is kept of a secret."""
    import hashlib  # noqa: PLC0415 - OpenSSL, which agents do without

    return hashlib.sha256(secret.encode()).hexdigest()


def is_secret_of(secret: str, kept: str) -> bool:
    """Whether a secret is the one that `digest` gave `kept` for; takes as long for every wrong one."""
    import hmac  # noqa: PLC0415 - OpenSSL, which agents do without

    return hmac.compare_digest(digest(secret), kept)
