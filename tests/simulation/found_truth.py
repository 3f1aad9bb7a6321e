"""What user code finds as it starts, held against what others of its job find."""

from collections.abc import Mapping

from muster.domain.ids import ExecutionId
from tests.simulation.checkpoints_truth import check_checkpoint
from tests.simulation.truth import Sandbox
from tests.simulation.world import Violation


def check_found(sandbox: Sandbox, executions: Mapping[ExecutionId, Sandbox]) -> None:
    """All ranks of an attempt find the same checkpoint, and all ranks of all attempts the same code."""
    check_checkpoint(sandbox, executions)
    if sandbox.assignment.role.code is not None:
        _check_code(sandbox, executions)


def _check_code(sandbox: Sandbox, executions: Mapping[ExecutionId, Sandbox]) -> None:
    job = sandbox.assignment.job
    if not sandbox.tree:
        raise Violation(f"{sandbox.execution} starts without the code that it wants", job)
    for other in executions.values():
        if other.started and other.assignment.job == job and other.tree != sandbox.tree:
            raise Violation(
                f"{sandbox.execution} and {other.execution} have different code: {sandbox.tree}, {other.tree}", job
            )
