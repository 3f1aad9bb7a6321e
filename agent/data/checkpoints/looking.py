"""What lies in a directory of checkpoints, and which of it is finished. Nothing is read but names, sizes and times."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from stat import S_ISDIR
from zlib import crc32

from muster.domain.data.checkpoint import FINISHED_MARK, is_checkpoint_name
from muster.domain.data.pattern import NamePatternError, name_pattern

DEEPEST_PART = 64
"""Directories within a checkpoint that are looked into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLook:
    """One checkpoint as it was at a look."""

    name: str
    state: str
    """Whoever changes anything in it changes this."""
    changed_at: float
    """When anything in it was last changed, as its file system says."""
    marked: bool
    """Whether something says that it is whole."""

    def finished(self, settle: timedelta, now: float) -> bool:
        """Whether it counts as whole."""
        return self.marked or now - self.changed_at >= settle.total_seconds()


def looks(directory: Path, done: str) -> list[CheckpointLook]:
    """All that may be a checkpoint and holds a file, the one that was changed last at the end.

    `done`: a name with wildcards; one that holds such a file is whole. What cannot be looked at is left out.
    """
    try:
        names = {each.name for each in os.scandir(directory)}
    except OSError:
        return []
    found = [_look(directory, name, done, names) for name in sorted(names) if is_checkpoint_name(name)]
    return sorted((each for each in found if each is not None), key=lambda each: each.changed_at)


def _look(directory: Path, name: str, done: str, names: set[str]) -> CheckpointLook | None:
    try:
        entries = list(_all_in(directory / name, ""))
    except OSError:
        return None
    files = [path for path, status in entries if not S_ISDIR(status.st_mode)]
    if not files:
        return None
    seen = [(path, each.st_size, each.st_mtime_ns, each.st_ino, each.st_mode) for path, each in entries]
    changed = max(each.st_ctime for _, each in entries)
    newest = max(each.st_ctime_ns for _, each in entries)
    state = f"{len(seen)}-{newest}-{crc32(repr(seen).encode('utf-8', 'backslashreplace')):08x}"
    marked = f".{name}{FINISHED_MARK}" in names or (bool(done) and _has(files, done))
    return CheckpointLook(name=name, state=state, changed_at=changed, marked=marked)


def _has(files: list[str], done: str) -> bool:
    try:
        pattern = name_pattern(done)
    except NamePatternError:
        return False
    return any(pattern.matches(path) for path in files)


def _all_in(place: Path, path: str) -> Iterator[tuple[str, os.stat_result]]:
    status = place.lstat()
    yield path, status
    if S_ISDIR(status.st_mode) and path.count("/") < DEEPEST_PART:
        with os.scandir(place) as listed:
            inside = sorted(each.name for each in listed)
        for name in inside:
            yield from _all_in(place / name, f"{path}/{name}" if path else name)
