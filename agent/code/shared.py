"""Code that the executions of a node share: one directory for each content tree, which nobody may write to.

```
DIGEST/PATH     the files of a content tree; links in the directories of executions lead to it
DIGEST.NUMBER   what was in its place and is damaged, as long as an execution may see it
```

A directory is looked through when an execution uses it for the first time since the agent was started. From then on the
kernel tells whether anything in it was changed; while nothing was, the next use costs nothing for each file (ADR 106).

Every call may block, and may come from any thread.
"""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE, S_ISLNK
from threading import Lock

from agent.code.copies import lay_out
from agent.code.watching import MOST_DIRECTORIES_WATCHED, WatchedDirectories
from agent.executions.trees import put_aside, remove_read_only
from muster.domain.data.tree import ContentEntry, ContentKind, ContentTree
from muster.transfer.objects import ObjectFiles

log = logging.getLogger(__name__)

SHARED_CODE_DIRECTORY = "code"
"""The directory of code that executions share, beside that of what is kept."""
SHARED_CODE_KEPT = 4
"""Newest directories of shared code that stay for later while no execution uses them."""
LAID_OUT_AT = 946_684_800
"""Seconds since 1970 that every shared file says it was changed at: who has written into one gives it another time."""

_PASSED_THROUGH, _SEEN, _READ = 0o711, 0o555, 0o444


class SharedCode:
    """The directories of shared code below one directory of the node."""

    def __init__(self, directory: Path, most_watched: int = MOST_DIRECTORIES_WATCHED) -> None:
        """Touch nothing yet. `most_watched`: directories of one tree."""
        self._directory = directory
        self._most_watched = most_watched
        self._lock = Lock()
        self._watched: WatchedDirectories | None = None

    def holds(self, digest: str) -> bool:
        """Whether a tree is here, was looked through, and was not changed since; it counts as used now."""
        with self._lock:
            place = self._directory / digest
            if self._watched is None or not self._watched.is_unchanged(digest, place):
                return False
            with suppress(FileNotFoundError):
                os.utime(place)
                return True
            return False

    def show(self, digest: str, tree: Callable[[], ContentTree], objects: ObjectFiles, link: Path) -> None:
        """Have a link to a directory with the files of a tree, which are kept as objects.

        `tree` gives it where that is not known to be whole. The link lies in the directory of an execution, beside
        those of others: what one of them leads to stays. Raises OSError, ExecutionError for an object that was damaged,
        or what `tree` raises.
        """
        with self._lock:
            self._directory.mkdir(exist_ok=True)
            self._directory.chmod(_PASSED_THROUGH)
            place = self._directory / digest
            if self._watched is None or not self._watched.is_unchanged(digest, place):
                self._make_whole(place, tree(), objects)
            os.utime(place)
            link.unlink(missing_ok=True)
            link.symlink_to(place.absolute())
            self._clear(link)

    def _make_whole(self, place: Path, tree: ContentTree, objects: ObjectFiles) -> None:
        """Have a directory with all files of a tree and no others, and watch it from before it was looked through."""
        if place.is_dir():
            self._watch(place.name, place)
            if _is_whole(place, tree):
                return
        put_aside(place)
        fresh = place.with_name(f"{place.name}.new")
        remove_read_only(fresh)
        lay_out(tree, objects, fresh)
        _close(fresh)
        self._watch(place.name, fresh)
        fresh.rename(place)

    def _watch(self, digest: str, place: Path) -> None:
        """Have the kernel tell of changes; where it does not, the next use looks through the directory again."""
        try:
            self._watched = self._watched or WatchedDirectories(self._most_watched)
            self._watched.begin(digest, place)
        except OSError as error:
            log.info("shared code is not watched", extra={"tree": digest, "cause": error.strerror or str(error)})

    def _clear(self, link: Path) -> None:
        """Remove what no execution uses, but for the newest."""
        used = {Path(each).name for each in _links(link)}
        by_age = sorted(self._directory.iterdir(), key=lambda path: path.stat().st_mtime)
        unused = [path for path in by_age if path.name.partition(".")[0] not in used]
        for path in unused[:-SHARED_CODE_KEPT]:
            if self._watched is not None:
                self._watched.end(path.name)
            remove_read_only(path)


def _links(link: Path) -> Iterator[str]:
    """Where links of this name lead to, in all directories beside the one of this link."""
    for each in link.parent.parent.glob(f"*/{link.name}"):
        if each.is_symlink():
            yield os.readlink(each)  # noqa: PTH115 - as text


def _close(place: Path) -> None:
    """Have nobody write to what lies below a directory."""
    for within, _, names in os.walk(place, topdown=False):
        for name in names:
            path = Path(within, name)
            if not path.is_symlink():
                path.chmod(_SEEN if path.stat().st_mode & 0o100 else _READ)
                os.utime(path, (LAID_OUT_AT, LAID_OUT_AT))
        Path(within).chmod(_SEEN)


def _is_whole(place: Path, tree: ContentTree) -> bool:
    """Whether a directory has all files of a tree and no others, as they were laid out."""
    wanted = {each.path: each for each in tree.entries}
    found, below = 0, [""]
    while below:
        within = below.pop()
        try:
            there = list(os.scandir(place / within))
        except OSError:  # also where nothing was laid out yet
            return False
        for each in there:
            path = f"{within}{each.name}"
            if each.is_dir(follow_symlinks=False):
                below.append(f"{path}/")
            elif (entry := wanted.get(path)) is None or not _is_as_laid_out(each, entry):
                return False
            else:
                found += 1
    return found == len(wanted)


def _is_as_laid_out(there: "os.DirEntry[str]", entry: ContentEntry) -> bool:
    status = there.stat(follow_symlinks=False)
    if S_ISLNK(status.st_mode) or entry.is_link:
        return S_ISLNK(status.st_mode) and entry.is_link and str(Path(there.path).readlink()) == entry.content
    mode = _SEEN if entry.kind is ContentKind.PROGRAM else _READ
    return (S_IMODE(status.st_mode), status.st_size, status.st_mtime) == (mode, entry.size, LAID_OUT_AT)
