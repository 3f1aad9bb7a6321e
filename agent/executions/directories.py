"""Makes and clears the directories of executions.

Some are made before they are needed: to make a directory or a file can cost a file system many times as much as to
write into it, and a gang waits for all of its members. A spare becomes the directory of one execution, which nothing
was in before, and is cleared away like any other.
"""

import os
import shutil
from collections import deque
from contextlib import suppress
from itertools import count
from pathlib import Path

from agent.executions.files import READABLE
from agent.executions.layout import BELL, CGROUPS, EXECUTION_RECORD, PROCESS_RECORD, ExecutionDirectory
from agent.executions.record import PRIVATE_RECORD, ExecutionRecord, note_first, noted_outputs
from agent.executions.trees import remove_tree
from agent.executions.volumes.node_volumes import NodeVolumes
from agent.executions.whole_file import write_unseen
from muster import worker
from muster.domain.data.outputs import ExecutionOutputs, OutputsStage
from muster.domain.gangs.roster import CONFIG_FILES
from muster.domain.ids import ExecutionId

SPARES = 2
"""Directories of executions that are made before the first is needed."""

WORKER_MODULE = "muster_worker.py"
"""The module `muster.worker` as it lies beside the roster files, for user code where Muster is not installed."""

SHARED = 0o755
"""Rights of a directory that everybody may read."""

KEPT = 8
"""Spare directories at most: as many as a node with eight GPUs may need at once."""


class ExecutionDirectories:
    """Directories of all executions of one node.

    Every call but `take_spare` may block for a moment; all may come from any thread.
    """

    def __init__(self, path: Path, outputs: Path, volumes: NodeVolumes | None = None) -> None:
        self.path = path
        """Where they are."""
        self.volumes = volumes or NodeVolumes()
        self._outputs = outputs
        self._spares_path = path.with_name("spares")
        self._worker = Path(worker.__file__).with_name("worker.py").read_bytes()
        self._spares: deque[ExecutionDirectory] = deque()
        self._numbers = count()

    def of(self, execution: ExecutionId) -> ExecutionDirectory:
        """The directory of an execution, whether or not it was made."""
        return ExecutionDirectory(self.path, execution)

    def begin(self) -> None:
        """Have their directory, and some spares in place of those of an earlier agent. Raises OSError."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._clear_spares()
        for _ in range(SPARES):
            self._add_spare()

    def take_spare(self, directory: ExecutionDirectory, record: ExecutionRecord) -> bool:
        """Do what `make` does, in so little time that no thread is worth it; False where there is no spare. Raises
        OSError.
        """
        try:
            self._spares.popleft().path.rename(directory.path)
        except (IndexError, OSError):  # there is none, somebody has removed it, or there is such a directory already
            return False
        note_first(directory, record)
        return True

    def make(self, directory: ExecutionDirectory, record: ExecutionRecord) -> None:
        """Have the directories that every execution has, and note whose they are. Raises OSError."""
        self._make_directories(directory)
        note_first(directory, record)

    def add_inputs(self, directory: ExecutionDirectory) -> None:
        """Make the directory of inputs, which everybody may read. Raises OSError."""
        directory.inputs.mkdir(exist_ok=True)
        directory.inputs.chmod(SHARED)

    def clear(self, directory: ExecutionDirectory) -> None:
        """Remove an execution's directory, but keep what user code left in its outputs and nobody has stored.

        Raises OSError where that cannot be kept.
        """
        self.volumes.clear(directory)
        _keep_outputs(directory, self._outputs)
        _remove(directory)
        self._add_spare()

    def kept_outputs(self, execution: ExecutionId) -> Path:
        """Where outputs of an execution lie that was cleared away before anybody had stored them, if any do."""
        return self._outputs / execution

    def drop_kept_outputs(self, execution: ExecutionId) -> None:
        """Remove these. Raises OSError."""
        if (kept := self.kept_outputs(execution)).exists():
            remove_tree(kept)

    def close(self) -> None:
        """Leave no spares. Nothing else may be called afterwards."""
        self._clear_spares()

    def _add_spare(self) -> None:
        """Make one more, if it can be made; otherwise whoever needs a directory hears why."""
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

    def _make_directories(self, directory: ExecutionDirectory) -> None:
        for path in (directory.config, directory.work, directory.outputs, directory.status):
            path.mkdir(parents=True, exist_ok=True)
        write_unseen(directory.config / WORKER_MODULE, self._worker, READABLE)


def _make_files(directory: ExecutionDirectory) -> None:
    """Make the empty files that an execution will have."""
    for path in (directory.log, *(directory.path / name for name in (EXECUTION_RECORD, PROCESS_RECORD, CGROUPS))):
        write_unseen(path, b"", PRIVATE_RECORD)
    for name in CONFIG_FILES:
        write_unseen(directory.config / name, b"", READABLE)
    os.mkfifo(directory.path / BELL, PRIVATE_RECORD)


def _keep_outputs(directory: ExecutionDirectory, outputs: Path) -> None:
    with suppress(OSError):
        directory.outputs.rmdir()
    if directory.outputs.exists() and not may_go(noted_outputs(directory.path)):
        outputs.mkdir(mode=0o700, parents=True, exist_ok=True)
        outputs.chmod(0o700)  # what jobs have left is not for the jobs that come after them
        shutil.move(directory.outputs, outputs / directory.path.name)


def may_go(known: ExecutionOutputs | None) -> bool:
    """Whether the depot has all outputs that are wanted, so that the node need not keep any."""
    if known is None or known.stage is OutputsStage.UNWANTED:
        return known is not None
    return known.stage is OutputsStage.STORED and not known.left_out


def _remove(directory: ExecutionDirectory) -> None:
    """Remove the directory. As a rule nothing but a few files is left in it, and a tree need not be walked."""
    try:
        os.rmdir(directory.work)  # noqa: PTH106 (path objects cost more than the calls)
        for path in map(str, (directory.config, directory.status, directory.path)):
            for name in os.listdir(path):  # noqa: PTH208 - path objects cost more than the calls
                os.unlink(f"{path}/{name}")  # noqa: PTH108 - as above
            os.rmdir(path)  # noqa: PTH106 - as above
    except OSError:
        remove_tree(directory.path)
