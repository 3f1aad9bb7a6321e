"""One execution as its agent sees it: a table of its moves, and a function that tells the next one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from agent.core.actions import Arm, Halt, LedgerAction, Prepare, Remove, Start, StoreAgain
from agent.core.terms import Terms
from muster.domain.data.checkpoint import ToldCheckpoints
from muster.domain.data.outputs import ExecutionOutputs, OutputsStage
from muster.domain.errors import IllegalTransitionError
from muster.domain.gangs.plan import Assignment, Goal, Report, Stage
from muster.domain.gangs.roster import PortLease, Roster
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.job import RuntimeKind
from muster.domain.jobs.stopping.notice import StopNotice, StopOrder, StopReason
from muster.domain.jobs.stopping.preemption import PreemptSignal

DEFAULT_GRACE = timedelta(seconds=10)
"""The grace of executions whose assignment is not known, or not any more."""


class LocalState(StrEnum):
    """Where an execution stands on this node; the names in -ING mean that an action is under way."""

    NEW = "new"
    PREPARING = "preparing"
    PREPARED = "prepared"
    ARMING = "arming"
    ARMED = "armed"
    STARTING = "starting"
    RUNNING = "running"
    HALTING = "halting"  #: told to stop before user code ran
    TERMINATING = "terminating"  #: told to stop while user code ran; its exit is awaited
    EXITED = "exited"
    FAILED = "failed"
    STOPPED = "stopped"
    REMOVING = "removing"


class Move(StrEnum):
    """What brings it from phase to phase."""

    PREPARE = "prepare"
    PREPARED = "prepared"
    ARM = "arm"
    ARMED = "armed"
    START = "start"
    STARTED = "started"
    HALT = "halt"
    HALTED = "halted"
    EXITED = "exited"
    FAILED = "failed"
    REMOVE = "remove"


MOVES: Mapping[tuple[LocalState, Move], LocalState] = {
    (LocalState.NEW, Move.PREPARE): LocalState.PREPARING,
    (LocalState.NEW, Move.HALT): LocalState.HALTING,
    (LocalState.NEW, Move.FAILED): LocalState.FAILED,
    (LocalState.PREPARING, Move.PREPARED): LocalState.PREPARED,
    (LocalState.PREPARING, Move.FAILED): LocalState.FAILED,
    (LocalState.PREPARING, Move.HALT): LocalState.HALTING,
    (LocalState.PREPARED, Move.ARM): LocalState.ARMING,
    (LocalState.PREPARED, Move.HALT): LocalState.HALTING,
    (LocalState.ARMING, Move.ARMED): LocalState.ARMED,
    (LocalState.ARMING, Move.FAILED): LocalState.FAILED,
    (LocalState.ARMED, Move.START): LocalState.STARTING,
    (LocalState.ARMED, Move.HALT): LocalState.HALTING,
    (LocalState.STARTING, Move.STARTED): LocalState.RUNNING,
    (LocalState.STARTING, Move.FAILED): LocalState.FAILED,
    (LocalState.RUNNING, Move.EXITED): LocalState.EXITED,
    (LocalState.RUNNING, Move.FAILED): LocalState.FAILED,
    (LocalState.RUNNING, Move.HALT): LocalState.TERMINATING,
    (LocalState.HALTING, Move.HALTED): LocalState.STOPPED,
    (LocalState.TERMINATING, Move.EXITED): LocalState.EXITED,
    (LocalState.TERMINATING, Move.FAILED): LocalState.FAILED,
    (LocalState.EXITED, Move.REMOVE): LocalState.REMOVING,
    (LocalState.FAILED, Move.REMOVE): LocalState.REMOVING,
    (LocalState.STOPPED, Move.REMOVE): LocalState.REMOVING,
}

OVER = frozenset({LocalState.EXITED, LocalState.FAILED, LocalState.STOPPED, LocalState.REMOVING})
"""How it ended does not change any more."""

_SETTLED = OVER - {LocalState.REMOVING}

ALIVE = frozenset({LocalState.STARTING, LocalState.RUNNING, LocalState.TERMINATING})
"""User code runs, or may run at any moment."""

_STAGES: Mapping[LocalState, Stage] = {
    LocalState.NEW: Stage.PREPARING,
    LocalState.PREPARING: Stage.PREPARING,
    LocalState.PREPARED: Stage.PREPARED,
    LocalState.ARMING: Stage.PREPARED,
    LocalState.ARMED: Stage.ARMED,
    LocalState.STARTING: Stage.ARMED,
    LocalState.HALTING: Stage.PREPARING,  # for the coordinator it is there until it is STOPPED
    LocalState.RUNNING: Stage.RUNNING,
    LocalState.TERMINATING: Stage.RUNNING,
    LocalState.EXITED: Stage.EXITED,
    LocalState.FAILED: Stage.FAILED,
    LocalState.STOPPED: Stage.STOPPED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedExecution:
    """What the coordinator wants of one execution, as far as it has told."""

    goal: Goal
    listed: bool = True
    """Whether the coordinator lists it; what it does not list is stopped and removed."""
    assignment: Assignment | None = None
    roster: Roster | None = None
    stop: StopOrder | None = None
    """How it is to be stopped, once it is; None: with the grace of its terms."""
    cause: str = ""
    """What the coordinator acted on when it last told something of it, for the journal."""
    store_again: int = 0
    """How often somebody has asked to have its outputs stored again, once it is over."""

    @property
    def over(self) -> bool:
        """Whether it is to end."""
        return self.goal is Goal.STOP or not self.listed


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckIn:
    """Where peers reach an execution, known once it is prepared."""

    address: str | None = None
    ports: tuple[PortLease, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceCut:
    """Why the agent stops an execution by itself, and how fast."""

    message: str
    kind: FailureKind = FailureKind.NODE_LOST
    grace: timedelta | None = None
    """Time that is left between SIGTERM and SIGKILL; None: that of its terms."""

    @property
    def fenced(self) -> bool:
        """Whether it is stopped because the node is cut off."""
        return self.kind is FailureKind.NODE_LOST


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEnd:
    """How an execution ended."""

    exit: Exit | None = None
    failure: Failure | None = None
    before: bool = False
    """Whether it ended before this life of the agent, which is about to hear how; nothing is left to cut off."""
    well: bool = False
    """Whether it ended with exit code 0 without ever being told to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalExecution:
    """What the agent knows of one execution."""

    execution: ExecutionId
    wanted: WantedExecution
    since: datetime
    """When it came to its phase, by the node's clock."""
    phase: LocalState = LocalState.NEW
    detail: str = ""
    check_in: CheckIn = CheckIn()
    started_at: datetime | None = None
    terms: Terms | None = None
    """Terms on which it runs without the coordinator: of its assignment, or as a former agent noted them."""
    cut: FenceCut | None = None
    """Set once the agent stops it by itself."""
    notice: StopNotice | None = None
    """What user code was told when it was stopped; its time to end does not begin anew."""
    saved_at: datetime | None = None
    """When user code last told that a checkpoint is whole, by the node's clock; None: it has not."""
    used_at: datetime | None = None
    """When it was last used, by the node's clock; None: not since the agent started, or nobody needs to know."""
    gpu_busy_ms: int | None = None
    """Milliseconds in which something ran on its GPUs; None: they do not tell."""
    over_portion: str = ""
    """How much more GPU memory than its portion it was seen to use; empty: never."""
    end: LocalEnd = LocalEnd()
    log_complete: bool = False
    outputs: ExecutionOutputs | None = None
    """What user code has left; None: nothing, or that is not known yet. Nobody is told before it is over."""
    checkpoints: ToldCheckpoints | None = None
    """What it has saved; None: nothing is known of that."""

    @property
    def idle_limit(self) -> timedelta | None:
        """How long its attempt may go unused, while it runs; None: nobody wants to hear of use, or nobody has told."""
        assignment = self.wanted.assignment
        return None if assignment is None or self.phase is not LocalState.RUNNING else assignment.idle

    @property
    def over(self) -> bool:
        """Whether it was told to stop or has failed: it will never again do its part of the attempt.

        So is what ended before this life of the agent, however it did. A former life may have been told to stop it, and
        may have told the coordinator how others of its attempt had ended here; nothing of that is known any more.
        """
        if self.end.well:
            return False
        return self.end.before or self.wanted.over or self.cut is not None or self.phase in _OVER_FOR_PEERS


