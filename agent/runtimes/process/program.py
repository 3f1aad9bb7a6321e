"""A started program as the agent follows it: its supervisor's bell tells of more output, of its end, and of the last.

It makes no difference whether this agent or one before it started the program.
"""

import asyncio
import os
from pathlib import Path

from agent.executions.layout import BELL
from agent.logs.spool import LogSpool
from agent.runtimes.kernel.pids import boot_id
from agent.runtimes.process.record import ProcessRecord, read_record
from muster.domain.jobs.failure import ExecutionError, FailureKind

BELL_BYTES = 64 * 1024
"""Bytes taken from the bell at once, as many as a pipe holds."""

_KILLED = "output may be missing: the process that kept it was killed"
_DAMAGED = "output may be missing: the record of the process that kept it is damaged"


class FollowedProgram:
    """Follows a supervisor and its program. Made within the event loop."""

    def __init__(self, directory: Path, spool: LogSpool, record: ProcessRecord) -> None:
        self._loop = asyncio.get_running_loop()
        self._directory = directory
        self._spool = spool
        self.supervisor = record.supervisor
        self.subtree = record.subtree(directory.name)
        """Everything that it starts."""
        self._damaged = record.damaged
        self.ended: asyncio.Future[int | ExecutionError] = self._loop.create_future()
        """The program's return code, as Python gives it, or why nobody knows it; told when all that it started has
        ended.
        """
        self.complete = asyncio.Event()
        """Set when nothing more comes into the spool."""
        self.gone = asyncio.Event()
        """Set when its supervisor has ended, or is done with it."""
        self.out_of_memory = False
        """Whether the kernel killed anything of it because its memory was used up; known once it has ended."""
        self.alone = False
        """Whether nothing of all that it started is left to be ended."""
        self._bell = self._listen()
        if self._bell >= 0 and not record.complete and self.supervisor.runs:
            self._loop.add_reader(self._bell, self._hear)
            self._look()
        else:
            self._lose()

    @property
    def outcome(self) -> int | ExecutionError | None:
        """What `ended` tells; None as long as there is nothing to tell."""
        return self.ended.result() if self.ended.done() else None

    def close(self) -> None:
        """Follow it no more; harmless when repeated."""
        if self._bell >= 0:
            self._loop.remove_reader(self._bell)
            os.close(self._bell)
            self._bell = -1

    def _listen(self) -> int:
        """Open the bell; a supervisor that cannot be heard is of no use."""
        try:
            return os.open(self._directory / BELL, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            self.supervisor.kill()
            return -1

    def _hear(self) -> None:
        try:
            rung = os.read(self._bell, BELL_BYTES)
        except BlockingIOError:
            return
        if rung:
            self._look()
        else:
            self._lose()

    def _look(self) -> None:
        """See what is new."""
        record = read_record(self._directory)
        self._spool.look()  # after the record: what says that the log is complete comes after all that is in it
        if record is None:
            return
        if record.program is not None and not self._damaged:
            self.subtree = record.subtree(self._directory.name)
        if record.code is not None and not self.ended.done():
            self.out_of_memory = record.out_of_memory
            self.ended.set_result(record.code)
        if record.complete:
            self.alone = record.alone
            self.complete.set()
            self.gone.set()
            self.close()

    def _lose(self) -> None:
        """The supervisor is gone; what it has not told, it cannot tell any more."""
        self.close()
        self._look()
        self.gone.set()
        if not self.ended.done():
            self.ended.set_result(self._loss())
        if not self.complete.is_set():
            self._spool.mark(_DAMAGED if self._damaged else _KILLED)
            self.complete.set()

    def _loss(self) -> ExecutionError:
        if self._damaged:
            message = "its record (process.json) on the node is damaged, so nobody knows how user code ended"
            return ExecutionError(FailureKind.RUNTIME, message)
        if self.supervisor.boot != boot_id():
            return ExecutionError(FailureKind.AGENT_RESTARTED, "the node was restarted while user code ran")
        record = read_record(self._directory)
        cause = f"failed ({record.fault})" if record is not None and record.fault else "was killed"
        message = f"its supervisor (process {self.supervisor.pid}) {cause}, so nobody knows how user code ended"
        return ExecutionError(FailureKind.RUNTIME, message)
