"""The gangs of this node as commands between their members see them: what the core knows, with companions and logs."""

from agent.attach.companion import Companion
from agent.core.door.gang_rules import GangPart
from agent.core.gang_part import gang_part, own_place
from agent.core.step import AgentState
from agent.logs.mask import Mask
from agent.logs.spool import LogSpool
from agent.loop.workbench import Workbench
from muster.domain.ids import AttemptId, ExecutionId


class GangsHere:
    """Looks things up; nothing is changed here."""

    def __init__(self, state: AgentState, bench: Workbench) -> None:
        self._state = state
        self._bench = bench

    def part(self, attempt: AttemptId) -> GangPart | None:
        """The part of an attempt that is here; None: nothing of it is."""
        return gang_part(self._state.ledger, attempt)

    def place(self, execution: ExecutionId) -> tuple[GangPart, int] | None:
        """The gang of an execution here, and its rank; None: the agent does not know it, or not yet."""
        return own_place(self._state.ledger, execution)

    def companion(self, execution: ExecutionId) -> Companion | None:
        """The companion of an execution; None: it has no door for gang commands."""
        live = self._bench.live.get(execution)
        door = None if live is None else live.door
        return None if door is None or not door.has_gang_commands else door.companion

    def spool(self, execution: ExecutionId) -> LogSpool | None:
        """The log of an execution; None: it is not here any more."""
        live = self._bench.live.get(execution)
        return None if live is None else live.spool

    def mask(self, execution: ExecutionId) -> Mask:
        """The secrets of an execution, which its log does not show."""
        return self._bench.secrets.mask(execution)
