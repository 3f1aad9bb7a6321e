"""What the coordinator is asked for code."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from muster.domain.data.code import JobCode
from muster.domain.data.upload import CodePass
from muster.domain.fleet.secret import DeliveredSecret
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind

AskForCode = Callable[[ExecutionId], Awaitable[CodePass]]
"""The code of an execution, and what opens the depot for it; raises ExecutionError."""
TellCode = Callable[[ExecutionId, JobCode], Awaitable[CodePass]]
"""Tells what was fetched from a repository, and gets what counts; raises ExecutionError."""
AskForGitKeys = Callable[[ExecutionId], Awaitable[Sequence[DeliveredSecret]]]
"""What opens the data of an execution; raises ExecutionError."""


async def no_depot(execution: ExecutionId) -> CodePass:
    """No depot, for agents without a coordinator."""
    raise ExecutionError(FailureKind.RUNTIME, f"code: nobody tells this agent where the code of {execution} is")


async def nobody_told(execution: ExecutionId, found: JobCode) -> CodePass:
    """No coordinator that hears of code."""
    raise ExecutionError(FailureKind.RUNTIME, f"code: nobody hears what {found.tree} of {execution} is")


async def no_git_keys(execution: ExecutionId) -> Sequence[DeliveredSecret]:
    """No secrets, for agents without a coordinator."""
    raise ExecutionError(FailureKind.RUNTIME, f"code: nobody tells this agent what opens the repository of {execution}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeQuestions:
    """How a node asks for code."""

    shown: AskForCode = no_depot
    fetched: TellCode = nobody_told
    keys: AskForGitKeys = no_git_keys


ASK_NOBODY = CodeQuestions()
"""Questions of an agent without a coordinator, which has no answers."""
