"""What executions see of inputs: a directory for each content tree, with hard links to what the node keeps."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from agent.executions.trees import put_aside, remove_read_only
from muster.domain.data.tree import ContentEntry, ContentKind, ContentTree

UNCHANGED = 946_684_800
"""Seconds since 1970 that every object says it was changed at: who has written into one gives it another time."""

_SEEN = 0o555


class ShownTrees:
    """The directories of trees; whoever calls sees to it that nobody else does at the same time."""

    def __init__(self, directory: Path, place_of: Callable[[str], Path]) -> None:
        """`place_of`: where an object lies."""
        self.directory = directory
        self._place_of = place_of

    def show(self, tree: ContentTree) -> Path:
        """A directory with nothing but these files, whose objects are here; raises OSError."""
        name = tree.digest
        place = self.directory / name
        if not (place.is_dir() and all(self._is_whole(place / each.path, each) for each in tree.entries)):
            put_aside(place)
            fresh = place.with_name(f"{name}.new")
            self.forget(fresh)
            fresh.mkdir()
            for each in tree.entries:
                self._lay(each, fresh / each.path)
            for directory, _, _ in os.walk(fresh, topdown=False):
                Path(directory).chmod(_SEEN)
            fresh.rename(place)
        os.utime(place)
        return place

    def longest_unused_first(self) -> Iterator[tuple[Path, set[int]]]:
        """All directories, each with the inodes of its files."""
        for place in sorted(self.directory.iterdir(), key=lambda path: path.stat().st_mtime):
            yield place, {Path(within, name).stat().st_ino for within, _, names in os.walk(place) for name in names}

    @staticmethod
    def forget(place: Path) -> None:
        """Remove a directory, if it is there; raises OSError."""
        remove_read_only(place)

    def _lay(self, entry: ContentEntry, path: Path) -> None:
        """Have a file of a tree in its place. What may be run is a copy, as an object has one set of rights."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind is not ContentKind.PROGRAM:
            os.link(self._place_of(entry.content), path)
            return
        shutil.copyfile(self._place_of(entry.content), path)
        path.chmod(_SEEN)
        os.utime(path, (UNCHANGED, UNCHANGED))

    def _is_whole(self, path: Path, entry: ContentEntry) -> bool:
        try:
            found = path.stat()
            kept = found if entry.kind is ContentKind.PROGRAM else self._place_of(entry.content).stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        same = (found.st_ino, found.st_dev) == (kept.st_ino, kept.st_dev)
        return same and (found.st_size, found.st_mtime) == (entry.size, UNCHANGED)
