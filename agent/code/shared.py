"""Code that the executions of a node share: one directory for each content tree, which nobody may write to.

```
DIGEST/PATH     the files of a content tree; links in the directories of executions lead to it
DIGEST.NUMBER   what was in its place and is damaged, as long as an execution may see it
```

Every call may block, and may come from any thread.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_IMODE, S_ISLNK
from threading import Lock

from agent.code.copies import lay_out
from agent.executions.trees import put_aside, remove_read_only
from muster.domain.data.tree import ContentEntry, ContentKind, ContentTree
from muster.transfer.objects import ObjectFiles

SHARED_CODE_DIRECTORY = "code"
"""The directory of code that executions share, beside that of what is kept."""
SHARED_CODE_KEPT = 4
"""Newest directories of shared code that stay for later while no execution uses them."""
LAID_OUT_AT = 946_684_800
"""Seconds since 1970 that every shared file says it was changed at: who has written into one gives it another time."""

_PASSED_THROUGH, _SEEN, _READ = 0o711, 0o555, 0o444


class SharedCode:
    """The directories of shared code below one directory of the node."""

    def __init__(self, directory: Path) -> None:
        """Touch nothing yet."""
        self._directory = directory
        self._lock = Lock()

    def show(self, tree: ContentTree, objects: ObjectFiles, link: Path) -> None:
        """Have a link to a directory with these files, which are kept as objects.

        The link lies in the directory of an execution, beside those of others: what one of them leads to stays. Raises
        OSError, or ExecutionError for an object that was damaged.
        """
        with self._lock:
            self._directory.mkdir(exist_ok=True)
            self._directory.chmod(_PASSED_THROUGH)
            place = self._directory / tree.digest
            if not _is_whole(place, tree):
                put_aside(place)
                fresh = place.with_name(f"{tree.digest}.new")
                remove_read_only(fresh)
                lay_out(tree, objects, fresh)
                _close(fresh)
                fresh.rename(place)
            os.utime(place)
            link.unlink(missing_ok=True)
            link.symlink_to(place.absolute())
            self._clear(link)

    def _clear(self, link: Path) -> None:
        """Remove what no execution uses, but for the newest."""
        used = {Path(each).name for each in _links(link)}
        by_age = sorted(self._directory.iterdir(), key=lambda path: path.stat().st_mtime)
        unused = [path for path in by_age if path.name.partition(".")[0] not in used]
        for path in unused[:-SHARED_CODE_KEPT]:
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
