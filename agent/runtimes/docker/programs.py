"""Whether a container has the program that it is to run: at its start it would be too late to find out for a gang.

Looking into a container costs the engine about as much as starting it. So what an image was seen to have is remembered:
the id of an image is a hash of its content.
"""

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeVar

from agent.runtimes.docker.answers import ContainerProgram
from agent.runtimes.docker.engine.files import EngineFiles
from agent.runtimes.docker.files import resolved
from muster.domain.jobs.failure import ExecutionError, FailureKind

K = TypeVar("K")
V = TypeVar("V")

MOST_KNOWN = 1000
"""Entries; an agent that has seen so many begins anew."""

_FIRST_LINE = 256
"""Bytes of a script that the kernel looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """A program, and the container in which it shall be."""

    name: str
    places: tuple[str, ...]
    """Where it may be, in the order in which it is looked for."""
    search: str
    """The PATH that they come from."""
    image: str
    """The image as the job names it."""
    image_id: str
    mounts: frozenset[str]
    """Where the job has something mounted: there the container may differ from its image."""
    files: frozenset[str]
    """So it may where the job has files."""
    own: frozenset[str]
    """What Muster mounts; as it lies there in all containers with the same of it."""


class ContainerPrograms:
    """Finds the programs of all containers of one engine."""

    def __init__(self, files: EngineFiles) -> None:
        self._files = files
        self._looked_at: dict[tuple[str, tuple[str, ...], frozenset[str]], tuple[str, ...]] = {}
        """Image, places and own mounts → the paths by which a program was found there."""
        self._linked: dict[tuple[str, str], bool] = {}
        """Image and path → whether a symbolic link is on it."""

    async def check(self, container: str, sought: Sought) -> None:
        """Raise ExecutionError when the container has no such program."""
        key = (sought.image_id, sought.places, sought.own)
        known = self._looked_at.get(key)
        if known is not None and await self._as_in_image(container, sought, known):
            return
        paths = await self._look(container, sought)
        if await self._as_in_image(container, sought, paths):
            _remember(self._looked_at, key, paths)

    async def _as_in_image(self, container: str, sought: Sought, paths: Iterable[str]) -> bool:
        """Whether these paths lead where they do in the image, whatever lies in the job's mounts and files.

        Without links on the way, paths are what they look like. The rest is left to a look.
        """
        covers = [PurePosixPath(each) for each in sought.mounts | sought.files]
        if any(each.is_relative_to(other) for each in covers for other in covers if each != other):
            return False  # what lies in a mount may say where another one comes to lie
        if any(PurePosixPath(path).is_relative_to(each) for path in paths for each in covers):
            return False
        if not covers:
            return True
        # First what covers: only then is it known that nothing of it lies over the paths while these are looked at.
        places = sought.mounts | {posixpath.dirname(file) for file in sought.files}
        return await self._plain(container, sought, places) and await self._plain(container, sought, paths)

    async def _plain(self, container: str, sought: Sought, paths: Iterable[str]) -> bool:
        """Whether no symbolic link of the image is on any of these paths."""
        keys = {(sought.image_id, path) for path in paths}
        if any(self._linked.get(key) for key in keys):
            return False
        unknown = keys - self._linked.keys()
        linked = {key for key in unknown if str(await resolved(self._files, container, key[1])) != key[1]}
        # Where one is, it is not known what was looked at behind it.
        for key in linked or unknown:
            _remember(self._linked, key, bool(linked))
        return not linked

    async def _look(self, container: str, sought: Sought) -> tuple[str, ...]:
        """The paths that were looked at, of which the last ones led to the program."""
        reason = "there is no such file" if "/" in sought.name else f"looked in {sought.search}"
        paths: list[str] = []
        for place in sought.places:
            paths.append(place)
            found, linked = await self._program(container, place)
            if found is None:
                continue
            if found.directory or not found.executable:
                reason = f"{place} is {'a directory' if found.directory else 'not executable'}"
                continue
            # Of a link the engine would hand out the link.
            beginning = b"" if linked else await self._files.beginning(container, place, _FIRST_LINE)
            interpreter = _interpreter(beginning)
            if interpreter is None:
                return tuple(paths)
            paths.append(interpreter)
            if (await self._program(container, interpreter))[0] is not None:
                return tuple(paths)
            reason = f"{place} is a script for {interpreter}, which is not there"
        message = f'no program "{sought.name}" in image {sought.image}: {reason}'
        raise ExecutionError(FailureKind.COMMAND_NOT_FOUND, message)

    async def _program(self, container: str, path: str) -> tuple[ContainerProgram | None, bool]:
        """What is at a path in the end, and whether a link led there."""
        found = await self._files.program(container, path)
        if found is not None and found.link is not None:
            return await self._files.program(container, found.link), True
        return found, False


def _interpreter(beginning: bytes) -> str | None:
    """The program that a script names in its first line; None for other files."""
    if not beginning.startswith(b"#!"):
        return None
    words = beginning[2:].partition(b"\n")[0].split()
    return words[0].decode(errors="replace") if words else None


def _remember(known: dict[K, V], key: K, value: V) -> None:
    if len(known) >= MOST_KNOWN:
        known.clear()
    known[key] = value
