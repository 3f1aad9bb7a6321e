"""A login in a browser: where the person is sent, and what must come back (authorization code with PKCE, RFC 7636)."""

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLogin:
    """What a login that was begun keeps until its person comes back."""

    redirect_uri: str
    """Where the provider sends the person back."""
    state: str = field(repr=False)
    """What the provider gives back as it is: the answer to another login has another one."""
    nonce: str
    """What the provider's token must say."""
    verifier: str = field(repr=False)
    """What proves to the provider that the code was asked for here."""

    @property
    def challenge(self) -> str:
        """What the provider is told of the verifier beforehand."""
        hashed = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(hashed).decode().rstrip("=")


def new_code_login(redirect_uri: str) -> CodeLogin:
    """A login that nobody has begun yet."""
    state, nonce, verifier = (secrets.token_urlsafe(_SECRET_BYTES) for _ in range(3))
    return CodeLogin(redirect_uri=redirect_uri, state=state, nonce=nonce, verifier=verifier)


def url_of(login: CodeLogin, endpoint: str, client_id: str, scopes: str) -> str:
    """Where the person logs in, at this endpoint of the provider."""
    said = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": login.redirect_uri,
        "scope": scopes,
        "state": login.state,
        "nonce": login.nonce,
        "code_challenge": login.challenge,
        "code_challenge_method": "S256",
    }
    return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(said)}"
