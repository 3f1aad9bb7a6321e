"""What a program that brings its Python along runs: whichever of ours it was called as, or told to be."""

import os
import sys
from collections.abc import MutableMapping
from importlib import import_module

from muster.daemon.own_programs import MODULE_OPTION

PROGRAMS_BY_NAME = {
    "muster-agent": "agent",
    "muster-console": "console",
    "muster-coordinator": "coordinator",
    "muster-depot": "coordinator.depot",
    "muster-relay": "coordinator.relay",
}
"""Programs by the name under which they are called; any other name is the command line."""


def main() -> None:
    """Become that program."""
    clean(os.environ)
    if sys.argv[1:2] == [MODULE_OPTION]:
        module, sys.argv[1:] = sys.argv[2], sys.argv[3:]
    else:
        module = PROGRAMS_BY_NAME.get(os.path.basename(sys.argv[0]), "muster.cli.main")  # noqa: PTH119 - pathlib is not loaded
    found = import_module(module)
    if hasattr(found, "__path__"):
        found = import_module(f"{module}.__main__")
    found.main()


def clean(environ: MutableMapping[str, str]) -> None:
    """Take back what was set so that this Python finds its libraries: what is started next must find its own."""
    before = environ.pop("LD_LIBRARY_PATH_ORIG", None)
    environ.pop("LD_LIBRARY_PATH", None)
    if before is not None:
        environ["LD_LIBRARY_PATH"] = before
    for name in [name for name in environ if name.startswith("_PYI_")]:
        del environ[name]


if __name__ == "__main__":
    main()
