"""How a program of ours starts another one: by this Python, or by itself where it brings its Python along."""

import sys
from collections.abc import Mapping
from pathlib import Path

MODULE_OPTION = "--muster-module"
"""Tells a program that brings its Python along what else it is to be; `muster.bundle.frozen_program` listens to it."""

PACKAGES_ROOT = Path(__file__).parents[2]
"""Where the packages are."""

_LEAN = "import sys; sys.path.insert(0, sys.argv.pop()); from {} import main; main()"


def is_frozen() -> bool:
    """Whether this program brings its Python along."""
    return bool(getattr(sys, "frozen", False))


def command_of(module: str, *arguments: str) -> list[str]:
    """Starts a package or module that Python can run as a program, and whose `main` it is."""
    if is_frozen():
        return [sys.executable, MODULE_OPTION, module, *arguments]
    return [sys.executable, "-m", module, *arguments]


def environment_of_ours(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables with which `command_of` finds us however this program was started, and imports nothing from a
    working directory.
    """
    path = ":".join(each for each in (str(PACKAGES_ROOT), environ.get("PYTHONPATH", "")) if each)
    return {**environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


def lean_command_of(module: str, *arguments: str) -> list[str]:
    """The same for modules that need nothing but us: without site-packages they start faster and stay smaller."""
    if is_frozen():
        return [sys.executable, MODULE_OPTION, module, *arguments]
    return [sys.executable, "-I", "-S", "-X", "utf8", "-c", _LEAN.format(module), *arguments, str(PACKAGES_ROOT)]