_OVER_FOR_PEERS = OVER | {LocalState.HALTING, LocalState.TERMINATING}


def terms_of(assignment: Assignment) -> Terms:
    """The terms on which an execution runs."""
    return Terms(job=assignment.job, attempt=assignment.attempt, grace=assignment.grace, fence=assignment.fence)


def after(local: LocalExecution, move: Move) -> LocalState:
    """The phase after a move; raises IllegalTransitionError for one that is not in the table."""
    try:
        return MOVES[(local.phase, move)]
    except KeyError:
        raise IllegalTransitionError(f"execution {local.execution}", local.phase, move) from None


def next_action(local: LocalExecution, now: datetime) -> tuple[Move, LedgerAction] | None:
    """What brings it closer to what is wanted; None while an action is under way or it is where it shall be."""
    if local.wanted.over or local.cut is not None:
        return _towards_end(local, now)
    if local.wanted.assignment is None:
        return None
    return _towards_run(local, local.wanted, local.wanted.assignment)


def _towards_end(local: LocalExecution, now: datetime) -> tuple[Move, LedgerAction] | None:
    if (local.phase, Move.HALT) in MOVES:
        return (Move.HALT, halt(local, now))
    if not local.wanted.listed and (local.phase, Move.REMOVE) in MOVES:
        return (Move.REMOVE, Remove(execution=local.execution))
    return None


