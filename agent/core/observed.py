"""What is observed of executions: how each got on, failed, ended, or was found by an agent that starts."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from agent.core.actions import LedgerAction
from agent.core.events import (
    ActionFailed,
    Armed,
    CheckpointsSeen,
    Exited,
    Fenced,
    GpusBusy,
    Halted,
    LogCompleted,
    Observed,
    OutputsSeen,
    PortionOutgrown,
    Prepared,
    Progressed,
    Recovered,
    Removed,
    Saved,
    Started,
    StoppingFound,
    Used,
    VolumeOutgrown,
)
from agent.core.ledger import Ledger
from agent.core.local import (
    ALIVE,
    OVER,
    CheckIn,
    FenceCut,
    LocalEnd,
    LocalExecution,
    LocalState,
    Move,
    WantedExecution,
    halt,
    only_to_store,
)
from muster.domain.data.outputs import OutputsStage
from muster.domain.fleet.pool import PortionRule
from muster.domain.gangs.plan import Goal
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.stopping.notice import StopOrder

_AFTER_THE_END = LogCompleted | OutputsSeen | CheckpointsSeen | Removed
"""What may still be heard of an execution that is over."""

COMMAND_NOT_FOUND = 127
"""Exit code of a shell that did not find the command."""


def recover(ledger: Ledger, event: Recovered, now: datetime) -> None:
    """Know an execution of a former agent again."""
    ledger.put(
        LocalExecution(
            execution=event.execution,
            wanted=WantedExecution(goal=Goal.RUN),
            since=now,
            phase=LocalState.RUNNING if event.started else LocalState.STOPPED,
            check_in=CheckIn(address=event.address, ports=event.ports),
            started_at=(event.started_at or now) if event.started else None,
            terms=event.terms,
            cut=FenceCut(message=event.fenced) if event.fenced else None,
            gpu_busy_ms=event.gpu_busy_ms,
            end=LocalEnd(before=event.ended),
        )
    )


def observe(ledger: Ledger, event: Observed, now: datetime) -> list[LedgerAction]:  # noqa: C901, PLR0911, PLR0912 - one each
    """Take in what happened to an execution, unless it is not known, or its end is known already."""
    local = ledger.get(event.execution)
    if local is None or (local.phase in OVER and not isinstance(event, _AFTER_THE_END)):
        return []
    match event:
        case Progressed():
            return _describe(ledger, local, event)
        case Prepared():
            return _prepared(ledger, local, event, now)
        case Armed():
            return ledger.move(local, Move.ARMED, now)
        case Started():
            return ledger.move(local, Move.STARTED, now, started_at=now)
        case ActionFailed():
            return _fail(ledger, local, event, now)
        case Saved():
            return _save(ledger, local, event)
        case GpusBusy():
            return _count_busy(ledger, local, event)
        case StoppingFound():
            return _go_on_stopping(ledger, local, event, now)
        case Used():
            return ledger.keep(replace(local, used_at=event.at)) if local.phase is LocalState.RUNNING else []
        case Exited():
            return _exited(ledger, local, event, now)
        case Halted():
            return ledger.move(local, Move.HALTED, now) if local.phase is LocalState.HALTING else []
        case Fenced():
            return _cut(ledger, local, FenceCut(message=event.message, grace=event.grace), now)
        case VolumeOutgrown():
            outgrown = FenceCut(message=event.message, kind=FailureKind.VOLUME_FULL)
            return _cut(ledger, local, outgrown, now) if local.phase is LocalState.RUNNING and not local.over else []
        case PortionOutgrown():
            return _exceed_portion(ledger, local, event, now)
        case LogCompleted():
            return ledger.keep(replace(local, log_complete=True))
        case OutputsSeen():
            return _see_outputs(ledger, local, event, now)
        case CheckpointsSeen():
            return _see_checkpoints(ledger, local, event)
        case Removed():
            return _remove(ledger, local, now)
        case _:
            assert_never(event)


def _see_outputs(ledger: Ledger, local: LocalExecution, event: OutputsSeen, now: datetime) -> list[LedgerAction]:
    """Before it is over nobody is told but of what was stored while it ran: the coordinator is to hear of its end and
    of the rest at once, as its job waits for that.
    """
    seen = replace(local, outputs=event.outputs)
    if event.outputs.stage is OutputsStage.LIVE:
        return ledger.keep(seen) if local.outputs is None or local.outputs.stage is OutputsStage.LIVE else []
    if local.phase in OVER:
        return [*ledger.keep(seen), *ledger.go_on(local.execution, now)]
    ledger.put(seen)
    return []


def _remove(ledger: Ledger, local: LocalExecution, now: datetime) -> list[LedgerAction]:
    """Forget it, unless its outputs were wanted again while it was being cleared away."""
    ledger.forget(local)
    if not (local.wanted.listed and local.wanted.store_again):
        return []
    ledger.put(only_to_store(local.execution, local.wanted, now))
    return ledger.go_on(local.execution, now)


def _see_checkpoints(ledger: Ledger, local: LocalExecution, event: CheckpointsSeen) -> list[LedgerAction]:
    """Parts are told at once; that others may follow is told with the end, as the next attempt waits for them."""
    seen = replace(local, checkpoints=event.checkpoints)
    if local.phase in OVER or not event.checkpoints.storing:
        return ledger.keep(seen)
    ledger.put(seen)
    return []


def _save(ledger: Ledger, local: LocalExecution, event: Saved) -> list[LedgerAction]:
    """What is told of checkpoints never goes back, also while it is being stopped."""
    known = local.saved_at or local.started_at
    if local.phase not in ALIVE or (known is not None and event.at <= known):
        return []
    return ledger.keep(replace(local, saved_at=event.at))


def _count_busy(ledger: Ledger, local: LocalExecution, event: GpusBusy) -> list[LedgerAction]:
    """What is told of busy GPUs never goes back."""
    if local.phase not in ALIVE or (local.gpu_busy_ms is not None and event.milliseconds <= local.gpu_busy_ms):
        return []
    return ledger.keep(replace(local, gpu_busy_ms=event.milliseconds))


def _exceed_portion(ledger: Ledger, local: LocalExecution, event: PortionOutgrown, now: datetime) -> list[LedgerAction]:
    """Tell of it once, and stop it where its pool says so."""
    assignment = local.wanted.assignment
    if local.phase is not LocalState.RUNNING or local.over or local.over_portion or assignment is None:
        return []
    told = replace(local, over_portion=event.message)
    actions = ledger.keep(told)
    if assignment.enforce is PortionRule.STOP:
        actions += _cut(ledger, told, FenceCut(message=event.message, kind=FailureKind.GPU_MEMORY), now)
    return actions


def _go_on_stopping(ledger: Ledger, local: LocalExecution, event: StoppingFound, now: datetime) -> list[LedgerAction]:
    """Stop what an agent before was stopping, at the time that user code was told."""
    if local.phase is not LocalState.RUNNING or local.end.before:
        return []
    notice = event.notice
    order = StopOrder(reason=notice.reason, grace=max(timedelta(), notice.kill_at - now))
    wanted = replace(local.wanted, goal=Goal.STOP, stop=order)
    ledger.put(replace(local, wanted=wanted, notice=notice))
    return ledger.go_on(local.execution, now)


def _describe(ledger: Ledger, local: LocalExecution, event: Progressed) -> list[LedgerAction]:
    if local.phase is not LocalState.PREPARING or local.detail == event.detail:
        return []
    return ledger.keep(replace(local, detail=event.detail))


def _prepared(ledger: Ledger, local: LocalExecution, event: Prepared, now: datetime) -> list[LedgerAction]:
    """A preparation may have ended just when it was told to stop; stopping goes on."""
    if local.phase is LocalState.HALTING:
        return []
    return ledger.move(local, Move.PREPARED, now, check_in=CheckIn(address=event.address, ports=event.ports), detail="")


def _exited(ledger: Ledger, local: LocalExecution, event: Exited, now: datetime) -> list[LedgerAction]:
    """An end that the agent itself brought about is nobody's success, whatever the exit code."""
    exit_ = _told(local, event.exit)
    failure = exit_failure(exit_, event.log_tail, in_setup=event.in_setup)
    if failure is not None and local.wanted.assignment is not None:
        failure = ledger.gpu_faults.blamed(failure, local.wanted.assignment.gpus, local.started_at, now)
    if local.cut is not None:
        failure = _failure_of(local.cut, exit_, event.log_tail)
    well = failure is None and local.phase is LocalState.RUNNING and not local.over
    move = Move.FAILED if exit_.code == 0 and failure is not None else Move.EXITED
    end = replace(local.end, exit=exit_, failure=failure, well=well)
    return ledger.move(local, move, now, end=end)


