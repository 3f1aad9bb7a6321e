"""Inputs in the directory of an execution: links to where the node keeps them."""

from collections.abc import Mapping
from pathlib import Path

from agent.executions.layout import ExecutionDirectory

_FETCHED = "fetched"
_SHARED = 0o755


def link_inputs(directory: ExecutionDirectory, places: Mapping[str, Path]) -> None:
    """Note where each input lies, and have links to them for a plain process; raises OSError."""
    for links in (directory.path / _FETCHED, directory.inputs):
        links.mkdir(exist_ok=True)
        links.chmod(_SHARED)
    for name, place in places.items():
        for links in (directory.path / _FETCHED, directory.inputs):
            (links / name).unlink(missing_ok=True)
            (links / name).symlink_to(place.absolute())


def note_inputs(directory: ExecutionDirectory, places: Mapping[str, Path]) -> None:
    """Note where each input lies, and have empty directories for them that a container mounts; raises OSError."""
    links = directory.path / _FETCHED
    for each in (links, directory.inputs):
        each.mkdir(exist_ok=True)
        each.chmod(_SHARED)
    for name, place in places.items():
        (links / name).unlink(missing_ok=True)
        (links / name).symlink_to(place.absolute())
        (directory.inputs / name).mkdir(exist_ok=True)


def noted_inputs(directory: ExecutionDirectory) -> Mapping[str, Path]:
    """Where each input lies, by name; none where nothing was noted."""
    links = directory.path / _FETCHED
    return {path.name: path.readlink() for path in links.iterdir()} if links.is_dir() else {}
