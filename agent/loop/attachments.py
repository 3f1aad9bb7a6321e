"""The executions of this node as attachments see them."""

from typing import Protocol

from agent.attach.companion import Companion
from agent.attach.relayed.attachments import NotAttachableError
from agent.core.local import LocalState
from agent.core.step import AgentState
from muster.domain.ids import ExecutionId


class CompanionSource(Protocol):
    """Has companions started."""

    async def companion(self, execution: ExecutionId) -> Companion:
        """The companion of a running execution, started where there is none. Raises NotAttachableError."""
        ...


class AttachmentsHere:
    """Looks executions up, and has companions started."""

    def __init__(self, state: AgentState, companions: CompanionSource) -> None:
        self._state = state
        self._companions = companions

    async def companion(self, execution: ExecutionId) -> Companion:
        """The companion of a running execution. Raises NotAttachableError."""
        local = self._state.ledger.get(execution)
        if local is None or local.phase is not LocalState.RUNNING:
            raise NotAttachableError(self.how_it_ended(execution) or "the execution does not run on this node")
        return await self._companions.companion(execution)

    def how_it_ended(self, execution: ExecutionId) -> str | None:
        """How user code of an execution has ended, for people; None: it runs."""
        local = self._state.ledger.get(execution)
        if local is None:
            return "the execution is not on this node any more"
        if local.end.exit is not None:
            return f"the execution has ended (exit code {local.end.exit.code})"
        return None
