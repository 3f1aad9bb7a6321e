"""A session: the token of whoever has signed in, sealed into a cookie. The console keeps no list of them."""

import base64
import binascii
import json
from dataclasses import dataclass, field, replace
from pathlib import Path

from muster.domain.errors import MusterError, NotSignedInError
from muster.trust.files import write_private
from muster.trust.sealing import KEY_BYTES, SealError, SealingKey, new_sealing_key, seal, unseal

LONGEST_REST = 12 * 3600.0
"""Seconds without a request after which a session has ended."""
RENEWED_AFTER = 300.0
"""Seconds after which a session that is used is written anew, so that it rests from then on."""
KEY_FILE = "session-key"
_BOUND_TO = b"session of a console"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Somebody who has signed in."""

    token: str = field(repr=False)
    used_at: float
    """When it was written last, in seconds since 1970."""
    own: bool = False
    """Whether the token was made for this session, and is revoked at its end."""


class SessionSeal:
    """Writes sessions and reads them: nobody else can do either."""

    def __init__(self, key: SealingKey) -> None:
        self._key = key

    def written(self, session: Session) -> str:
        """A session as the value of a cookie."""
        content = json.dumps({"token": session.token, "used_at": session.used_at, "own": session.own}).encode()
        return base64.urlsafe_b64encode(seal(self._key, content, _BOUND_TO)).decode().rstrip("=")

    def read(self, text: str, now: float) -> Session:
        """The session that was written; raises NotSignedInError where it has ended, or another key has written it."""
        try:
            sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            content = json.loads(unseal([self._key], sealed, _BOUND_TO))
        except (binascii.Error, ValueError, SealError) as error:
            raise NotSignedInError("this session does not count; sign in again") from error
        session = Session(token=content["token"], used_at=content["used_at"], own=content.get("own", False))
        if now - session.used_at > LONGEST_REST:
            raise NotSignedInError(f"this session has rested for {LONGEST_REST / 3600:.0f} hours; sign in again")
        return session

    def renewed(self, session: Session, now: float) -> Session | None:
        """The session as it is to be written anew; None while that can wait."""
        return replace(session, used_at=now) if now - session.used_at > RENEWED_AFTER else None


def session_key(state: Path | None) -> SealingKey:
    """The key that is kept in a directory, and is made there where there is none. Raises MusterError.

    Without a directory it is new: sessions then end with the console.
    """
    if state is None:
        return new_sealing_key()
    file = state / KEY_FILE
    try:
        secret = file.read_bytes()
    except FileNotFoundError:
        return _kept_key(file)
    except OSError as error:
        raise MusterError(f"cannot read the key of sessions {file}: {error.strerror}") from error
    if len(secret) != KEY_BYTES:
        raise MusterError(f"{file} is no key of sessions; remove it, and everybody has to sign in again")
    return SealingKey(secret)


def _kept_key(file: Path) -> SealingKey:
    made = new_sealing_key()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise MusterError(f"cannot make the directory {file.parent}: {error.strerror}") from error
    write_private(file, made.secret)
    return made
