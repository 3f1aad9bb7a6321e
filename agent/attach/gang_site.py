"""What commands between the executions of a gang need of the agent, and what they say to each other."""

from typing import Protocol

from agent.attach.companion import Companion
from agent.core.door.gang_rules import GangPart
from agent.core.door.packets import GangInput, GangInputEnd, GangSignal
from agent.logs.mask import Mask
from agent.logs.spool import LogSpool
from muster.domain.ids import AttemptId, ExecutionId


class GangSite(Protocol):
    """The part of the agent that knows the executions of a node."""

    def part(self, attempt: AttemptId) -> GangPart | None:
        """The part of an attempt that is here; None: nothing of it is."""
        ...

    def place(self, execution: ExecutionId) -> tuple[GangPart, int] | None:
        """The gang of an execution here, and its rank; None: the agent does not know it, or not yet."""
        ...

    def companion(self, execution: ExecutionId) -> Companion | None:
        """The companion of an execution; None: it has no door for gang commands."""
        ...

    def spool(self, execution: ExecutionId) -> LogSpool | None:
        """The log of an execution; None: it is not here any more."""
        ...

    def mask(self, execution: ExecutionId) -> Mask:
        """The secrets of an execution, which its log does not show."""
        ...


class CommandCaller(Protocol):
    """Whoever wants a command, as the one who runs it sees it. Every call raises ConnectionError once it is gone."""

    async def begun(self) -> None:
        """Tell it that its command runs."""
        ...

    async def output(self, data: bytes) -> None:
        """Pass on output of any size; waits while the caller does not read."""
        ...

    async def error_output(self, data: bytes) -> None:
        """The same for what the command prints as errors."""
        ...

    async def heard(self) -> GangInput | GangInputEnd | GangSignal:
        """The next piece of its input, the end of that, or a signal for the command."""
        ...


class NotYetError(Exception):
    """A command cannot be run now, but perhaps in a moment; the sentence is for the caller."""
