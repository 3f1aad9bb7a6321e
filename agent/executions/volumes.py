"""Volumes on the node's disk: made for executions, looked at, and cleared away or kept.

```
DIRECTORY/scratch/EXECUTION/NAME         gone with the execution
DIRECTORY/kept/PROJECT/NAME/data         kept for the jobs of the project
DIRECTORY/kept/PROJECT/NAME/seen.json    what was seen of it last
```

All of these directories belong to the agent but the volumes themselves, which belong to the user of the job. So nothing
that user code does puts a link in the way of the agent.
"""

import json
import os
import stat
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent.core.launching.job_user import JobUser
from agent.executions.layout import ExecutionDirectory
from agent.executions.owner import give
from agent.executions.trees import remove_tree
from agent.executions.whole_file import write_whole
from muster.domain.data.volume import Volume
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.rules import job_values

VOLUME_DIRECTORY, SCRATCH_VOLUMES, KEPT_VOLUMES = "volumes", "scratch", "kept"
VOLUME_DATA, SEEN_FILE = "data", "seen.json"
_CLOSED, _PASSED_THROUGH, _PRIVATE = 0o700, 0o711, 0o600
_BLOCK = 512
_MODES_OF_ALL = 0o007


@dataclass(frozen=True, slots=True)
class Promise:
    """The disk that an execution may use, and how much of that it used when it was looked at last."""

    size: int
    used: int

    @property
    def left(self) -> int:
        """Bytes that may still be written."""
        return max(0, self.size - self.used)


class NodeVolumes:
    """Volumes of one node. Every call may block for a moment, and may come from any thread."""

    def __init__(self, directory: Path | None = None) -> None:
        """Have none yet; `directory`: where they lie; None: beside the directory of executions."""
        self._directory = directory
        self._promised: dict[str, Promise] = {}
        self._promising = threading.Lock()

    def below(self, executions: Path) -> Path:
        """Where the volumes of a node lie whose executions lie there."""
        return self._directory or executions.with_name(VOLUME_DIRECTORY)

    def of(self, directory: ExecutionDirectory, project: str, volume: Volume) -> Path | None:
        """Where a volume of an execution lies, whether or not it was made; None: it lies in memory."""
        root = self.below(directory.path.parent)
        if volume.is_scratch:
            return root / SCRATCH_VOLUMES / directory.path.name / volume.name
        return root / KEPT_VOLUMES / project / volume.name / VOLUME_DATA if volume.is_kept else None

    def paths(self, directory: ExecutionDirectory, project: str, volumes: Sequence[Volume]) -> Mapping[str, Path]:
        """Where each volume lies that does not lie in memory, by name."""
        found = ((volume.name, self.of(directory, project, volume)) for volume in volumes)
        return {name: path for name, path in found if path is not None}

    def make(
        self,
        directory: ExecutionDirectory,
        project: str,
        volumes: Sequence[Volume],
        user: JobUser | None,
        *,
        walked: bool = False,
    ) -> Mapping[str, Path]:
        """Have the volumes of an execution for a user, and tell where; None: a user that only the image knows.

        `walked`: user code gets to them by their paths, so that it has to pass what is above them; the user is the
        agent's own where there is none. Raises ExecutionError where there is not enough disk for them, or where a kept
        one is another user's.
        """
        places = self.paths(directory, project, volumes)
        if not places:
            return {}
        on_disk = [volume for volume in volumes if volume.name in places]
        _refuse_odd_names(project, on_disk)
        root = self.below(directory.path.parent)
        _have(root, _PASSED_THROUGH)
        with self._promising:
            self._refuse_too_little(directory, project, on_disk)
            self.promise(directory, project, on_disk)
        for volume in on_disk:
            path = places[volume.name]
            for above in reversed(path.relative_to(root).parents[1:-1]):
                _have(root / above, _PASSED_THROUGH)
            _have(path.parent, _PASSED_THROUGH if walked else _CLOSED)
            if volume.is_scratch:
                path.mkdir(exist_ok=True)
                _give(path, user, walked=walked)
            else:
                _open_kept(path, volume, user, walked=walked)
        return places

    def promise(
        self,
        directory: ExecutionDirectory,
        project: str,
        volumes: Sequence[Volume],
        used: Mapping[str, int] | None = None,
    ) -> None:
        """Note what an execution may use of the disk, and uses by now, so that nobody else is promised the same."""
        sizes = {volume.name: volume.size or 0 for volume in volumes}
        seen = {volume.name: self._seen(directory, project, volume) for volume in volumes} | dict(used or {})
        self._promised[directory.path.name] = Promise(
            sum(sizes.values()), sum(min(size, seen[name]) for name, size in sizes.items())
        )

    def note_kept(self, directory: ExecutionDirectory, project: str, volume: Volume, used: int) -> None:
        """Note how much lies in a kept volume, and that it is used now."""
        path = self.of(directory, project, volume)
        if path is not None and volume.is_kept:
            with suppress(OSError):
                write_whole(
                    path.with_name(SEEN_FILE), json.dumps({"used": used, "size": volume.size}).encode(), _PRIVATE
                )

    def clear(self, directory: ExecutionDirectory) -> None:
        """Remove what goes with an execution; what is kept stays. Harmless when repeated."""
        path = self.below(directory.path.parent) / SCRATCH_VOLUMES / directory.path.name
        if path.exists():
            remove_tree(path)
        self._promised.pop(directory.path.name, None)

    def sweep(self, executions: Path, known: Collection[str]) -> None:
        """Remove what executions left that nobody knows any more."""
        with suppress(FileNotFoundError):
            for path in (self.below(executions) / SCRATCH_VOLUMES).iterdir():
                if path.name not in known:
                    remove_tree(path)

    def _seen(self, directory: ExecutionDirectory, project: str, volume: Volume) -> int:
        """How much lay in a kept volume when it was looked at last; 0 for any other."""
        path = self.of(directory, project, volume)
        if path is None or not volume.is_kept:
            return 0
        try:
            used = json.loads(path.with_name(SEEN_FILE).read_bytes())["used"]
        except (OSError, ValueError, KeyError, TypeError):
            return 0
        return used if isinstance(used, int) and used > 0 else 0

    def _refuse_too_little(self, directory: ExecutionDirectory, project: str, volumes: Sequence[Volume]) -> None:
        root = self.below(directory.path.parent)
        found = os.statvfs(root)
        free = found.f_bavail * found.f_frsize
        promised = sum(each.left for other, each in [*self._promised.items()] if other != directory.path.name)
        wanted = sum(max(0, (volume.size or 0) - self._seen(directory, project, volume)) for volume in volumes)
        if wanted > free - promised:
            given_away = f", of which {size_words(promised)} are promised to other executions" if promised else ""
            message = f"volumes want {size_words(wanted)} of disk; {size_words(free)} are free at {root}{given_away}"
            raise ExecutionError(FailureKind.DISK_FULL, message)


