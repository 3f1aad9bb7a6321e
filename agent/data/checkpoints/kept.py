"""Parts of checkpoints that a node keeps of executions that have ended: the next attempt may be here again.

```
JOB.RANK/DIGEST/form      the canonical form of the content tree
JOB.RANK/DIGEST/files/…   what it lists; nothing of it is believed before its hash was compared
```

Every call may block, and may come from any thread.
"""

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from agent.executions.whole_file import write_whole
from muster.domain.data.tree import ContentEntry, ContentKind, ContentTree, MalformedTreeError, read_content_tree
from muster.transfer.new_file import NEW_FILE, write_hashed

PARTS_KEPT = 2
"""Newest parts of one rank that a node keeps."""
PART_KEPT_DAYS = 7
"""Days after which a node keeps a part no longer."""
KEEP_PARTS_FREE = 20
"""Percent of the file system that stay free of parts."""

_PRIVATE, _DAY, _READ = 0o600, 86_400, 1024 * 1024
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class KeptParts:
    """The parts that one node keeps below a directory."""

    def __init__(
        self,
        directory: Path,
        disk: Callable[[Path], os.statvfs_result] = os.statvfs,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Touch nothing yet."""
        self._directory = directory
        self._disk = disk
        self._now = now

    def keep(self, owner: str, tree: ContentTree, place: Path) -> None:
        """Take what lies at a place, which is what a tree lists, for a rank of a job. Raises OSError."""
        own = self._directory / owner / tree.digest
        shutil.rmtree(own, ignore_errors=True)
        (own / "files").mkdir(parents=True)
        self._directory.chmod(0o700)
        write_whole(own / "form", tree.form, _PRIVATE)
        place.rename(own / "files" / place.name)
        for old in self._by_age(own.parent)[:-PARTS_KEPT]:
            shutil.rmtree(old, ignore_errors=True)
        self.clear()

    def tree(self, digest: str) -> ContentTree | None:
        """A tree that is kept; None: it is not."""
        for form in self._directory.glob(f"*/{digest}/form"):
            with suppress(OSError, MalformedTreeError):
                tree = read_content_tree(form.read_bytes())
                if tree.digest == digest:
                    return tree
        return None

    def place(self, digest: str, entry: ContentEntry) -> Path | None:
        """Where a file of a tree is kept, whatever it holds; None: it is not."""
        for own in self._directory.glob(f"*/{digest}/files"):
            with suppress(OSError):
                if (own / entry.path).lstat().st_size == entry.size:
                    return own / entry.path
        return None

    def copy(self, digest: str, entry: ContentEntry, into: Path) -> bool:
        """Copy a file of a tree to its place below a directory; False where it is not here, or holds something else."""
        for own in self._directory.glob(f"*/{digest}/files"):
            with suppress(OSError):
                if copied_file(own / entry.path, entry, into / entry.path):
                    return True
        return False

    def clear(self) -> None:
        """Remove what is old, and the oldest where the disk is nearly full."""
        for old in self._by_age(self._directory, "*/*"):
            disk = self._disk(self._directory)
            full = disk.f_bavail * 100 < disk.f_blocks * KEEP_PARTS_FREE
            if not full and self._now() - old.stat().st_mtime < PART_KEPT_DAYS * _DAY:
                return
            shutil.rmtree(old, ignore_errors=True)
            with suppress(OSError):
                old.parent.rmdir()

    @staticmethod
    def _by_age(directory: Path, pattern: str = "*") -> list[Path]:
        return sorted(directory.glob(pattern), key=lambda path: path.stat().st_mtime)


def copied_file(source: Path, entry: ContentEntry, place: Path) -> bool:
    """Copy a file to a place where nothing is; False where it holds something else than a tree says. Raises OSError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(source, _OPEN), "rb", buffering=0) as read:  # noqa: PTH123 - a descriptor
        mode = 0o755 if entry.kind is ContentKind.PROGRAM else 0o644
        with open(os.open(place, NEW_FILE, mode), "wb", buffering=0) as written:  # noqa: PTH123 - a descriptor
            found = write_hashed(written.fileno(), iter(partial(read.read, _READ), b""))
    if found != entry.content:
        place.unlink()
        return False
    return True
