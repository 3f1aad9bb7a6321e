"""Layers and manifests that a node keeps as they came from their registries, and which projects may have which images.

objects/ab/ab12…   a layer, a configuration or a manifest
parts/ab12…        the beginning of one that is still arriving
known/NAME         an image that came with the login of a project, or without any: who may have it without asking again
"""

import os
import shutil
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from agent.executions.whole_file import write_whole
from muster.domain.errors import MusterError
from muster.domain.quantity import size_text
from muster.transfer.objects import ArrivingObject, ObjectFiles

LAYER_SHARE = 20
"""Percent of the file system that layers take at most."""
PART_OF_LAYER_KEPT = 3600.0
"""Seconds for which the beginning of a layer is kept that nobody goes on with."""

_PRIVATE, _OWN = 0o600, 0o700


class NoSpaceForLayersError(MusterError):
    """The disk has no space for the layers of an image beside the image itself."""


class LayerFiles:
    """The layers below one directory. Every call may block, and may come from any thread."""

    def __init__(
        self,
        directory: Path,
        keep_free: int = 10,
        disk: Callable[[Path], os.statvfs_result] = os.statvfs,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`keep_free`: percent of the file system. Raises OSError where the directory cannot be made."""
        self._objects = ObjectFiles(directory)
        self.directory = directory
        self._keep_free = keep_free
        self._disk = disk
        self._clock = clock
        (directory / "known").mkdir(mode=_OWN, exist_ok=True)

    def kept(self, digest: str) -> Path | None:
        """Where something is, which counts as used now; None: it is not here."""
        return None if self._objects.use(digest) is None else self._objects.place(digest)

    def content(self, digest: str) -> bytes | None:
        """What something small holds that is here and holds what its name says."""
        path = self.kept(digest)
        found = None if path is None else path.read_bytes()
        if found is not None and sha256(found).hexdigest() != digest:
            self.remove(digest)
            return None
        return found

    def keep(self, content: bytes) -> str:
        """Keep something small; its digest. Raises OSError."""
        digest = sha256(content).hexdigest()
        with self._objects.arriving(digest, len(content)) as arriving:
            arriving.write(content[arriving.offset :])
            arriving.commit()
        return digest

    def keep_gathered(self, digest: str, path: Path) -> Path:
        """Have a file as a layer, which holds what that name says; its place. Raises OSError.

        It is not synced, as all that is kept is compared with its name when it is read.
        """
        place = self.directory / "objects" / digest[:2] / digest
        place.parent.mkdir(mode=_OWN, exist_ok=True)
        return path.replace(place)

    def arriving(self, digest: str, size: int) -> ArrivingObject:
        """A layer that comes, from where it was left; raises OSError."""
        return self._objects.arriving(digest, size)

    def opened(self, digest: str) -> int:
        """A descriptor of a layer that arrives, or has arrived. Raises FileNotFoundError where it is neither."""
        for path in (self.directory / "parts" / digest, self._objects.place(digest)):
            if path is not None:
                with suppress(FileNotFoundError):
                    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        raise FileNotFoundError(digest)

    def remove(self, digest: str) -> None:
        """Keep something no more; whoever reads it still gets it to its end."""
        self._objects.remove(digest)

    def note(self, project: str, image: str) -> None:
        """Note that a project may have an image; empty: everybody may. Raises OSError."""
        write_whole(self._note(project, image), image.rpartition(":")[2].encode(), _PRIVATE)

    def may_have(self, project: str, image: str) -> bool:
        """Whether a project may have an image without its registry being asked."""
        return any(self._note(each, image).exists() for each in {"", project})

    def make_space(self, missing: int, used: Collection[str]) -> None:
        """Have the disk take so many bytes of layers, twice: as they are, and unpacked by the engine.

        What is `used` stays. Raises NoSpaceForLayersError.
        """
        self._forget_parts()
        disk = self._disk(self.directory)
        whole, free = disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize
        kept = sum(found.st_size for _, found in self._objects.all())
        over = max(kept + missing - whole * LAYER_SHARE // 100, 2 * missing + whole * self._keep_free // 100 - free)
        freed = self.free(over, used) if over > 0 else 0
        if freed < over:
            raise NoSpaceForLayersError(
                f"{size_text(missing)} of layers would leave too little of {self.directory} free, or be too many there"
            )

    def free(self, wanted: int, used: Collection[str] = ()) -> int:
        """Remove what was not used for longest until so many bytes are free; how many that were."""
        freed = 0
        for digest, found in sorted(self._objects.all(), key=lambda each: each[1].st_mtime):
            if freed >= wanted:
                break
            if digest not in used:
                self.remove(digest)
                freed += found.st_size
        for note in (self.directory / "known").iterdir():
            with suppress(OSError, ValueError):
                if self._objects.place(note.read_text(encoding="ascii")) is None:
                    note.unlink()
        return freed

    def _forget_parts(self) -> None:
        for digest, found in self._objects.parts():
            if found.st_mtime < self._clock() - PART_OF_LAYER_KEPT:
                self._objects.remove_part(digest)
        for pieces in (self.directory / "parts").glob("*.pieces"):
            with suppress(FileNotFoundError):
                if pieces.stat().st_mtime < self._clock() - PART_OF_LAYER_KEPT:
                    shutil.rmtree(pieces, ignore_errors=True)

    def _note(self, project: str, image: str) -> Path:
        return self.directory / "known" / sha256(f"{project}\0{image}".encode()).hexdigest()


def layers_go_first(directory: Path) -> Callable[[Path, int], int]:
    """What removes layers below a directory where so many bytes are wanted at a place; how many bytes that were."""

    def free(place: Path, wanted: int) -> int:
        try:
            if directory.stat().st_dev != place.stat().st_dev:
                return 0
            return LayerFiles(directory).free(wanted)
        except OSError:
            return 0  # there are none

    return free
