"""Checkpoints of the executions of one node, for which nothing is loaded until the first job saves some."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent.executions.layout import ExecutionDirectory
from agent.swarm.shelf import SwarmAccess
from muster.domain.data.checkpoint import CheckpointPass
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.lean.absent import AGENTS_DO_WITHOUT, take_back
from muster.rpc.channel import Credentials

if TYPE_CHECKING:  # they load OpenSSL, for its hashes
    from agent.data.cache import InputCache
    from agent.data.checkpoints.work import CheckpointWork

KEPT_PARTS = "checkpoints"
"""The directory of parts that are kept, in the state directory of the node."""


async def nowhere_to_save(execution: ExecutionId) -> CheckpointPass:
    """No depot, for agents without a coordinator."""
    raise ExecutionError(FailureKind.RUNTIME, f"nobody tells this agent where checkpoints of {execution} go")


async def no_tree(execution: ExecutionId, tree: str) -> CheckpointPass:
    """No depot, for agents without a coordinator."""
    del tree
    raise ExecutionError(FailureKind.RUNTIME, f"nobody tells this agent where the checkpoint of {execution} is")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointQuestions:
    """What the coordinator is asked for checkpoints."""

    save: Callable[[ExecutionId], Awaitable[CheckpointPass]] = nowhere_to_save
    tree: Callable[[ExecutionId, str], Awaitable[CheckpointPass]] = no_tree


class CheckpointStore:
    """Has checkpoints stored and restored."""

    def __init__(
        self,
        directory: Path,
        ask: CheckpointQuestions = CheckpointQuestions(),
        coordinator: Callable[[], str] = str,
        credentials: Callable[[], Credentials] = Credentials,
        swarms: SwarmAccess | None = None,
        cache: "Callable[[], InputCache] | None" = None,
    ) -> None:
        """Touch nothing yet; what `coordinator` and `credentials` give is asked again for each connection.

        Without `swarms` nothing comes from other nodes. What comes from them lies in the `cache` of inputs.
        """
        self._directory = directory
        self._ask = ask
        self._swarms = swarms
        self._cache = cache
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
            from agent.data.checkpoints.in_stores import PartsInStores  # noqa: PLC0415 - agents without such jobs do without it
            from agent.data.checkpoints.kept import KeptParts  # noqa: PLC0415 - as above
            from agent.data.checkpoints.shared import SharedParts  # noqa: PLC0415 - as above
            from agent.data.checkpoints.work import CheckpointWays, CheckpointWork  # noqa: PLC0415 - as above
            from agent.data.mover.mover import Mover  # noqa: PLC0415 - as above

            ways = CheckpointWays(
                ask_to_save=self._ask.save,
                ask_for_tree=self._ask.tree,
                coordinator=self._coordinator,
                credentials=self._credentials,
            )
            self._work = work = CheckpointWork(ways, KeptParts(self._directory), PartsInStores(Mover()))
            if self._swarms is not None and self._cache is not None:
                work.shared = SharedParts(work.kept, self._cache(), self._swarms, ways.depot)
        return self._work
