"""The executions of this node as attachments see them."""

import asyncio
from contextlib import suppress
from typing import Protocol

from agent.attach.companion import Companion
from agent.attach.kept.main_program import MainProgram
from agent.attach.kept.shells import KeptShells
from agent.attach.relayed.attachments import NotAttachableError
from agent.core.local import LocalState
from agent.core.step import AgentState
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import Exit

EXIT_KNOWN_WITHIN = 2.0
"""Seconds in which the exit code of user code comes, once its companion is gone with it."""


class RunningExecutions(Protocol):
    """Has companions started, and knows how user code ends."""

    async def companion(self, execution: ExecutionId) -> Companion:
        """The companion of a running execution, started where there is none. Raises NotAttachableError."""
        ...

    async def main_program(self, execution: ExecutionId) -> MainProgram:
        """The main program of a running execution, which may not have come yet. Raises NotAttachableError."""
        ...

    def kept_shells(self, execution: ExecutionId) -> KeptShells | None:
        """The kept shells of an execution; None: it has none, as nobody has attached to it."""
        ...

    async def exited(self, execution: ExecutionId) -> Exit | None:
        """Wait until user code has ended; None: it is not known here."""
        ...


class AttachmentsHere:
    """Looks executions up, and has companions started."""

    def __init__(self, state: AgentState, running: RunningExecutions, *, open_: bool) -> None:
        """`open_`: whether the node takes attachments at all."""
        self._state = state
        self._running = running
        self._open = open_

    async def companion(self, execution: ExecutionId) -> Companion:
        """The companion of a running execution. Raises NotAttachableError."""
        self._refuse_all_but_running(execution)
        return await self._running.companion(execution)

    async def main_program(self, execution: ExecutionId) -> MainProgram:
        """The main program of a running execution. Raises NotAttachableError."""
        self._refuse_all_but_running(execution)
        return await self._running.main_program(execution)

    def kept_shells(self, execution: ExecutionId) -> KeptShells | None:
        """The kept shells of a running execution; None: nobody has attached to it. Raises NotAttachableError."""
        self._refuse_all_but_running(execution)
        return self._running.kept_shells(execution)

    def _refuse_all_but_running(self, execution: ExecutionId) -> None:
        if not self._open:
            raise NotAttachableError("this node takes no attachments: its agent was started with --no-attach")
        local = self._state.ledger.get(execution)
        if local is None:
            raise NotAttachableError("the execution is not on this node any more")
        if local.end.exit is not None:
            raise NotAttachableError(_ended(local.end.exit))
        if local.phase is not LocalState.RUNNING:
            raise NotAttachableError("the execution does not run now")

    async def how_it_ended(self, execution: ExecutionId) -> str | None:
        """How user code of an execution has ended just now, for people; None: it runs."""
        local = self._state.ledger.get(execution)
        if local is not None and local.end.exit is not None:
            return _ended(local.end.exit)
        with suppress(TimeoutError):
            async with asyncio.timeout(EXIT_KNOWN_WITHIN):
                known = await self._running.exited(execution)
                return "the execution is not on this node any more" if known is None else _ended(known)
        return None


def _ended(known: Exit) -> str:
    return f"the execution has ended (exit code {known.code})"
