"""What names a content: a SHA-256 in hexadecimal digits. No hash is loaded for looking at one."""

import re

_DIGEST = re.compile(r"[0-9a-f]{64}")


def is_digest(text: str) -> bool:
    """Whether a text is a SHA-256 in lower-case hexadecimal digits."""
    return _DIGEST.fullmatch(text) is not None