def _told(local: LocalExecution, exit_: Exit) -> Exit:
    """What counts of an exit: user code that ends well, or when it is told to, got over a lack of memory.

    Where rank 0 starts what runs here, the main program only waits, so its own end says nothing of that.
    """
    assignment = local.wanted.assignment
    if assignment is not None and assignment.only_waits:
        return exit_
    own = exit_.code != 0 and local.phase is not LocalState.TERMINATING
    return replace(exit_, out_of_memory=exit_.out_of_memory and own)


def _cut(ledger: Ledger, local: LocalExecution, cut: FenceCut, now: datetime) -> list[LedgerAction]:
    """Stop it by the deadline, also if it is being stopped more patiently; a start under way is finished first."""
    if local.phase not in ALIVE or local.end.before:
        return []
    stopped = replace(local, cut=cut)
    ledger.put(stopped)
    if local.phase is LocalState.TERMINATING:
        order = halt(stopped, now)
        ledger.put(replace(stopped, notice=order.notice or stopped.notice))
        return [order]
    return ledger.go_on(local.execution, now)


def _fail(ledger: Ledger, local: LocalExecution, event: ActionFailed, now: datetime) -> list[LedgerAction]:
    """An action failed; while it is being stopped anyway that only means that there is nothing to stop."""
    if local.phase is LocalState.HALTING:
        return ledger.move(local, Move.HALTED, now)
    failure = Failure(kind=event.kind, message=event.message)
    if local.cut is not None:
        failure = _failure_of(local.cut, None, ())
    return ledger.move(local, Move.FAILED, now, end=replace(local.end, failure=failure))


def _failure_of(cut: FenceCut, exit_: Exit | None, log_tail: tuple[str, ...]) -> Failure:
    return Failure(kind=cut.kind, message=cut.message, exit=exit_, log_tail=log_tail)


def exit_failure(exit_: Exit, log_tail: tuple[str, ...], *, in_setup: bool = False) -> Failure | None:
    """Why an exit is a failure; None for exit code 0."""
    if exit_.code == 0:
        return None
    if in_setup and not exit_.out_of_memory:
        message = f"its setup (interactive.setup) {exit_}"
        return Failure(kind=FailureKind.SETUP, message=message, exit=exit_, log_tail=log_tail)
    if exit_.out_of_memory:
        kind = FailureKind.OUT_OF_MEMORY
    elif exit_.signal is not None:
        kind = FailureKind.SIGNAL
    else:
        kind = FailureKind.EXIT_CODE
    hint = " (a shell's word for: command not found)" if exit_.code == COMMAND_NOT_FOUND else ""
    return Failure(kind=kind, message=f"{exit_}{hint}", exit=exit_, log_tail=log_tail)
