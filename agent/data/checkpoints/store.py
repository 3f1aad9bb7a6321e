"""Checkpoints of the executions of one node, for which nothing is loaded until the first job saves some."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agent.executions.layout import ExecutionDirectory
from muster.domain.data.upload import DepotPass
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.lean.absent import AGENTS_DO_WITHOUT, take_back
from muster.rpc.channel import Credentials

if TYPE_CHECKING:  # it loads OpenSSL, for its hashes
    from agent.data.checkpoints.work import CheckpointWork

KEPT_PARTS = "checkpoints"
"""The directory of parts that are kept, in the state directory of the node."""


async def nowhere_to_save(execution: ExecutionId) -> DepotPass:
    """No depot, for agents without a coordinator."""
    raise ExecutionError(FailureKind.RUNTIME, f"nobody tells this agent where checkpoints of {execution} go")


async def no_tree(execution: ExecutionId, tree: str) -> DepotPass:
    """No depot, for agents without a coordinator."""
    del tree
    raise ExecutionError(FailureKind.RUNTIME, f"nobody tells this agent where the checkpoint of {execution} is")


class CheckpointStore:
    """Has checkpoints stored and restored."""

    def __init__(
        self,
        directory: Path,
        ask_to_save: Callable[[ExecutionId], Awaitable[DepotPass]] = nowhere_to_save,
        ask_for_tree: Callable[[ExecutionId, str], Awaitable[DepotPass]] = no_tree,
        coordinator: Callable[[], str] = str,
        credentials: Callable[[], Credentials] = Credentials,
    ) -> None:
        """Touch nothing yet; what `coordinator` and `credentials` give is asked again for each connection."""
        self._directory = directory
        self._ask_to_save = ask_to_save
        self._ask_for_tree = ask_for_tree
        self._coordinator = coordinator
        self._credentials = credentials
        self._work: CheckpointWork | None = None

    async def restore(self, assignment: Assignment, directory: ExecutionDirectory, told: Callable[[str], None]) -> None:
        """Have the directory of checkpoints, with all that an execution is to find; raises ExecutionError."""
        if assignment.role.checkpoint is not None:
            await self.work().restore(assignment, directory, told)

    def work(self) -> "CheckpointWork":
        """The work itself, loaded at its first use."""
        if self._work is None:
            take_back(AGENTS_DO_WITHOUT)
            from agent.data.checkpoints.kept import KeptParts  # noqa: PLC0415 - agents without such jobs do without it
            from agent.data.checkpoints.work import CheckpointWays, CheckpointWork  # noqa: PLC0415 - as above

            ways = CheckpointWays(
                ask_to_save=self._ask_to_save,
                ask_for_tree=self._ask_for_tree,
                coordinator=self._coordinator,
                credentials=self._credentials,
            )
            self._work = CheckpointWork(ways, KeptParts(self._directory))
        return self._work
