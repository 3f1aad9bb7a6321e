"""Outputs of executions on their way to the depot: what their agents say of it, and when it is given up."""

from dataclasses import replace

from coordinator.core.attempts.attempts import end_job
from coordinator.core.records import Execution
from coordinator.core.turn.turn import Turn
from muster.domain.data.outputs import ExecutionOutputs, OutputsStage
from muster.domain.gangs.plan import Report
from muster.domain.ids import NodeId

NOT_THERE_ANY_MORE = "its agent does not have them any more"


def begin(turn: Turn, execution: Execution, report: Report) -> Execution:
    """Note that an execution whose user code ends has left something: before its end counts, as its job waits for it.

    What was noted before stays as it is, and nothing begins for a job that has ended without it.
    """
    told = report.outputs
    over = turn.cluster.jobs[execution.job].ended_at is not None
    if told is None or not told.on_their_way or execution.outputs is not None or over:
        return execution
    return _put(turn, execution, told)


def take(turn: Turn, execution: Execution, report: Report, *, ended: bool) -> None:
    """Note what has become of the outputs of an execution; `ended`: its agent says that nothing of it runs."""
    told, known = report.outputs, execution.outputs
    if told is None:
        if ended and known is not None and known.on_their_way:
            give_up(turn, execution, OutputsStage.LOST, NOT_THERE_ANY_MORE)
    elif not told.on_their_way and (known is None or known.stage is not OutputsStage.STORED):
        _end(turn, execution, told)


def lose(turn: Turn, node: NodeId, why: str) -> None:
    """Give up what the executions of a node have not stored yet."""
    for name in [each.id for each in turn.cluster.load.planned(node)]:
        give_up(turn, turn.cluster.executions[name], OutputsStage.LOST, why)


def give_up(turn: Turn, execution: Execution, stage: OutputsStage, why: str) -> None:
    """Wait for the outputs of an execution no longer, if they are on their way."""
    known = execution.outputs
    if known is not None and known.on_their_way:
        _end(turn, execution, replace(known, stage=stage, why=why))


def _end(turn: Turn, execution: Execution, outputs: ExecutionOutputs) -> None:
    ended = _put(turn, execution, outputs)
    if ended.log_complete:
        turn.dismiss(ended)
    end_job(turn, execution.job)


def _put(turn: Turn, execution: Execution, outputs: ExecutionOutputs) -> Execution:
    noted = replace(execution, outputs=replace(outputs, at=turn.now))
    turn.put(noted)
    return noted
