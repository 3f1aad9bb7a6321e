"""Files that were not there before, written with the SHA-256 of what goes into them."""

import os
from collections.abc import Iterable
from hashlib import sha256

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""How such a file is opened: nothing is followed or written over."""


def write_hashed(descriptor: int, pieces: Iterable[bytes]) -> str:
    """Write pieces one after the other; the SHA-256 of them all, in hexadecimal. Raises OSError."""
    found = sha256()
    for piece in pieces:
        found.update(piece)
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    return found.hexdigest()