def size_words(size: int) -> str:
    """Bytes for people: `3.2 GiB`."""
    unit = next((number for number in (3, 2) if size >= 1 << 10 * number), 1)
    return f"{size / (1 << 10 * unit):.1f} {('KiB', 'MiB', 'GiB')[unit - 1]}"


def bytes_in(directory: Path) -> int:
    """Bytes of disk below a directory, as far as the agent may look; links are not followed. Blocks."""
    total = 0
    left = [str(directory)]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        left.append(entry.path)
                        total += found.st_blocks * _BLOCK
                    else:
                        total += found.st_blocks * _BLOCK // max(1, found.st_nlink)
        except OSError:
            continue  # it is gone by now, or closed to the agent
    return total


def _have(directory: Path, mode: int) -> None:
    """Have a directory of the agent's own; one that more may pass through stays so."""
    directory.mkdir(parents=True, exist_ok=True)
    has = directory.stat().st_mode & 0o7777
    wanted = mode | (has & _PASSED_THROUGH)
    if has != wanted:
        directory.chmod(wanted)


def _give(path: Path, user: JobUser | None, *, walked: bool) -> None:
    """Have a directory for user code; where it is anybody's, nobody else gets to it."""
    if walked and user is None:
        path.chmod(_CLOSED)  # processes of the agent's own user
    else:
        give(path, user)


def _open_kept(path: Path, volume: Volume, user: JobUser | None, *, walked: bool) -> None:
    """Make a kept volume for a user, or find it; raises ExecutionError where it belongs to another user."""
    try:
        path.mkdir()
    except FileExistsError:
        found = path.stat(follow_symlinks=False)
        own = os.geteuid() if user is None else user.uid
        behind_wall = not walked and (user is None or found.st_mode & _MODES_OF_ALL)
        if behind_wall or own in {0, found.st_uid}:
            return
        message = (
            f"volumes.{volume.name}: belongs to user {found.st_uid} of this node, and the role runs as user {own}; use "
            "another name, or have it removed"
        )
        raise ExecutionError(FailureKind.INVALID_OPTION, message) from None
    _give(path, user, walked=walked)


def _refuse_odd_names(project: str, volumes: Sequence[Volume]) -> None:
    """The coordinator sends no others; a path is made of them all the same."""
    for name in (project, *(volume.name for volume in volumes)):
        if job_values.label(name) is not None:
            raise ExecutionError(FailureKind.INVALID_OPTION, f"volumes: {name!r} cannot be the name of a directory")
