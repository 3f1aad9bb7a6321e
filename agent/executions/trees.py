"""Directories however deep: Python's own functions for them fail after a thousand levels, which user code may make."""

import os
import shutil
import subprocess
from itertools import count
from pathlib import Path

REMOVAL_LIMIT = 600.0
"""Seconds that the removal of a very deep directory may take."""
_OWN = 0o700


def make_directories(path: Path) -> None:
    """Have a directory, and those above it. Raises OSError."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for each in reversed(missing):
        each.mkdir(exist_ok=True)


def remove_read_only(path: Path) -> None:
    """Remove a directory in which nobody may write, if it is there. Raises OSError."""
    if path.exists():
        for directory, _, _ in os.walk(path):
            Path(directory).chmod(_OWN)
        shutil.rmtree(path)


def put_aside(path: Path) -> None:
    """Have a directory out of the way of another one; containers that have it mounted still see what is in it."""
    if path.exists():
        aside = (path.with_name(f"{path.name}.{number}") for number in count())
        path.rename(next(each for each in aside if not each.exists()))


def remove_tree(path: Path) -> None:
    """Remove a directory and all in it, as far as that can be done."""
    try:
        shutil.rmtree(path, ignore_errors=True)
    except RecursionError:
        command = ("rm", "-rf", "--", str(path))
        subprocess.run(  # noqa: S603 - fixed words, and a path of ours
            command, check=False, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=REMOVAL_LIMIT
        )
