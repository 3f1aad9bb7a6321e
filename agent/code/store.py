"""The code of the executions of one node, for which nothing is loaded until the first job brings some."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent.code.questions import ASK_NOBODY, CodeQuestions
from agent.swarm.shelf import SwarmAccess
from muster.domain.data.code import JobCode
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId
from muster.domain.jobs.job import InlineFile
from muster.lean.absent import AGENTS_DO_WITHOUT, take_back
from muster.rpc.channel import Credentials

if TYPE_CHECKING:  # they load OpenSSL, for its hashes
    from agent.code.finding import CodeFinding
    from agent.code.kept import KeptCode

CODE_CACHE = "cache"
"""The directory of what is kept, in the state directory of the node."""
REPOSITORIES = "git"
"""The directory of repositories while they are fetched, in that of what is kept."""


class CodeStore:
    """Has the code of executions fetched and laid out, and keeps it below a directory of the node."""

    def __init__(
        self,
        directory: Path,
        ask: CodeQuestions = ASK_NOBODY,
        coordinator: Callable[[], str] = str,
        credentials: Callable[[], Credentials] = Credentials,
        swarms: SwarmAccess | None = None,
    ) -> None:
        """Touch nothing yet; what `coordinator` and `credentials` give is asked again for each connection."""
        self._directory = directory
        self._ask = ask
        self._coordinator = coordinator
        self._credentials = credentials
        self._swarms = swarms
        self._kept: KeptCode | None = None
        self._finding: CodeFinding | None = None
        self._commits: dict[ExecutionId, str] = {}

    async def fetch(self, assignment: Assignment, progress: Callable[[str], None]) -> None:
        """Have the code of an execution on this node; raises ExecutionError where that cannot be had."""
        code = assignment.role.code
        if code is None:
            return
        if code.is_awaited:
            code = await self._found(assignment, progress)
        if code.git is not None:
            self._commits[assignment.execution] = code.git.commit
        await self._loaded().fetch(assignment, code, progress)

    def commit(self, execution: ExecutionId) -> str:
        """The commit of a repository from which the code of an execution is; empty: it is from none."""
        return self._commits.get(execution, "")

    def lay_out(self, execution: ExecutionId, into: Path, files: Mapping[str, InlineFile]) -> None:
        """Have a directory with nothing but a copy of the execution's code and these files, by their paths there.

        It belongs to the agent. Raises ExecutionError.
        """
        self._loaded().lay_out(execution, into, files)

    def share(self, assignment: Assignment, into: Path) -> None:
        """Have a link to a directory with the execution's code, where that is not for writing. Raises ExecutionError.

        It lies in the execution's directory, beside those of others.
        """
        if assignment.role.code is not None and not assignment.role.code.writable:
            self._loaded().share(assignment.execution, into)

    def forget(self, execution: ExecutionId) -> None:
        """Note that an execution needs its code no more."""
        self._commits.pop(execution, None)
        if self._kept is not None:
            self._kept.forget(execution)
        if self._swarms is not None:
            self._swarms.shelf.forget(execution)

    async def _found(self, assignment: Assignment, progress: Callable[[str], None]) -> JobCode:
        if self._finding is None:
            take_back(AGENTS_DO_WITHOUT)
            from agent.code.finding import CodeFinding  # noqa: PLC0415 - agents without such jobs do without it

            self._finding = CodeFinding(self._directory / REPOSITORIES, self._ask, self._coordinator, self._credentials)
        return await self._finding.found(assignment, progress)

    def _loaded(self) -> "KeptCode":
        if self._kept is None:
            from agent.code.kept import KeptCode  # noqa: PLC0415 - agents without such jobs do without its hashes

            self._kept = KeptCode(
                self._directory, self._ask.shown, self._coordinator, self._credentials, swarms=self._swarms
            )
        return self._kept
