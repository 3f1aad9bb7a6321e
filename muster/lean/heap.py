"""How the C library, in which gRPC has its memory, deals with that of many threads and of thousands of connections.

"5,000 nodes: coordinator memory" of `make bench ONLY=scale` pays for this, and
"agent resident memory, idle" of `make bench ONLY=resident` pays for it as well.
"""

import ctypes
from typing import Any

_M_ARENA_MAX = -8
ARENAS = 2
"""Parts of the heap. The C library would make eight for each CPU; what is free in one is of no use in the others."""


def keep_together() -> None:
    """Have all threads share a few parts of the heap; counts for threads that begin later."""
    _call("mallopt", _M_ARENA_MAX, ARENAS)


def give_back() -> None:
    """Give back to the system what is free. Takes some tens of milliseconds after thousands of connections."""
    _call("malloc_trim", 0)


def _call(name: str, *values: int) -> None:
    function: Any = getattr(ctypes.CDLL(None), name, None)
    if function is not None:  # only glibc has it
        function(*values)
