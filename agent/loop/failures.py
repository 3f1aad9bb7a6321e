"""What goes wrong in an action, as the core hears it."""

import logging

from agent.core.events import ActionFailed
from agent.executions.file_faults import file_fault
from agent.loop.workbench import Workbench
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind

log = logging.getLogger(__name__)


async def failed(bench: Workbench, execution: ExecutionId, error: Exception) -> ActionFailed:
    """Let go of what an execution held whose action failed, or whose end nobody can tell; says why."""
    kind, message = _fault(execution, error)
    told = bench.secrets.message(execution, message)
    live = bench.live.get(execution)
    never_ran = live is None or not live.started
    bench.held.leave(execution, vacant=never_ran)
    if never_ran:
        await bench.secrets.clear(execution)
    return ActionFailed(execution=execution, kind=kind, message=told)


def _fault(execution: ExecutionId, error: Exception) -> tuple[FailureKind, str]:
    if isinstance(error, ExecutionError):
        return error.kind, str(error)
    if isinstance(error, OSError):
        return file_fault(error)
    log.error("an action failed in an unforeseen way", extra={"execution": execution}, exc_info=error)
    return FailureKind.RUNTIME, f"the agent failed: {type(error).__name__}: {error}"
