"""Makes and clears the directories of executions.

Some are made before they are needed: to make a directory or a file can cost a file system many times as much as to
write into it, and a gang waits for all of its members. A spare becomes the room of one execution, which nothing was
in before, and is cleared away like any other.
"""

import os
import shutil
from collections import deque
from contextlib import suppress
from itertools import count
from pathlib import Path

from agent.executions.files import READABLE
from agent.executions.layout import BELL, EXECUTION_RECORD, PROCESS_RECORD, ExecutionDirectory
from agent.executions.record import PRIVATE_RECORD, ExecutionRecord, note_first
from agent.executions.trees import remove_tree
from agent.executions.whole_file import write_unseen
from muster import worker
from muster.domain.gangs.roster import CONFIG_FILES
from muster.domain.ids import ExecutionId

SPARES = 2
"""Rooms that are made before the first is needed."""

WORKER_MODULE = "muster_worker.py"
"""The module `muster.worker` as it lies beside the roster files, for user code where Muster is not installed."""

KEPT = 8
"""Spare rooms at most: as many as a node with eight GPUs may need at once."""


class ExecutionDirectories:
    """All rooms of one node. Every call but `take_spare` may block for a moment; all may come from any thread."""

    def __init__(self, path: Path, outputs: Path) -> None:
        self.path = path
        """Where they are."""
        self._outputs = outputs
        self._spares_path = path.with_name("spares")
        self._worker = Path(worker.__file__).with_name("worker.py").read_bytes()
        self._spares: deque[ExecutionDirectory] = deque()
        self._numbers = count()

    def of(self, execution: ExecutionId) -> ExecutionDirectory:
        """The room of an execution, whether or not it was made."""
        return ExecutionDirectory(self.path, execution)

    def begin(self) -> None:
        """Have their directory, and some spares in place of those of an earlier agent. Raises OSError."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._clear_spares()
        for _ in range(SPARES):
            self._add_spare()

    def take_spare(self, room: ExecutionDirectory, record: ExecutionRecord) -> bool:
        """Do what `make` does, in so little time that no thread is worth it; False where there is no spare. Raises
        OSError.
        """
        try:
            self._spares.popleft().path.rename(room.path)
        except (IndexError, OSError):  # there is none, somebody has removed it, or there is such a room already
            return False
        note_first(room, record)
        return True

    def make(self, room: ExecutionDirectory, record: ExecutionRecord) -> None:
        """Have the directories that every execution has, and note whose they are. Raises OSError."""
        self._make_directories(room)
        note_first(room, record)

    def clear(self, room: ExecutionDirectory) -> None:
        """Remove a room, but keep what user code left in its outputs. Raises OSError where that cannot be kept."""
        _keep_outputs(room, self._outputs)
        _remove(room)
        self._add_spare()

    def close(self) -> None:
        """Leave no spares. Nothing else may be called afterwards."""
        self._clear_spares()

    def _add_spare(self) -> None:
        """Where it cannot be made, whoever needs a room hears why."""
        if len(self._spares) >= KEPT:
            return
        spare = ExecutionDirectory(self._spares_path, ExecutionId(str(next(self._numbers))))
        with suppress(OSError):
            self._spares_path.mkdir(mode=0o700, exist_ok=True)
            self._make_directories(spare)
            _make_files(spare)
            self._spares.append(spare)

    def _clear_spares(self) -> None:
        self._spares.clear()
        shutil.rmtree(self._spares_path, ignore_errors=True)

    def _make_directories(self, room: ExecutionDirectory) -> None:
        for directory in (room.config, room.work, room.outputs):
            directory.mkdir(parents=True, exist_ok=True)
        write_unseen(room.config / WORKER_MODULE, self._worker, READABLE)


def _make_files(room: ExecutionDirectory) -> None:
    """Make the empty files that an execution will have."""
    for path in (room.log, room.path / EXECUTION_RECORD, room.path / PROCESS_RECORD):
        write_unseen(path, b"", PRIVATE_RECORD)
    for name in CONFIG_FILES:
        write_unseen(room.config / name, b"", READABLE)
    os.mkfifo(room.path / BELL, PRIVATE_RECORD)


def _keep_outputs(room: ExecutionDirectory, outputs: Path) -> None:
    with suppress(OSError):
        room.outputs.rmdir()
    if room.outputs.exists():
        outputs.mkdir(mode=0o700, parents=True, exist_ok=True)
        outputs.chmod(0o700)  # what jobs have left is not for the jobs that come after them
        shutil.move(room.outputs, outputs / room.path.name)


def _remove(room: ExecutionDirectory) -> None:
    """Remove the directory. As a rule nothing but a few files is left in it, and a tree need not be walked."""
    try:
        os.rmdir(room.work)  # noqa: PTH106 (path objects cost more than the calls)
        for directory in map(str, (room.config, room.path)):
            for name in os.listdir(directory):  # noqa: PTH208
                os.unlink(f"{directory}/{name}")  # noqa: PTH108
            os.rmdir(directory)  # noqa: PTH106
    except OSError:
        remove_tree(room.path)
