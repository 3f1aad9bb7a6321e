"""What agents report about executions, taken into the records; repeated and late reports change nothing."""

from dataclasses import replace
from datetime import datetime, timedelta

from coordinator.core.attempts import attempts, checkpoints, storing, unused
from coordinator.core.cluster.saved.checkpoints import savers
from coordinator.core.records import Execution
from coordinator.core.turn.turn import Turn
from muster.domain.gangs.plan import Report, Stage
from muster.domain.ids import NodeId
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.lifecycle import PROGRESS, TERMINAL, State, Trigger

ENDED_STAGES = frozenset({Stage.EXITED, Stage.FAILED, Stage.STOPPED})
"""Stages in which nothing of an execution runs any more."""
SAVED_APART = timedelta(seconds=1)
"""Between two checkpoints that count as two."""


def take(turn: Turn, node: NodeId, report: Report, *, log_kept: bool) -> None:
    """Bring the record of an execution up to what its node says; `log_kept`: its log is in the log store."""
    _forget_unwanted(turn, node, report)
    execution = turn.cluster.executions.get(report.execution)
    if execution is None or execution.node != node:
        return
    if report.stage in ENDED_STAGES and _is_news(execution):
        lost = execution.state is State.LOST
        execution = replace(execution, last_permit_at=_last_permit_at(turn, report), surely_over=lost)
        turn.put(execution)
    if execution.state not in TERMINAL:
        execution = storing.take_live(turn, _take_looks(turn, execution, report), report)
    execution = _take_saves(turn, execution, report)
    if report.used_at is not None:
        unused.take_use(turn, execution, report.used_at)
    if report.stage in ENDED_STAGES:
        execution = storing.begin(turn, execution, report)
    if _nowhere(execution, report):
        message = "its agent does not say where its peers reach it"
        attempts.fail(turn, execution, Failure(kind=FailureKind.RUNTIME, message=message))
    elif execution.state not in TERMINAL:
        _progress(turn, execution, report)
    _take_outputs(turn, report)
    if report.log_complete:
        _complete_log(turn, report, log_kept=log_kept)


def _take_outputs(turn: Turn, report: Report) -> None:
    execution = turn.cluster.executions.get(report.execution)
    if execution is not None and execution.state in TERMINAL:
        storing.take(turn, execution, report, ended=report.stage in ENDED_STAGES)


def _take_saves(turn: Turn, execution: Execution, report: Report) -> Execution:
    """Note what it has saved."""
    if report.saved_at is not None:
        _save(turn, execution, report.saved_at)
    return execution if report.checkpoints is None else checkpoints.take(turn, execution, report.checkpoints)


def _save(turn: Turn, execution: Execution, saved_at: datetime) -> None:
    """Note that a checkpoint is whole. Many ranks may tell of the same one, and their clocks differ a little.

    Where parts are stored, it is whole once all of them are.
    """
    if savers(turn.cluster.jobs[execution.job].spec):
        return
    attempt, saved_at = turn.cluster.attempts[execution.attempt_id], min(saved_at, turn.now)
    if attempt.saved_at is None or saved_at >= attempt.saved_at + SAVED_APART:
        turn.put(replace(attempt, saved_at=saved_at))


def _take_looks(turn: Turn, execution: Execution, report: Report) -> Execution:
    """Note what its agent has seen of its GPUs."""
    if report.over_portion:
        _note_excess(turn, execution, report.over_portion)
    return execution if report.gpu_busy_ms is None else _count_busy(turn, execution, report.gpu_busy_ms)


def _count_busy(turn: Turn, execution: Execution, gpu_busy_ms: int) -> Execution:
    """Note how long its GPUs were busy; what is told never goes back."""
    if execution.gpu_busy_ms is None or gpu_busy_ms > execution.gpu_busy_ms:
        execution = replace(execution, gpu_busy_ms=gpu_busy_ms)
        turn.put(execution)
    return execution


def _note_excess(turn: Turn, execution: Execution, over_portion: str) -> None:
    """Note the first rank of an attempt that uses more GPU memory than its portion."""
    attempt = turn.cluster.attempts[execution.attempt_id]
    if not attempt.over_portion:
        told = f"rank {execution.rank} on {execution.node} {over_portion}"
        turn.put(replace(attempt, over_portion=told))


