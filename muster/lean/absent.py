"""Modules that count as not installed, as libraries then load less.

asyncio loads OpenSSL where it is there, and works without: gRPC brings the TLS of clients and agents along. It is a
tenth of the memory of an agent that has nothing to do.
"agent resident memory, idle" of `make bench ONLY=resident` pays for this.
"""

import sys
from collections.abc import Iterable

AGENTS_DO_WITHOUT = ("ssl", "bz2", "lzma")
"""What asyncio and shutil load where it is there."""


def leave_out(*names: str) -> tuple[str, ...]:
    """Have modules count as not installed from here on; those that were not loaded before, which are told."""
    absent = tuple(name for name in names if name not in sys.modules)
    for name in absent:
        sys.modules[name] = None  # type: ignore[assignment]  # Python's mark of a module that is not there
    return absent


def take_back(names: Iterable[str]) -> None:
    """Have them be there again for whoever does want them; harmless for those that are."""
    for name in names:
        if name in sys.modules and sys.modules[name] is None:
            del sys.modules[name]
