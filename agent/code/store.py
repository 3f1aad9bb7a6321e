"""The code of the executions of one node, for which nothing is loaded until the first job brings some."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from muster.domain.data.upload import DepotPass
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import InlineFile
from muster.rpc.channel import Credentials

if TYPE_CHECKING:  # it loads OpenSSL, for its hashes
    from agent.code.kept import KeptCode

CODE_CACHE = "cache"
"""The directory of what is kept, in the state directory of the node."""

AskForData = Callable[[ExecutionId], Awaitable[DepotPass]]
"""What opens the depot for the code of an execution; raises ExecutionError."""


async def no_depot(execution: ExecutionId) -> DepotPass:
    """No depot, for agents without a coordinator."""
    raise ExecutionError(FailureKind.RUNTIME, f"code: nobody tells this agent where the code of {execution} is")


class CodeStore:
    """Has the code of executions fetched and laid out, and keeps it below a directory of the node."""

    def __init__(
        self,
        directory: Path,
        ask: AskForData = no_depot,
        coordinator: Callable[[], str] = str,
        credentials: Callable[[], Credentials] = Credentials,
    ) -> None:
        """Touch nothing yet; what `coordinator` and `credentials` give is asked again for each connection."""
        self._directory = directory
        self._ask = ask
        self._coordinator = coordinator
        self._credentials = credentials
        self._kept: KeptCode | None = None

    async def fetch(self, assignment: Assignment, progress: Callable[[str], None]) -> None:
        """Have the code of an execution on this node; raises ExecutionError where that cannot be had."""
        if assignment.role.code is not None:
            await self._loaded().fetch(assignment, progress)

    def lay_out(self, execution: ExecutionId, into: Path, files: Mapping[str, InlineFile]) -> None:
        """Have a directory with nothing but a copy of the execution's code and these files, by their paths there.

        It belongs to the agent. Raises ExecutionError.
        """
        self._loaded().lay_out(execution, into, files)

    def forget(self, execution: ExecutionId) -> None:
        """Note that an execution needs its code no more."""
        if self._kept is not None:
            self._kept.forget(execution)

    def _loaded(self) -> "KeptCode":
        if self._kept is None:
            from agent.code.kept import KeptCode  # noqa: PLC0415 - agents without such jobs do without its hashes

            self._kept = KeptCode(self._directory, self._ask, self._coordinator, self._credentials)
        return self._kept
