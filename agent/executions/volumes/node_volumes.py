"""Volumes on the node's disk: made for executions, looked at, and cleared away or kept.

```
DIRECTORY/scratch/EXECUTION/NAME         gone with the execution
DIRECTORY/kept/PROJECT/NAME/data         kept for the jobs of the project (kept.py)
```

All of these directories belong to the agent but the volumes themselves, which belong to the user of the job. So nothing
that user code does puts a link in the way of the agent.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent.core.launching.job_user import JobUser
from agent.executions.layout import ExecutionDirectory
from agent.executions.owner import give
from agent.executions.trees import remove_tree
from agent.executions.volumes.amounts import size_words
from agent.executions.volumes.kept import KEPT_DIRECTORY, VOLUME_DATA, KeptUses, KeptVolumes
from muster.domain.data.volume import VOLUME_SLACK, Volume, VolumeId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.rules import job_values

VOLUME_DIRECTORY, SCRATCH_VOLUMES = "volumes", "scratch"
_CLOSED, _PASSED_THROUGH = 0o700, 0o711
_MODES_OF_ALL, _PASS_OF_ALL = 0o007, 0o001


@dataclass(frozen=True, slots=True)
class Promise:
    """The disk that a volume may take, and how much of that it took when it was looked at last."""

    size: int
    used: int

    @property
    def left(self) -> int:
        """Bytes that may still be written."""
        return max(0, self.size - self.used)


class NodeVolumes:
    """Volumes of one node. Every call may block for a moment, and may come from any thread."""

    def __init__(self, directory: Path | None = None, kept: KeptVolumes | None = None) -> None:
        """Have none yet; `directory`: where they lie; None: beside the directory of executions."""
        self.kept = kept or KeptVolumes()
        """The volumes that stay on the node."""
        self._directory = directory
        self._promised: dict[str, Mapping[object, Promise]] = {}
        """Promises by execution, and by what each was made for: volumes that several use are promised once."""

    def below(self, executions: Path) -> Path:
        """Where the volumes of a node lie whose executions lie there."""
        return self._directory or executions.with_name(VOLUME_DIRECTORY)

    def of(self, directory: ExecutionDirectory, project: str, volume: Volume) -> Path | None:
        """Where a volume of an execution lies, whether or not it was made; None: it lies in memory."""
        root = self.below(directory.path.parent)
        if volume.is_scratch:
            return root / SCRATCH_VOLUMES / directory.path.name / volume.name
        return self.kept.place(root, VolumeId(project, volume.name)) / VOLUME_DATA if volume.is_kept else None

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
        with self.kept.lock:
            uses = _uses_of(project, on_disk)
            self._refuse_outgrown(root, on_disk, project)
            self._have_space(root, directory, project, on_disk, uses)
            if uses:
                self.kept.begin_use(root, directory.path.name, uses)
            self.promise(directory, project, on_disk)
            for volume in on_disk:
                if volume.is_kept:
                    for above in (root / KEPT_DIRECTORY, root / KEPT_DIRECTORY / project):
                        _have(above, _PASSED_THROUGH)
                    _have_kept(places[volume.name], volume, user, walked=walked)
                    self.kept.note_use(root, VolumeId(project, volume.name))
        for volume in on_disk:
            if volume.is_scratch:
                path = places[volume.name]
                _have(path.parent.parent, _PASSED_THROUGH)
                _have(path.parent, _PASSED_THROUGH if walked else _CLOSED)
                path.mkdir(exist_ok=True)
                _give(path, user, walked=walked)
        return places

    def promise(
        self,
        directory: ExecutionDirectory,
        project: str,
        volumes: Sequence[Volume],
        used: Mapping[str, int] | None = None,
    ) -> None:
        """Note what an execution may use of the disk, and uses by now, so that nobody else is promised the same."""
        seen = {volume.name: self._seen(directory, project, volume) for volume in volumes} | dict(used or {})
        self._promised[directory.path.name] = {
            _key(directory, project, volume): Promise(volume.size or 0, min(volume.size or 0, seen[volume.name]))
            for volume in volumes
            if volume.is_bounded
        }

    def note_kept(self, directory: ExecutionDirectory, project: str, volume: Volume, used: int) -> None:
        """Note how much lies in a kept volume, and that it is used now."""
        if volume.is_kept:
            self.kept.note(self.below(directory.path.parent), VolumeId(project, volume.name), used)

    def clear(self, directory: ExecutionDirectory) -> None:
        """Remove what goes with an execution; what is kept stays. Harmless when repeated."""
        root = self.below(directory.path.parent)
        path = root / SCRATCH_VOLUMES / directory.path.name
        if path.exists():
            remove_tree(path)
        self._promised.pop(directory.path.name, None)
        self.kept.end_use(root, directory.path.name)

    def sweep(self, executions: Path, known: Collection[str]) -> None:
        """Remove what executions left that nobody knows any more, and what was being removed."""
        root = self.below(executions)
        with suppress(FileNotFoundError):
            for path in (root / SCRATCH_VOLUMES).iterdir():
                if path.name not in known:
                    remove_tree(path)
        self.kept.sweep(root, known.__contains__)

    def _seen(self, directory: ExecutionDirectory, project: str, volume: Volume) -> int:
        """How much lay in a kept volume when it was looked at last; 0 for any other."""
        if not volume.is_kept:
            return 0
        return self.kept.seen(self.below(directory.path.parent), VolumeId(project, volume.name))

    def _refuse_outgrown(self, root: Path, volumes: Sequence[Volume], project: str) -> None:
        """Refuse an execution that would be ended at once, as more lies in a volume than it may have."""
        for volume in volumes:
            if volume.is_kept and volume.is_bounded:
                message = outgrown(volume, self.kept.seen(root, VolumeId(project, volume.name)))
                if message is not None:
                    remedy = "give it a larger size, or have it removed (`muster volumes remove`)"
                    raise ExecutionError(FailureKind.VOLUME_FULL, f"{message}; {remedy}")

    def _have_space(
        self, root: Path, directory: ExecutionDirectory, project: str, volumes: Sequence[Volume], uses: KeptUses
    ) -> None:
        """Have enough disk for what volumes may take, and what is kept within its limit; raises ExecutionError."""
        promises = self._promises(directory)
        promised = sum(promise.left for promise in promises.values())
        wanted = 0
        for volume in volumes:
            if volume.is_bounded:
                shared = promises.get(_key(directory, project, volume))
                missing = (volume.size or 0) - self._seen(directory, project, volume)
                wanted += max(0, missing - (0 if shared is None else shared.left))
        free = _free(root)
        within = self.kept.make_space(root, uses, max(0, wanted + promised - free))
        if uses and not within and wanted + promised <= free:
            limit = self.kept.limit(root)
            names = ", ".join(f"volumes.{volume.name}" for volume in volumes if volume.is_kept)
            message = (
                f"{names}: {size_words(sum(uses.values()))} are wanted; this node keeps at most {size_words(limit)} of "
                f"volumes (--kept-size) at {root}, and what others use stays"
            )
            raise ExecutionError(FailureKind.DISK_FULL, message)
        free = _free(root)
        if wanted > free - promised:
            given_away = f", of which {size_words(promised)} are promised to other executions" if promised else ""
            message = f"volumes want {size_words(wanted)} of disk; {size_words(free)} are free at {root}{given_away}"
            raise ExecutionError(FailureKind.DISK_FULL, message)

    def _promises(self, directory: ExecutionDirectory) -> Mapping[object, Promise]:
        """What other executions were promised, for each volume the most."""
        most: dict[object, Promise] = {}
        for other, promises in [*self._promised.items()]:
            if other != directory.path.name:
                for key, promise in promises.items():
                    if key not in most or promise.left > most[key].left:
                        most[key] = promise
        return most


def outgrown(volume: Volume, has: int) -> str | None:
    """A sentence on a volume in which there is too much; None: there is not."""
    size = volume.size or 0
    if has <= size * (100 + VOLUME_SLACK) // 100:
        return None
    return (
        f"the volume {volume.name} holds {size_words(has)}; its size is {size_words(size)} (volumes.{volume.name}.size)"
    )


def _key(directory: ExecutionDirectory, project: str, volume: Volume) -> object:
    """What a promise is made for: a kept volume whoever uses it, or that of one execution."""
    return VolumeId(project, volume.name) if volume.is_kept else (directory.path.name, volume.name)


def _uses_of(project: str, volumes: Sequence[Volume]) -> KeptUses:
    """The kept ones, and what may lie in each; who only reads adds nothing."""
    return {VolumeId(project, each.name): (each.size or 0) if each.writable else 0 for each in volumes if each.is_kept}


def _free(root: Path) -> int:
    found = os.statvfs(root)
    return found.f_bavail * found.f_frsize


def _have(directory: Path, mode: int) -> None:
    """Have a directory of the agent's own; one that more may pass through stays so."""
    directory.mkdir(mode=mode, parents=True, exist_ok=True)
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