def halt(local: LocalExecution, now: datetime) -> Halt:
    """How an execution is stopped: by its agent's own decision, as it was told before, or as it is told now.

    What has its notice already keeps the time at which it is killed, or is killed earlier, and was sent its signal.
    """
    kill_at, signal = now + _grace(local), _signal(local)
    if local.notice is not None:
        kill_at = min(kill_at, local.notice.kill_at)
    runs = local.phase in ALIVE
    return Halt(
        execution=local.execution,
        grace=max(timedelta(), kill_at - now),
        fenced=local.cut.message if local.cut is not None and local.cut.fenced else "",
        signal=signal,
        notice=StopNotice(reason=_reason(local), kill_at=kill_at) if runs else None,
    )


def _grace(local: LocalExecution) -> timedelta:
    if local.cut is not None and local.cut.grace is not None:
        return local.cut.grace
    if local.wanted.stop is not None:
        return local.wanted.stop.grace
    return local.terms.grace if local.terms is not None else DEFAULT_GRACE


def _reason(local: LocalExecution) -> StopReason:
    if local.cut is not None:
        return _REASONS_OF_CUTS[local.cut.kind]
    return StopReason.STOPPED if local.wanted.stop is None else local.wanted.stop.reason


_REASONS_OF_CUTS: Mapping[FailureKind, StopReason] = {
    FailureKind.NODE_LOST: StopReason.DISCONNECTED,
    FailureKind.VOLUME_FULL: StopReason.VOLUME_FULL,
    FailureKind.GPU_MEMORY: StopReason.GPU_MEMORY,
}


def _signal(local: LocalExecution) -> PreemptSignal | None:
    """What user code gets now; None: it got it when it had its notice, and another one could end it while it saves."""
    assignment, reason = local.wanted.assignment, _reason(local)
    if local.notice is not None and local.cut is None:
        return None
    return assignment.preempt_signal if assignment is not None and reason.comes_back else PreemptSignal.TERM


def _towards_run(
    local: LocalExecution, wanted: WantedExecution, assignment: Assignment
) -> tuple[Move, LedgerAction] | None:
    if local.phase is LocalState.NEW:
        return (Move.PREPARE, Prepare(assignment=assignment))
    if local.phase is LocalState.PREPARED and wanted.goal >= Goal.ARM and wanted.roster is not None:
        return (Move.ARM, Arm(assignment=assignment, roster=wanted.roster))
    if local.phase is LocalState.ARMED and wanted.goal >= Goal.RUN:
        return (Move.START, Start(execution=local.execution))
    return None


def storing_again(local: LocalExecution) -> StoreAgain | None:
    """What is to be done where its outputs are wanted once more; None: nothing, or it is under way."""
    wanted, assignment, known = local.wanted, local.wanted.assignment, local.outputs
    done = 0 if known is None else known.retries
    busy = known is not None and known.on_their_way
    if local.phase not in _SETTLED or not wanted.listed or assignment is None or busy or done >= wanted.store_again:
        return None
    return StoreAgain(
        execution=local.execution,
        retries=wanted.store_again,
        owner_counts=assignment.role.runtime is RuntimeKind.PROCESS,
    )


def only_to_store(execution: ExecutionId, wanted: WantedExecution, now: datetime) -> LocalExecution:
    """An execution of which nothing but outputs is left here; it holds none of what it was given."""
    if wanted.assignment is not None:
        wanted = replace(wanted, assignment=replace(wanted.assignment, gpus=(), gpu_share=None))
    return LocalExecution(execution=execution, wanted=wanted, since=now, phase=LocalState.STOPPED, log_complete=True)


def report(local: LocalExecution) -> Report | None:
    """The whole truth about it for the coordinator; None while it is being cleared away."""
    stage = _STAGES.get(local.phase)
    if stage is None:
        return None
    return Report(
        execution=local.execution,
        stage=stage,
        at=local.since,
        detail=local.detail,
        address=local.check_in.address,
        ports=local.check_in.ports,
        started_at=local.started_at,
        exit=local.end.exit,
        failure=local.end.failure,
        log_complete=local.log_complete,
        used_at=local.used_at,
        saved_at=local.saved_at,
        gpu_busy_ms=local.gpu_busy_ms,
        outputs=local.outputs if local.phase in OVER or _are_live(local.outputs) else None,
        over_portion=local.over_portion,
        checkpoints=local.checkpoints,
    )


def _are_live(outputs: ExecutionOutputs | None) -> bool:
    return outputs is not None and outputs.stage is OutputsStage.LIVE
