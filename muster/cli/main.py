"""The entry point of the program `muster`; what it has for commands is in `program`.

It imports next to nothing itself: how the rest is loaded is settled here first.
"""

import gc
import os
import sys
import threading

_YOUNG = 50_000
"""Objects that are made before anybody looks for garbage among them; modules make thousands, and none of them is."""

_DONE_WITHOUT = ("ssl", "bz2", "lzma")
"""What is loaded by others where it is there."""

_COMPLETION = "_MUSTER_COMPLETE"
"""Set by the shell when it asks what may come next."""


def main() -> None:
    """The entry point of the console script."""
    settle()
    from muster.cli.program import program  # noqa: PLC0415 - after what is settled above

    me = threading.current_thread()
    try:
        program(() if _COMPLETION in os.environ else sys.argv[1:])()
    except SystemExit as ended:
        if isinstance(ended.code, int) and all(each.daemon for each in threading.enumerate() if each is not me):
            _leave(ended.code)
        raise


def settle() -> None:
    """From here on modules are loaded with as little ado as can be.

    asyncio loads OpenSSL where it is there, and works without: gRPC brings the TLS of clients along. shutil, which
    Typer asks for the width of the terminal, would load what compresses archives.
    """
    gc.set_threshold(_YOUNG)
    absent = [name for name in _DONE_WITHOUT if name not in sys.modules]
    for name in absent:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        import asyncio  # noqa: F401, PLC0415
        import shutil  # noqa: F401, PLC0415
    finally:
        # What does want them (`muster login`, `muster bundle`) can load them.
        for name in absent:
            del sys.modules[name]


def _leave(code: int) -> None:
    """End at once, if all output is out: Python would take apart first what it has loaded, and that takes its time."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # Python says what is wrong
    os._exit(code)
