"""What files of a folder held when they were read last, so that a folder that has not changed is not read again."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

from muster.domain.data.digest import is_digest

UNSETTLED_NS = 2_000_000_000
"""A file that was changed so many ns before it was read is read again: it may change within one tick of its clock."""

_FORM = "muster-folder-1"


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What of a file changes whenever its content does."""

    size: int
    modified_ns: int
    changed_ns: int
    """The time that nobody can set."""
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        """The stamp of a file."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def is_settled(self, now_ns: int) -> bool:
        """Whether a change after this moment would show."""
        return max(self.modified_ns, self.changed_ns) < now_ns - UNSETTLED_NS


Remembered = Mapping[str, tuple[FileStamp, str]]
"""Stamp and SHA-256 of files by path."""


def load_remembered(file: Path) -> Remembered:
    """What was remembered; nothing where the file is missing, not ours, or damaged."""
    try:
        lines = file.read_text().splitlines()
        if lines[:1] != [_FORM]:
            return {}
        found: dict[str, tuple[FileStamp, str]] = {}
        for line in lines[1:]:
            path, size, modified, changed, inode, digest = json.loads(line)
            if is_digest(digest):
                found[path] = (FileStamp(size, modified, changed, inode), digest)
    except (OSError, ValueError, TypeError):
        return {}
    return found


def save_remembered(file: Path, found: Remembered) -> None:
    """Remember this; what cannot be written is read again next time."""
    lines = [_FORM]
    for path, (stamp, digest) in found.items():
        lines.append(
            json.dumps(
                [path, stamp.size, stamp.modified_ns, stamp.changed_ns, stamp.inode, digest], separators=(",", ":")
            )
        )
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh.write_text("\n".join(lines) + "\n")
        fresh.replace(file)


def remembered_file(environ: Mapping[str, str], folder: Path) -> Path:
    """The file in this user's cache in which the files of a folder are remembered."""
    cache = Path(environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return cache / "muster" / "folders" / sha256(os.fsencode(folder.resolve())).hexdigest()[:32]
