"""Volumes that stay on the node for the jobs of a project: who uses them, what is known of them, and how they go.

```
DIRECTORY/kept/PROJECT/NAME/data         what user code finds
DIRECTORY/kept/PROJECT/NAME/seen.json    how much lay in it, and when it was used last
DIRECTORY/uses/EXECUTION                 what an execution uses, and how much may lie in that
DIRECTORY/going/X/NAME                   on its way out: no job finds it any more
```

No database: whoever wants to know lists directories, which are few. Every call may block, and may come from any thread.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from agent.executions.trees import remove_tree
from agent.executions.volumes.amounts import bytes_in
from agent.executions.volumes.eviction import HeldVolume, longest_unused, surplus
from agent.executions.whole_file import write_whole
from muster.domain.data.volume import MOST_KEPT_VOLUMES, KeptVolume, RemovalOutcome, VolumeId
from muster.domain.jobs.rules import job_values

DEFAULT_KEPT_SHARE = 50
"""Percent of the file system that kept volumes take where no size was named."""
TOLD_CHANGE = 16
"""What part of a kept volume must have come or gone before that is told while it is in use: a sixteenth."""

KEPT_DIRECTORY, VOLUME_USES, GOING_VOLUMES, VOLUME_DATA, SEEN_FILE = "kept", "uses", "going", "data", "seen.json"
_CLOSED, _PRIVATE = 0o700, 0o600

KeptUses = Mapping[VolumeId, int]
"""The kept volumes that an execution uses, and how many bytes may lie in each."""


class KeptVolumes:
    """The volumes that one node keeps, below the directory of its volumes, which every call is given."""

    def __init__(
        self,
        limit: int | None = None,
        clock: Callable[[], float] = time.time,
        disk: Callable[[Path], os.statvfs_result] = os.statvfs,
    ) -> None:
        """`limit`: most bytes that they may take; None: a share of the file system."""
        self.lock = threading.RLock()
        """Held while it is decided what goes and what is used."""
        self.revision = 0
        """Counts up whenever there is something to tell of them."""
        self._limit = limit
        self._clock = clock
        self._disk = disk

    def place(self, root: Path, volume: VolumeId) -> Path:
        """Where a volume lies, whether or not it is there."""
        return root / KEPT_DIRECTORY / volume.project / volume.name

    def limit(self, root: Path) -> int:
        """Most bytes that they may take."""
        if self._limit is not None:
            return self._limit
        disk = self._disk(root)
        return disk.f_blocks * disk.f_frsize * DEFAULT_KEPT_SHARE // 100

    def told(self, root: Path) -> Sequence[KeptVolume]:
        """All of them, as the coordinator is told of them, by project and name."""
        return [
            KeptVolume(id=each.id, bytes=each.bytes, used_at=datetime.fromtimestamp(max(0.0, each.used_at), UTC))
            for each in self.held(root)
        ]

    def held(self, root: Path) -> Sequence[HeldVolume]:
        """All of them with what executions that use them were promised, by project and name."""
        promised: dict[VolumeId, int] = {}
        for uses in self._uses(root).values():
            for volume, size in uses.items():
                promised[volume] = max(promised.get(volume, 0), size)
        found = []
        for place in (root / KEPT_DIRECTORY).glob("*/*"):
            volume = VolumeId(place.parent.name, place.name)
            if is_sound(volume) and (place / VOLUME_DATA).is_dir():
                used, at = _seen(place)
                found.append(HeldVolume(id=volume, bytes=used, used_at=at, promised=promised.get(volume)))
        return sorted(found, key=lambda each: each.id)

    def seen(self, root: Path, volume: VolumeId) -> int:
        """Bytes that lay in a volume when it was looked at last; 0 for one that is not there."""
        return _seen(self.place(root, volume))[0]

    def make_space(self, root: Path, uses: KeptUses, missing: int) -> bool:
        """Have so many bytes of disk more, and these volumes within the limits; whether that could be had.

        What goes are volumes that nobody uses. To be called with the lock, before `begin_use`.
        """
        volumes = {each.id: each for each in self.held(root)}
        for volume, size in uses.items():
            had = volumes.get(volume)
            volumes[volume] = HeldVolume(
                id=volume,
                bytes=0 if had is None else had.bytes,
                used_at=self._clock(),
                promised=max(size, 0 if had is None else had.promised or 0),
            )
        over = surplus([*volumes.values()], self.limit(root)) if uses else 0
        going = longest_unused([*volumes.values()], max(over, missing), len(volumes) - MOST_KEPT_VOLUMES)
        for each in going or ():
            self._remove(root, each.id)
        return going is not None

    def begin_use(self, root: Path, execution: str, uses: KeptUses) -> None:
        """Note that an execution uses volumes from now on; raises OSError. To be called with the lock."""
        directory = root / VOLUME_USES
        directory.mkdir(mode=_CLOSED, exist_ok=True)
        said = [[volume.project, volume.name, size] for volume, size in uses.items()]
        write_whole(directory / execution, json.dumps(said).encode(), _PRIVATE)

    def note(self, root: Path, volume: VolumeId, used: int) -> None:
        """Note how much lies in a volume, which is in use."""
        with self.lock:
            before, at = _seen(self.place(root, volume))
            _note(self.place(root, volume), used, at)
            if abs(used - before) > before // TOLD_CHANGE:
                self.revision += 1

    def note_use(self, root: Path, volume: VolumeId) -> None:
        """Note that a volume is used from now on."""
        with self.lock:
            _note(self.place(root, volume), self.seen(root, volume), self._clock())
            self.revision += 1

    def end_use(self, root: Path, execution: str) -> None:
        """Note that an execution is over, and what it left in its volumes. Harmless when repeated."""
        uses = _read_uses(root / VOLUME_USES / execution)
        if uses is None:
            return
        used = {volume: bytes_in(self.place(root, volume) / VOLUME_DATA) for volume in uses}
        with self.lock:
            for volume, size in used.items():
                if self.place(root, volume).is_dir():
                    _note(self.place(root, volume), size, self._clock())
            (root / VOLUME_USES / execution).unlink(missing_ok=True)
            self.revision += 1
            self._trim(root)

    def sweep(self, root: Path, known: Callable[[str], bool]) -> None:
        """End the uses of executions that nobody knows any more, and remove what was on its way out."""
        for execution in self._uses(root):
            if not known(execution):
                self.end_use(root, execution)
        self.clear_away(root)
        with self.lock:
            self._trim(root)

    def take_away(self, root: Path, volume: VolumeId) -> tuple[RemovalOutcome, str]:
        """Have a volume gone for every job, unless one uses it; what came of that, and why not.

        The bytes are on the disk until `clear_away`. Raises OSError.
        """
        with self.lock:
            if not is_sound(volume) or not (self.place(root, volume) / VOLUME_DATA).is_dir():
                return RemovalOutcome.UNKNOWN, ""
            users = sorted(execution for execution, uses in self._uses(root).items() if volume in uses)
            if users:
                return RemovalOutcome.IN_USE, ", ".join(users)
            self._put_aside(root, volume)
            return RemovalOutcome.REMOVED, ""

    def clear_away(self, root: Path) -> None:
        """Remove from the disk what was taken away."""
        going: list[Path] = []
        with self.lock, suppress(FileNotFoundError):  # none is just being put there
            going = [*(root / GOING_VOLUMES).iterdir()]
        for path in going:
            remove_tree(path)

    def _trim(self, root: Path) -> None:
        """Have no more of them than may be, as far as nobody uses them."""
        if not (root / KEPT_DIRECTORY).is_dir():
            return
        held = self.held(root)
        over, unused = surplus(held, self.limit(root)), sum(each.bytes for each in held if each.promised is None)
        for each in longest_unused(held, min(over, unused), 0) or ():
            self._remove(root, each.id)

    def _remove(self, root: Path, volume: VolumeId) -> None:
        remove_tree(self._put_aside(root, volume))

    def _put_aside(self, root: Path, volume: VolumeId) -> Path:
        """Have a volume out of the way in one step, so that no job ever finds a part of it; where it lies then."""
        aside = root / GOING_VOLUMES
        aside.mkdir(mode=_CLOSED, exist_ok=True)
        place = self.place(root, volume)
        into = aside / os.urandom(8).hex()
        into.mkdir(mode=_CLOSED)
        place.rename(into / place.name)
        with suppress(OSError):
            place.parent.rmdir()  # unless the project has others
        self.revision += 1
        return into

    def _uses(self, root: Path) -> Mapping[str, KeptUses]:
        """What each execution uses."""
        found: dict[str, KeptUses] = {}
        with suppress(FileNotFoundError):
            for path in (root / VOLUME_USES).iterdir():
                if not path.name.startswith(".") and (uses := _read_uses(path)) is not None:
                    found[path.name] = uses
        return found


def is_sound(volume: VolumeId) -> bool:
    """Whether project and name can be names of directories, which lead nowhere else."""
    return all(job_values.label(name) is None for name in volume)


def _read_uses(path: Path) -> KeptUses | None:
    """What an execution uses; None: nothing was noted."""
    try:
        said = json.loads(path.read_bytes())
        uses = {VolumeId(str(project), str(name)): int(size) for project, name, size in said}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        return {}
    return {volume: size for volume, size in uses.items() if is_sound(volume)}


def _seen(place: Path) -> tuple[int, float]:
    """Bytes that lay in a volume when it was looked at last, and when it was used last."""
    try:
        said = json.loads((place / SEEN_FILE).read_bytes())
        used, at = said["used"], float(said["at"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0.0
    return (used if isinstance(used, int) and used > 0 else 0), at


def _note(place: Path, used: int, at: float) -> None:
    """Say so beside a volume; a full disk is no reason not to go on."""
    with suppress(OSError):
        write_whole(place / SEEN_FILE, json.dumps({"used": used, "at": at}).encode(), _PRIVATE)
