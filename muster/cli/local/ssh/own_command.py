"""The command that starts this program again, from wherever `ssh` runs it."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from muster.daemon.own_programs import is_frozen

_PROGRAM = "muster"


def own_command(started_as: str, environ: Mapping[str, str], coordinator: str | None) -> Sequence[str]:
    """The command, which asks the same coordinator and finds the same logins; `started_as` is the name of this program.

    Without `coordinator` it asks that which commands ask at that time.
    """
    kept = environ.get("MUSTER_HOME")
    home = ("env", f"MUSTER_HOME={Path(kept).expanduser().absolute()}") if kept else ()
    asked = coordinator or environ.get("MUSTER_COORDINATOR")
    return (*home, *_program(started_as), *(("--coordinator", asked) if asked else ()))


def _program(started_as: str) -> Sequence[str]:
    if is_frozen():
        return (sys.executable,)
    if Path(started_as).name == _PROGRAM:
        found = shutil.which(started_as) if os.sep not in started_as else started_as
        if found:
            return (str(Path(found).absolute()),)
    return (sys.executable, "-c", "from muster.cli.main import main; main()")
