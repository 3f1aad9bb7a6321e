"""Values that are kept encrypted: AES-256-GCM under a key that lies elsewhere.

What is sealed begins with a version and the name of its key, so that a wrong key is told from a row that was changed.
"""

import hashlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from muster.domain.errors import MusterError

KEY_BYTES = 32

_VERSION = b"\x01"
_NAME_BYTES = 8
_NONCE_BYTES = 12
_HEAD_BYTES = len(_VERSION) + _NAME_BYTES


class SealError(MusterError):
    """What is sealed cannot be opened: with another key, or it was changed; never says what is in it."""


@dataclass(frozen=True, slots=True)
class SealingKey:
    """A key of 256 bits."""

    secret: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """The name by which it is told from others; it says nothing of the key itself."""
        return hashlib.sha256(b"name of a sealing key\0" + self.secret).digest()[:_NAME_BYTES].hex()


def new_sealing_key() -> SealingKey:
    """A key that nobody has yet."""
    return SealingKey(secrets.token_bytes(KEY_BYTES))


def seal(key: SealingKey, content: bytes, bound_to: bytes) -> bytes:
    """The content, readable with the key only, and only in the place that `bound_to` names."""
    head, nonce = _VERSION + bytes.fromhex(key.name), os.urandom(_NONCE_BYTES)
    return head + nonce + AESGCM(key.secret).encrypt(nonce, content, head + bound_to)


def unseal(keys: Sequence[SealingKey], sealed: bytes, bound_to: bytes) -> bytes:
    """What was sealed with one of the keys for that place; raises SealError."""
    name = key_name(sealed)
    key = next((key for key in keys if key.name == name), None)
    if key is None:
        raise SealError(f"it was sealed with the key {name}, which is not here")
    nonce, rest = sealed[_HEAD_BYTES : _HEAD_BYTES + _NONCE_BYTES], sealed[_HEAD_BYTES + _NONCE_BYTES :]
    try:
        return AESGCM(key.secret).decrypt(nonce, rest, sealed[:_HEAD_BYTES] + bound_to)
    except (InvalidTag, ValueError):
        raise SealError("it was changed, or belongs somewhere else") from None


def key_name(sealed: bytes) -> str:
    """The name of the key with which it was sealed; raises SealError for what is not sealed."""
    if sealed[:1] != _VERSION or len(sealed) < _HEAD_BYTES + _NONCE_BYTES:
        raise SealError("it is not what this version seals")
    return sealed[1:_HEAD_BYTES].hex()


def sealing_key_of(passphrase: str, salt: bytes) -> SealingKey:
    """The key that a passphrase stands for; slow on purpose, so that few passphrases can be tried."""
    secret = hashlib.scrypt(passphrase.encode(), salt=salt, n=1 << 17, r=8, p=1, maxmem=256 << 20, dklen=KEY_BYTES)
    return SealingKey(secret)