def _nowhere(execution: Execution, report: Report) -> bool:
    """A roster with such a member would be refused by the agents of all the others."""
    known = execution.address or report.address
    return execution.state in PROGRESS and not known and report.stage in {Stage.ARMED, Stage.RUNNING, Stage.EXITED}


def _is_news(execution: Execution) -> bool:
    """Whether it is not known yet that it is over."""
    return execution.state not in TERMINAL or (execution.state is State.LOST and not execution.surely_over)


def _last_permit_at(turn: Turn, report: Report) -> datetime | None:
    """When its agent can last have told a peer to go on; None: it may still do.

    An agent whose part ended well goes on to answer its peers, also if an order to stop was on its way to it.
    """
    if report.no_permit_for is not None:
        return turn.now - report.no_permit_for
    ended_well = report.stage is Stage.EXITED and report.failure is None and (report.exit or Exit(code=0)).code == 0
    return None if ended_well else turn.now


def _progress(turn: Turn, execution: Execution, report: Report) -> None:
    attempt_id = execution.attempt_id
    match report.stage:
        case Stage.PREPARING:
            _describe(turn, attempts.reach(turn, execution, State.PREPARING), report.detail)
        case Stage.PREPARED:
            attempts.reach(turn, _checked_in(execution, report), State.CHECKED_IN)
        case Stage.ARMED:
            attempts.reach(turn, _checked_in(execution, report), State.ARMED)
        case Stage.RUNNING:
            attempts.reach(turn, _checked_in(execution, report), State.RUNNING)
        case Stage.EXITED:
            _exited(turn, execution, report)
        case Stage.FAILED:
            attempts.fail(turn, execution, report.failure or Failure(kind=FailureKind.RUNTIME, message="failed"))
        case Stage.STOPPED:
            _stopped(turn, execution, report)
    attempts.go_on(turn, attempt_id) if attempt_id in turn.cluster.attempts else None


def _checked_in(execution: Execution, report: Report) -> Execution:
    """The execution with the address and ports, which stay as they were first reported."""
    if execution.address is not None or execution.state not in PROGRESS:
        return execution
    return replace(execution, address=report.address, ports=report.ports, detail=report.detail)


def _describe(turn: Turn, execution: Execution, detail: str) -> None:
    if execution.state is State.PREPARING and execution.detail != detail:
        turn.put(replace(execution, detail=detail))


def _exited(turn: Turn, execution: Execution, report: Report) -> None:
    exit_ = report.exit or Exit(code=0)
    if execution.state is State.STOPPING:
        ended = replace(execution, exit=exit_)
        attempts.blame_memory(turn, ended)
        attempts.confirm_stop(turn, ended)
        return
    running = attempts.reach(turn, _checked_in(execution, report), State.RUNNING)
    attempts.go_on(turn, execution.attempt_id)
    running = replace(turn.cluster.executions[running.id], exit=exit_)
    if exit_.code == 0:
        turn.move(running, Trigger.SUCCEEDED)
        attempts.settle(turn, execution.attempt_id)
    else:
        attempts.fail(
            turn, running, report.failure or Failure(kind=FailureKind.EXIT_CODE, message=str(exit_), exit=exit_)
        )


def _stopped(turn: Turn, execution: Execution, report: Report) -> None:
    """Confirmed, if it was ordered; otherwise the agent gave it up by itself."""
    if execution.state is State.STOPPING:
        attempts.confirm_stop(turn, execution)
    else:
        message = report.detail or "the agent stopped it without being told to"
        attempts.fail(turn, execution, Failure(kind=FailureKind.AGENT_RESTARTED, message=message))


def _complete_log(turn: Turn, report: Report, *, log_kept: bool) -> None:
    execution = turn.cluster.executions.get(report.execution)
    if execution is not None and not execution.log_complete and execution.state in TERMINAL:
        turn.put(complete := replace(execution, log_complete=True, log_kept=log_kept))
        if not complete.stores:
            turn.dismiss(complete)


def _forget_unwanted(turn: Turn, node: NodeId, report: Report) -> None:
    presence = turn.cluster.presence.get(node)
    if presence is not None and report.stage in ENDED_STAGES and presence.gone(report.execution):
        turn.reconsider_queue()
