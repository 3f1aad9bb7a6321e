"""The logs that are open for writing: those that were written last, as many as a process may hold open."""

import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from coordinator.store.logs.directory import LogDirectory
from coordinator.store.logs.file import StoredLogFile
from muster.domain.ids import ExecutionId, JobId


@dataclass(slots=True)
class OpenLog:
    """A log that is open for writing; ends with a whole line."""

    fd: int
    size: int
    complete: bool

    @classmethod
    def at(cls, path: Path, *, complete: bool) -> "OpenLog":
        """The log at a path, made if it is not there; a last line that was cut is gone."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        try:
            fd = os.open(path, flags, 0o600)
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(path, flags, 0o600)
        size = StoredLogFile.of(fd).end
        os.ftruncate(fd, size)  # a last line that was cut by a crash was never acknowledged
        return cls(fd, size, complete)

    def write(self, data: bytes) -> None:
        """Append whole lines, or nothing of them."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self.fd, rest) :]
        except OSError:
            os.ftruncate(self.fd, self.size)
            raise
        self.size += len(data)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self.fd)


class OpenLogs:
    """The logs that were written last; whoever calls holds a lock, but for `in`."""

    def __init__(self, directory: LogDirectory, most: int) -> None:
        """`most`: how many stay open; the one that was not used for longest is closed where there are more."""
        self._directory = directory
        self._most = most
        self._logs: OrderedDict[ExecutionId, OpenLog] = OrderedDict()

    def __contains__(self, execution: ExecutionId) -> bool:
        return execution in self._logs

    def of(self, execution: ExecutionId) -> OpenLog:
        """The log of an execution, opened or made if need be."""
        log = self._logs.get(execution)
        if log is None:
            complete = self._directory.is_complete(execution)
            log = self._logs[execution] = OpenLog.at(self._directory.log(execution), complete=complete)
            if len(self._logs) > self._most:
                self._logs.popitem(last=False)[1].close()
        self._logs.move_to_end(execution)
        return log

    def close_job(self, job: JobId) -> None:
        """Close the logs of a job."""
        directory = self._directory.job(job)
        for execution in [each for each in self._logs if self._directory.log(each).parent == directory]:
            self._logs.pop(execution).close()

    def close(self) -> None:
        """Close all logs."""
        while self._logs:
            self._logs.popitem()[1].close()
