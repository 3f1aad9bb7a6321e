"""A bundle that a coordinator keeps, as it is told of."""

import re
from dataclasses import dataclass

BUNDLE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}\.tar")
"""What it may be called: a file name, and no path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBundle:
    """What is known of it."""

    name: str
    size: int
    """Bytes."""
    sha256: str
    version: str
    """The version of Muster."""
    platforms: tuple[str, ...]
    signer: str = ""
    """Fingerprint of the key that signed it; empty: nobody did."""

    @property
    def age(self) -> tuple[tuple[int, ...], str]:
        """Newer versions are greater."""
        return tuple(int(each) for each in re.findall(r"\d+", self.version)), self.version
