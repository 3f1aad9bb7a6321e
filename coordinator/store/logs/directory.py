"""Where logs lie: `<logs>/<job>/<attempt>-<rank>.cri`, beside a complete one its marker, and where its points begin."""

import os
import re
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from coordinator.store.logs.disk import disk_faults, sync_and_close
from muster.domain.errors import UnknownNameError
from muster.domain.ids import ExecutionId, JobId

_DROPPED = ".dropped-"
"""What the directory of a job is called, before its own name, while it is deleted."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
"""No path in the file system but a plain name in the logs' own directory can match."""

_EXECUTION = re.compile(rf"({_NAME.pattern})-([1-9][0-9]{{0,8}})-(0|[1-9][0-9]{{0,8}})")


class LogDirectory:
    """The names of all logs and of their markers: made, asked for, brought to the disk and deleted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._named: set[Path] = set()
        """Directories of jobs whose own names are surely on the disk."""

    def log(self, execution: ExecutionId) -> Path:
        """The file of a log; raises UnknownNameError for a name that could lead elsewhere."""
        parts = _EXECUTION.fullmatch(execution)
        if parts is None:
            raise UnknownNameError(f"{execution[:200]!r} is no id of an execution")
        job, attempt, rank = parts.groups()
        return self._path / job / f"{attempt}-{rank}.cri"

    def points(self, execution: ExecutionId) -> Path:
        """The file that says where points begin in a log."""
        return self.log(execution).with_suffix(".points")

    def job(self, job: JobId) -> Path:
        """The directory with the logs of a job; raises UnknownNameError for a name that could lead elsewhere."""
        if not _NAME.fullmatch(job):
            raise UnknownNameError(f"{job[:200]!r} is no id of a job")
        return self._path / job

    def is_complete(self, execution: ExecutionId) -> bool:
        """Whether a log has its marker."""
        return self._marker(execution).exists()

    def mark_complete(self, execution: ExecutionId) -> None:
        """Give a log its marker; FileNotFoundError where its job has no directory."""
        os.close(os.open(self._marker(execution), os.O_WRONLY | os.O_CREAT, 0o600))

    def mark_empty(self, execution: ExecutionId) -> None:
        """Give a log without a file its marker."""
        self._marker(execution).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.mark_complete(execution)

    def sync_names(self, executions: Collection[ExecutionId]) -> None:
        """Have the names of these logs and markers on the disk; those of one job reach it at once."""
        for directory in {self.log(execution).parent for execution in executions}:
            with disk_faults(f"the logs in {directory} cannot be kept"), suppress(FileNotFoundError):  # just dropped
                self._sync_names_in(directory)

    def drop(self, job: JobId) -> None:
        """Delete the logs of a job, if there are any."""
        directory = self.job(job)
        self._named.discard(directory)
        with disk_faults(f"the logs in {directory} cannot be deleted"), suppress(FileNotFoundError):
            # Under its new name the next start knows that it was to go, if the end comes before all of it is gone.
            dropped = directory.with_name(_DROPPED + directory.name)
            shutil.rmtree(dropped, ignore_errors=True)
            shutil.rmtree(directory.rename(dropped))

    def unknown(self, jobs: Collection[JobId]) -> tuple[Path, ...]:
        """Directories with logs of other jobs than these; deletes what was dropped and not gone at the last end."""
        if not self._path.exists():
            return ()
        for path in self._path.glob(f"{_DROPPED}*"):
            with disk_faults(f"the logs in {path} cannot be deleted"):
                shutil.rmtree(path)
        found = sorted(self._path.iterdir())
        return tuple(path for path in found if path.name not in jobs and _NAME.fullmatch(path.name))

    def _marker(self, execution: ExecutionId) -> Path:
        return self.log(execution).with_suffix(".complete")

    def _sync_names_in(self, directory: Path) -> None:
        sync_and_close(os.open(directory, os.O_RDONLY))
        if directory not in self._named:
            sync_and_close(os.open(self._path, os.O_RDONLY))
            self._named.add(directory)
