"""What attempts begin with, held against what the depot really has."""

from collections.abc import Mapping

from coordinator.core.cluster.saved.checkpoints import savers
from coordinator.core.records import Attempt
from muster.domain.data.checkpoint import CheckpointToRestore
from muster.domain.ids import ExecutionId, execution_id
from muster.domain.jobs.job import JobSpec
from tests.simulation.truth import Sandbox
from tests.simulation.world import Violation


def check_restores(spec: JobSpec, attempt: Attempt, executions: Mapping[ExecutionId, Sandbox]) -> None:
    """An attempt begins with a checkpoint of which the depot has the part of every rank."""
    restores = attempt.checkpoints.restores
    for rank in savers(spec) if restores is not None else ():
        assert restores is not None
        sandbox = executions.get(execution_id(attempt.job, restores.attempt, rank))
        if sandbox is None or all(part.name != restores.name for part in sandbox.saved):
            raise Violation(
                f"{attempt.attempt_id} begins with half a checkpoint: {restores} lacks rank {rank}", attempt.job
            )


def check_checkpoint(sandbox: Sandbox, executions: Mapping[ExecutionId, Sandbox]) -> None:
    """All ranks of an attempt find the same checkpoint, each its own part of it."""
    order, found = sandbox.assignment, sandbox.assignment.restore
    if order.role.checkpoint is None:
        return
    for rank in range(order.world_size):
        other = executions.get(execution_id(order.job, order.attempt, rank))
        if other is not None and other.assignment.role.checkpoint and _named(other.assignment.restore) != _named(found):
            raise Violation(
                f"ranks {rank} and {order.rank} of {order.attempt_id} find different checkpoints: "
                f"{_named(other.assignment.restore)} and {_named(found)}",
                order.job,
            )
    if found is not None:
        own = executions.get(execution_id(order.job, found.attempt, order.rank))
        if own is None or found.trees[0].tree not in {part.tree for part in own.saved if part.name == found.name}:
            raise Violation(f"{sandbox.execution} finds another part of {found.name} than it saved", order.job)


def _named(found: CheckpointToRestore | None) -> tuple[int, str] | None:
    return None if found is None else (found.attempt, found.name)
