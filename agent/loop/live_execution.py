"""What the loop holds of one execution."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from agent.attach.door import ExecutionDoor
from agent.executions.layout import ExecutionDirectory
from agent.executions.record import ExecutionRecord, note
from agent.logs.spool import LogSpool
from agent.runtimes.runtime import Sandbox
from muster.domain.jobs.job import RuntimeKind

START_NOTED_AFTER = 1.0
"""Seconds from the start of user code until that is to be noted: all of a gang start at once, and some end at once."""


@dataclass(slots=True)
class LiveExecution:
    """One execution in the loop."""

    kind: RuntimeKind
    directory: ExecutionDirectory
    spool: LogSpool
    sandbox: Sandbox | None = None
    started: bool = False
    """Whether user code may run in it."""
    record: ExecutionRecord | None = None
    """What was noted in its directory; None: an earlier agent did that."""
    door: ExecutionDoor | None = None
    """Where its companion comes to, and commands between the members of its gang; None: it has none yet."""
    attaching: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by whoever has a door or a companion made for it."""
    closed: bool = False
    """Whether it is being cleared away."""
    noting: asyncio.TimerHandle | None = None
    """What sees to it that its start is noted."""

    def have_noted(self, begin: Callable[[], None]) -> None:
        """Have that begun in a while, unless it is closed by then."""
        self.noting = asyncio.get_running_loop().call_later(START_NOTED_AFTER, begin)

    async def note_start(self, at: datetime) -> None:
        """Have it noted when user code was started.

        Where it cannot be noted, or the agent is killed before, the next agent takes its own start for it.
        """
        if self.record is not None:
            with suppress(OSError):
                await asyncio.to_thread(note, self.directory, replace(self.record, started_at=at))

    def user_code_ended(self) -> None:
        """Have those hear it who wait for its companion."""
        if self.door is not None:
            self.door.companion.end()
            self.door.main_program.end()

    def close(self) -> None:
        """Let go of its log, and of a door that nobody came to serve; harmless when repeated."""
        self.closed = True
        if self.noting is not None:
            self.noting.cancel()
        if self.door is not None:
            self.door.close()
        self.spool.close()