def _have_kept(path: Path, volume: Volume, user: JobUser | None, *, walked: bool) -> None:
    """Make a kept volume for a user, or find it; raises ExecutionError where it belongs to another user.

    Users of several containers share one, which then is anybody's behind the closed directory above it. Processes pass
    that directory, so that theirs is one user's alone.
    """
    above = path.parent
    if not path.exists():
        fresh = path.with_name(f"{path.name}.new")  # an agent that is killed here leaves nothing that is found
        if fresh.exists():
            remove_tree(fresh)
        _have(above, _PASSED_THROUGH if walked else _CLOSED)
        fresh.mkdir()
        _give(fresh, user, walked=walked)
        fresh.rename(path)
        return
    found = path.stat(follow_symlinks=False)
    own = os.geteuid() if user is None else user.uid
    anybodys = bool(found.st_mode & _MODES_OF_ALL)
    if walked:
        if anybodys or own not in {0, found.st_uid}:
            raise _anothers(volume, found.st_uid, own, anybodys=anybodys)
        _have(above, _PASSED_THROUGH)
    elif not anybodys and (user is None or own not in {0, found.st_uid}):
        if above.stat().st_mode & _PASS_OF_ALL:
            raise _anothers(volume, found.st_uid, own, anybodys=False)
        give(path, None)


def _anothers(volume: Volume, owner: int, own: int, *, anybodys: bool) -> ExecutionError:
    whose = "containers of several users" if anybodys else f"user {owner} of this node"
    message = (
        f"volumes.{volume.name}: belongs to {whose}, and the role runs as user {own}; use another name, or have it "
        "removed (`muster volumes remove`)"
    )
    return ExecutionError(FailureKind.INVALID_OPTION, message)


def _refuse_odd_names(project: str, volumes: Sequence[Volume]) -> None:
    """The coordinator sends no others; a path is made of them all the same."""
    for name in (project, *(volume.name for volume in volumes)):
        if job_values.label(name) is not None:
            raise ExecutionError(FailureKind.INVALID_OPTION, f"volumes: {name!r} cannot be the name of a directory")
