"""One execution as its agent sees it: a table of its moves, and a function that tells the next one."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from agent.core.actions import Action, Arm, Halt, Prepare, Remove, Start
from agent.core.terms import Terms
from muster.domain.errors import IllegalTransitionError
from muster.domain.failure import Exit, Failure
from muster.domain.ids import ExecutionId
from muster.domain.plan import Assignment, Goal, Report, Stage
from muster.domain.roster import PortLease, Roster

DEFAULT_GRACE = timedelta(seconds=10)
"""For executions whose assignment is not known (any more)."""


class Phase(StrEnum):
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


MOVES: Mapping[tuple[Phase, Move], Phase] = {
    (Phase.NEW, Move.PREPARE): Phase.PREPARING,
    (Phase.NEW, Move.HALT): Phase.HALTING,
    (Phase.NEW, Move.FAILED): Phase.FAILED,
    (Phase.PREPARING, Move.PREPARED): Phase.PREPARED,
    (Phase.PREPARING, Move.FAILED): Phase.FAILED,
    (Phase.PREPARING, Move.HALT): Phase.HALTING,
    (Phase.PREPARED, Move.ARM): Phase.ARMING,
    (Phase.PREPARED, Move.HALT): Phase.HALTING,
    (Phase.ARMING, Move.ARMED): Phase.ARMED,
    (Phase.ARMING, Move.FAILED): Phase.FAILED,
    (Phase.ARMED, Move.START): Phase.STARTING,
    (Phase.ARMED, Move.HALT): Phase.HALTING,
    (Phase.STARTING, Move.STARTED): Phase.RUNNING,
    (Phase.STARTING, Move.FAILED): Phase.FAILED,
    (Phase.RUNNING, Move.EXITED): Phase.EXITED,
    (Phase.RUNNING, Move.FAILED): Phase.FAILED,
    (Phase.RUNNING, Move.HALT): Phase.TERMINATING,
    (Phase.HALTING, Move.HALTED): Phase.STOPPED,
    (Phase.TERMINATING, Move.EXITED): Phase.EXITED,
    (Phase.TERMINATING, Move.FAILED): Phase.FAILED,
    (Phase.EXITED, Move.REMOVE): Phase.REMOVING,
    (Phase.FAILED, Move.REMOVE): Phase.REMOVING,
    (Phase.STOPPED, Move.REMOVE): Phase.REMOVING,
}

OVER = frozenset({Phase.EXITED, Phase.FAILED, Phase.STOPPED, Phase.REMOVING})
"""How it ended does not change any more."""

ALIVE = frozenset({Phase.STARTING, Phase.RUNNING, Phase.TERMINATING})
"""User code runs, or may run at any moment."""

_STAGES: Mapping[Phase, Stage] = {
    Phase.NEW: Stage.PREPARING,
    Phase.PREPARING: Stage.PREPARING,
    Phase.PREPARED: Stage.PREPARED,
    Phase.ARMING: Stage.PREPARED,
    Phase.ARMED: Stage.ARMED,
    Phase.STARTING: Stage.ARMED,
    Phase.HALTING: Stage.PREPARING,  # for the coordinator it is there until it is STOPPED
    Phase.RUNNING: Stage.RUNNING,
    Phase.TERMINATING: Stage.RUNNING,
    Phase.EXITED: Stage.EXITED,
    Phase.FAILED: Stage.FAILED,
    Phase.STOPPED: Stage.STOPPED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """What the agent knows of one execution."""

    execution: ExecutionId
    goal: Goal
    since: datetime
    """When it came to its phase, by the node's clock."""
    phase: Phase = Phase.NEW
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


_OVER_FOR_PEERS = OVER | {Phase.HALTING, Phase.TERMINATING}


def terms_of(assignment: Assignment) -> Terms:
    """On which terms an execution runs."""
    return Terms(job=assignment.job, attempt=assignment.attempt, grace=assignment.grace, fence=assignment.fence)


def after(local: Local, move: Move) -> Phase:
    """The phase after a move; raises IllegalTransitionError for one that is not in the table."""
    try:
        return MOVES[(local.phase, move)]
    except KeyError:
        raise IllegalTransitionError(f"execution {local.execution}", local.phase, move) from None


def next_action(local: Local) -> tuple[Move, Action] | None:
    """What brings it closer to what is wanted; None while an action is under way or it is where it shall be."""
    if local.goal is Goal.STOP or not local.wanted or local.fenced:
        return _towards_end(local)
    if local.assignment is None:
        return None
    return _towards_run(local, local.assignment)


def _towards_end(local: Local) -> tuple[Move, Action] | None:
    if (local.phase, Move.HALT) in MOVES:
        return (Move.HALT, Halt(execution=local.execution, grace=_grace(local)))
    if not local.wanted and (local.phase, Move.REMOVE) in MOVES:
        return (Move.REMOVE, Remove(execution=local.execution))
    return None


def _grace(local: Local) -> timedelta:
    if local.fence_grace is not None:
        return local.fence_grace
    return local.terms.grace if local.terms is not None else DEFAULT_GRACE


def _towards_run(local: Local, assignment: Assignment) -> tuple[Move, Action] | None:
    if local.phase is Phase.NEW:
        return (Move.PREPARE, Prepare(assignment=assignment))
    if local.phase is Phase.PREPARED and local.goal >= Goal.ARM and local.roster is not None:
        return (Move.ARM, Arm(assignment=assignment, roster=local.roster))
    if local.phase is Phase.ARMED and local.goal >= Goal.RUN:
        return (Move.START, Start(execution=local.execution))
    return None


def report(local: Local) -> Report | None:
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
