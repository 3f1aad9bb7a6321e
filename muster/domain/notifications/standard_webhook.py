"""How events are signed for webhooks: as Standard Webhooks have it; pure.

See https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping

SECRET_PREFIX = "whsec_"  # noqa: S105 - how such keys begin, no key
KEY_SIZES = range(24, 65)
"""Bytes that a key may have."""


def webhook_key(text: str) -> bytes | None:
    """The key that a text like `whsec_MfKQ9r8G…` holds; None: it is none."""
    try:
        key = base64.b64decode(text.strip().removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) in KEY_SIZES else None


def signed_headers(keys: Iterable[bytes], message: str, at: int, body: bytes) -> Mapping[str, str]:
    """The headers by which a receiver knows who has sent this body: `message` is its id, `at` the time in seconds."""
    content = f"{message}.{at}.".encode() + body
    signatures = (base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode() for key in keys)
    return {
        "webhook-id": message,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
