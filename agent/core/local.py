"""One execution as its agent sees it: a table of its moves, and a function that tells the next one."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from agent.core.actions import Action, Arm, Halt, Prepare, Remove, Start
from agent.core.terms import Terms
from muster.domain.errors import IllegalTransitionError
from muster.domain.gangs.plan import Assignment, Goal, Report, Stage
from muster.domain.gangs.roster import PortLease, Roster
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import Exit, Failure

DEFAULT_GRACE = timedelta(seconds=10)
"""For executions whose assignment is not known (any more)."""


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
class LocalExecution:
    """What the agent knows of one execution."""

    execution: ExecutionId
    goal: Goal
    since: datetime
    """When it came to its phase, by the node's clock."""
    phase: LocalState = LocalState.NEW
    wanted: bool = True
    """Whether the coordinator lists it; what it does not list is stopped and removed."""
    assignment: Assignment | None = None
    roster: Roster | None = None
    detail: str = ""
    address: str | None = None
    ports: tuple[PortLease, ...] = ()
    started_at: datetime | None = None
    exit: Exit | None = None
    failure: Failure | None = None
    log_complete: bool = False
    terms: Terms | None = None
    """On which it runs without the coordinator: those of the assignment, or as a former agent noted them."""
    fenced: str = ""
    """Why the agent stopped it by itself; empty: it did not."""
    fence_grace: timedelta | None = None
    """What is left between SIGTERM and SIGKILL then."""
    ended_before: bool = False
    """Whether it ended before this life of the agent, which is about to hear how; nothing is left to cut off."""
    ended_well: bool = False
    """Whether it ended with exit code 0 without ever being told to stop."""

    @property
    def over(self) -> bool:
        """Whether it was told to stop or has failed: it will never again do its part of the attempt."""
        if self.ended_well:
            return False
        return self.goal is Goal.STOP or not self.wanted or bool(self.fenced) or self.phase in _OVER_FOR_PEERS


_OVER_FOR_PEERS = OVER | {LocalState.HALTING, LocalState.TERMINATING}


def terms_of(assignment: Assignment) -> Terms:
    """On which terms an execution runs."""
    return Terms(job=assignment.job, attempt=assignment.attempt, grace=assignment.grace, fence=assignment.fence)


def after(local: LocalExecution, move: Move) -> LocalState:
    """The phase after a move; raises IllegalTransitionError for one that is not in the table."""
    try:
        return MOVES[(local.phase, move)]
    except KeyError:
        raise IllegalTransitionError(f"execution {local.execution}", local.phase, move) from None


def next_action(local: LocalExecution) -> tuple[Move, Action] | None:
    """What brings it closer to what is wanted; None while an action is under way or it is where it shall be."""
    if local.goal is Goal.STOP or not local.wanted or local.fenced:
        return _towards_end(local)
    if local.assignment is None:
        return None
    return _towards_run(local, local.assignment)


def _towards_end(local: LocalExecution) -> tuple[Move, Action] | None:
    if (local.phase, Move.HALT) in MOVES:
        return (Move.HALT, Halt(execution=local.execution, grace=_grace(local)))
    if not local.wanted and (local.phase, Move.REMOVE) in MOVES:
        return (Move.REMOVE, Remove(execution=local.execution))
    return None


def _grace(local: LocalExecution) -> timedelta:
    if local.fence_grace is not None:
        return local.fence_grace
    return local.terms.grace if local.terms is not None else DEFAULT_GRACE


def _towards_run(local: LocalExecution, assignment: Assignment) -> tuple[Move, Action] | None:
    if local.phase is LocalState.NEW:
        return (Move.PREPARE, Prepare(assignment=assignment))
    if local.phase is LocalState.PREPARED and local.goal >= Goal.ARM and local.roster is not None:
        return (Move.ARM, Arm(assignment=assignment, roster=local.roster))
    if local.phase is LocalState.ARMED and local.goal >= Goal.RUN:
        return (Move.START, Start(execution=local.execution))
    return None


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
        address=local.address,
        ports=local.ports,
        started_at=local.started_at,
        exit=local.exit,
        failure=local.failure,
        log_complete=local.log_complete,
    )
