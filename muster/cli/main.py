"""The entry point of the program `muster`; what it has for commands is in `program`.

It imports next to nothing itself: how the rest is loaded is settled here first.
"""

import gc
import os
import sys
import threading

from muster.lean.absent import leave_out, take_back
from muster.lean.typing_names import leave_typing_extensions_out

_YOUNG = 50_000
"""Objects that are made before anybody looks for garbage among them; modules make thousands, and none of them is."""

_DONE_WITHOUT = ("ssl", "bz2", "lzma")
"""What is loaded by others where it is there."""

_COMPLETION = "_MUSTER_COMPLETE"
"""Set by the shell when it asks what may come next."""


def main() -> None:
    """The entry point of the console script."""
    settle()
    me = threading.current_thread()
    try:
        from muster.cli.streams import open_closed_streams

        open_closed_streams()
        from muster.cli.program import program

        program(() if _COMPLETION in os.environ else sys.argv[1:])()
    except ModuleNotFoundError as error:
        from muster.daemon.refusal import what_to_install

        sys.exit(what_to_install("muster", "muster-client", error))
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise
        code = _written(ended.code)
    except OSError as error:
        code = _reported(error)
    else:
        return
    if all(each.daemon for each in threading.enumerate() if each is not me):
        # Python would take apart first what it has loaded, and that takes its time.
        os._exit(code)
    sys.exit(code)


def _written(code: int) -> int:
    """The exit code, once all output is out; another one where it cannot be written."""
    if hasattr(sys.stdout, "wrapped"):  # so Click leaves it where nobody reads any more what it prints itself
        return _reported(BrokenPipeError())
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError as error:
        return _reported(error) if code == 0 or isinstance(error, BrokenPipeError) else code
    return code


def _reported(error: OSError) -> int:
    from muster.cli.context import report

    return int(report(error))


def settle() -> None:
    """From here on modules are loaded with as little ado as can be.

    shutil, which Typer asks for the width of the terminal, would load what compresses archives.
    """
    gc.set_threshold(_YOUNG)
    leave_typing_extensions_out()
    absent = leave_out(*_DONE_WITHOUT)
    try:
        import asyncio  # noqa: F401 - loaded while it is kept from its costly parts
        import shutil  # noqa: F401 - as above
    finally:
        take_back(absent)  # what does want them (`muster login`, `muster bundles`) can load them
