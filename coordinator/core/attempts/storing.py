"""What executions leave on its way to the depot: what their agents say of it, and when it is given up."""

from dataclasses import replace

from coordinator.core.attempts.attempts import end_job, follow, tell_outputs
from coordinator.core.cluster.deadlines import StoreDue
from coordinator.core.records import Execution
from coordinator.core.turn.turn import Turn
from muster.domain.data.outputs import ExecutionOutputs, OutputsStage
from muster.domain.gangs.plan import Report
from muster.domain.ids import AttemptId, ExecutionId, JobId, NodeId
from muster.domain.jobs.lifecycle import TERMINAL
from muster.domain.quantity import format_duration

NOT_THERE_ANY_MORE = "its agent does not have them any more"
STOPPED_NOW = "its job was stopped with --now"


def begin(turn: Turn, execution: Execution, report: Report) -> Execution:
    """Note that an execution whose user code ends has left something: before its end counts, as its job waits for it.

    What was noted before stays as it is, and nothing begins for a job that has ended without it, or leaves its outputs.
    """
    told, job = report.outputs, turn.cluster.jobs[execution.job]
    over, saves = job.ended_at is not None, report.checkpoints is not None and report.checkpoints.storing
    if saves and execution.state not in TERMINAL and not over and not job.leaves_outputs:
        execution = _put_saving(turn, execution, storing=True)
        turn.cluster.deadlines.add(turn.now + job.spec.timeouts.store, StoreDue(execution=execution.id))
    known = execution.outputs
    begun = known is not None and known.stage is not OutputsStage.LIVE
    if told is None or not told.on_their_way or begun or over:
        return execution
    if known is not None:  # what is stored already stays so
        told = replace(known, stage=told.stage, why="")
    if job.leaves_outputs:
        return _put(turn, execution, replace(told, stage=OutputsStage.ON_NODE, why=STOPPED_NOW))
    turn.cluster.deadlines.add(turn.now + job.spec.timeouts.store, StoreDue(execution=execution.id))
    return _put(turn, execution, told)


def take_live(turn: Turn, execution: Execution, report: Report) -> Execution:
    """Note what is stored of the outputs of an execution whose user code still runs."""
    told, known = report.outputs, execution.outputs
    if told is None or told.stage is not OutputsStage.LIVE:
        return execution
    if known is not None and (known.stage is not OutputsStage.LIVE or replace(known, at=None) == told):
        return execution
    return _put(turn, execution, told)


def take(turn: Turn, execution: Execution, report: Report, *, ended: bool) -> None:
    """Note what has become of the outputs of an execution; `ended`: its agent says that nothing of it runs."""
    if execution.checkpoints.storing and (ended and not _saves(report)):
        execution = _end_saving(turn, execution)
    told, known = report.outputs, execution.outputs
    if told is None or told.stage is OutputsStage.LIVE:
        if ended and known is not None and known.on_their_way:
            give_up(turn, execution, OutputsStage.LOST, NOT_THERE_ANY_MORE)
    elif known is not None and told.retries < known.retries:
        pass  # somebody has asked again since
    elif not told.on_their_way and (known is None or known.stage is not OutputsStage.STORED):
        _end(turn, execution, told)


def lose(turn: Turn, node: NodeId, why: str) -> None:
    """Give up what the executions of a node have not stored yet."""
    for name in [each.id for each in turn.cluster.load.planned(node)]:
        give_up(turn, turn.cluster.executions[name], OutputsStage.LOST, why)


def again(turn: Turn, execution: Execution) -> None:
    """Have the outputs of an execution that is over stored again by its node, which nobody waits for."""
    known = execution.outputs
    if known is not None and not execution.stores_again:
        retries = known.retries + 1
        _put(turn, execution, replace(known, stage=OutputsStage.STORING_AGAIN, why="", retries=retries))
        limit = turn.cluster.jobs[execution.job].spec.timeouts.store
        turn.cluster.deadlines.add(turn.now + limit, StoreDue(execution=execution.id))
        turn.replan(execution)


def lose_for_good(turn: Turn, node: NodeId, why: str) -> None:
    """Give up also what a node that does not come back was to store again."""
    lose(turn, node, why)
    for name in [each.id for each in turn.cluster.load.planned(node) if each.stores_again]:
        execution = turn.cluster.executions[name]
        if execution.outputs is not None:
            _end(turn, execution, replace(execution.outputs, stage=OutputsStage.LOST, why=why))


def leave(turn: Turn, job: JobId) -> None:
    """Wait no longer for any outputs of a job, whose nodes keep what is not stored."""
    for number in range(1, turn.cluster.jobs[job].attempt + 1):
        for member in list(turn.cluster.gangs.members(AttemptId(job, number))):
            give_up(turn, member, OutputsStage.ON_NODE, STOPPED_NOW)


def come_due(turn: Turn, name: ExecutionId) -> None:
    """The time for storing what an execution has left is over."""
    execution = turn.cluster.executions.get(name)
    if execution is not None:
        limit = turn.cluster.jobs[execution.job].spec.timeouts.store
        outputs, why = execution.outputs, f"they were not stored within {format_duration(limit)} (timeouts.store)"
        give_up(turn, execution, OutputsStage.ON_NODE, why)
        if outputs is not None and execution.stores_again:
            if turn.now < (due := (outputs.at or turn.now) + limit):  # it was due for what was asked before
                turn.cluster.deadlines.add(due, StoreDue(execution=name))
            else:
                _end(turn, execution, replace(outputs, stage=OutputsStage.ON_NODE, why=why))


def give_up(turn: Turn, execution: Execution, stage: OutputsStage, why: str) -> None:
    """Wait no longer for the outputs of an execution, and for its checkpoints, if they are on their way."""
    if execution.checkpoints.storing:
        execution = _end_saving(turn, execution)
    known = execution.outputs
    if known is not None and known.on_their_way:
        _end(turn, execution, replace(known, stage=stage, why=why))


def _end(turn: Turn, execution: Execution, outputs: ExecutionOutputs) -> None:
    ended = _put(turn, execution, outputs)
    if ended.log_complete and not ended.stores:
        turn.dismiss(ended)
    if execution.stores or execution.stores_again:
        tell_outputs(turn, execution.attempt_id)
    end_job(turn, execution.job)


def _saves(report: Report) -> bool:
    return report.checkpoints is not None and report.checkpoints.storing


def _end_saving(turn: Turn, execution: Execution) -> Execution:
    """Let what waits for the checkpoints of an execution go on: another attempt, or the end of the job."""
    execution = _put_saving(turn, execution, storing=False)
    if execution.log_complete and not execution.stores:
        turn.dismiss(execution)
    tell_outputs(turn, execution.attempt_id)
    follow(turn, execution.attempt_id)
    return execution


def _put_saving(turn: Turn, execution: Execution, *, storing: bool) -> Execution:
    noted = replace(execution, checkpoints=replace(execution.checkpoints, storing=storing))
    turn.put(noted)
    return noted


def _put(turn: Turn, execution: Execution, outputs: ExecutionOutputs) -> Execution:
    noted = replace(execution, outputs=replace(outputs, at=turn.now))
    turn.put(noted)
    return noted
