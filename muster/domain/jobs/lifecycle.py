"""The lifecycle of an execution: one table, and the phases of a job derived from it.

`docs/lifecycle.md` is printed from `TRANSITIONS` (`make docs`); a house test keeps it fresh.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

from muster.domain.errors import IllegalTransitionError


class State(StrEnum):
    """Where one execution stands."""

    WAITING = "waiting"  #: not in the queue yet: something or somebody holds its job back
    QUEUED = "queued"  #: in the queue until all its gang fits
    PLACED = "placed"  #: GPUs, CPU and memory are reserved for the whole gang
    PREPARING = "preparing"  #: the agent fetches the image, makes directories, holds ports
    CHECKED_IN = "checked_in"  #: prepared; its addresses and ports are known to the coordinator
    ARMED = "armed"  #: roster files written and container created; nothing started
    RUNNING = "running"  #: user code was started
    STOPPING = "stopping"  #: ordered to stop; the agent has not confirmed the end yet
    SUCCEEDED = "succeeded"  #: user code ended well
    FAILED = "failed"  #: it could not be prepared or started, or user code ended badly
    STOPPED = "stopped"  #: ended because the attempt was stopped
    LOST = "lost"  #: its node's lease ran out; what became of it is not known


class Trigger(StrEnum):
    """A fact that moves an execution."""

    HELD = "held"  #: there is a reason not to place the gang yet
    READY = "ready"  #: no reason is left not to place the gang
    PLACED = "placed"  #: the scheduler found room for the whole gang
    PREPARING = "preparing"  #: the agent took the order
    CHECKED_IN = "checked in"  #: the agent reports it prepared
    ARMED = "armed"  #: the agent reports it armed
    STARTED = "started"  #: the agent reports that user code was started
    SUCCEEDED = "succeeded"  #: user code ended with exit code 0
    FAILED = "failed"  #: any failure, from a missing image to an exit code or a missed deadline
    STOP_ORDERED = "stop ordered"  #: by a user, or because the attempt ends
    STOPPED = "stopped"  #: the agent confirms that nothing of it runs
    LOST = "lost"  #: the node's lease ran out


NOT_PLACED = frozenset({State.WAITING, State.QUEUED})
"""States in which an execution has no node yet, and holds nothing."""

_BEFORE_RUN = (State.PLACED, State.PREPARING, State.CHECKED_IN, State.ARMED)
_PLACED_AND_LIVE = (*_BEFORE_RUN, State.RUNNING)

TRANSITIONS: Mapping[tuple[State, Trigger], State] = {
    (State.WAITING, Trigger.READY): State.QUEUED,
    (State.WAITING, Trigger.FAILED): State.FAILED,
    (State.WAITING, Trigger.STOPPED): State.STOPPED,
    (State.QUEUED, Trigger.HELD): State.WAITING,
    (State.QUEUED, Trigger.PLACED): State.PLACED,
    (State.QUEUED, Trigger.FAILED): State.FAILED,
    (State.QUEUED, Trigger.STOPPED): State.STOPPED,
    (State.PLACED, Trigger.PREPARING): State.PREPARING,
    (State.PREPARING, Trigger.CHECKED_IN): State.CHECKED_IN,
    (State.CHECKED_IN, Trigger.ARMED): State.ARMED,
    (State.ARMED, Trigger.STARTED): State.RUNNING,
    (State.RUNNING, Trigger.SUCCEEDED): State.SUCCEEDED,
    **{(state, Trigger.FAILED): State.FAILED for state in _PLACED_AND_LIVE},
    **{(state, Trigger.STOP_ORDERED): State.STOPPING for state in _PLACED_AND_LIVE},
    (State.STOPPING, Trigger.STOPPED): State.STOPPED,
    (State.STOPPING, Trigger.FAILED): State.FAILED,
    **{(state, Trigger.LOST): State.LOST for state in (*_PLACED_AND_LIVE, State.STOPPING)},
}

TERMINAL = frozenset({State.SUCCEEDED, State.FAILED, State.STOPPED, State.LOST})
"""States without a way out."""

PROGRESS = (State.QUEUED, State.PLACED, State.PREPARING, State.CHECKED_IN, State.ARMED, State.RUNNING)
"""The straight way, in order; an execution only moves forward on it."""


def advance(subject: str, state: State, trigger: Trigger) -> State:
    """The state after `trigger`; raises IllegalTransitionError for a move that is not in the table."""
    try:
        return TRANSITIONS[(state, trigger)]
    except KeyError:
        raise IllegalTransitionError(subject, state, trigger) from None


class JobPhase(StrEnum):
    """How a job is doing, derived from its executions; never stored."""

    WAITING = "waiting"
    QUEUED = "queued"
    PREPARING = "preparing"
    RUNNING = "running"
    STOPPING = "stopping"
    STORING = "storing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def ended(self) -> bool:
        """Whether the job is over."""
        return self in {JobPhase.SUCCEEDED, JobPhase.FAILED, JobPhase.STOPPED}


class SuccessRule(StrEnum):
    """When an attempt counts as a success, where no role decides on it."""

    ALL = "all"  #: every execution ended well
    RANK0 = "rank0"  #: rank 0 ended well; the others are then stopped


def success_named(text: str) -> SuccessRule | str | None:
    """The rule that a text names, else the text as the name of a role; None for an empty text."""
    return next((rule for rule in SuccessRule if rule == text), text) or None


def phase(states: Collection[State], *, decided: bool, storing: bool = False) -> JobPhase:
    """The phase of a job from the states of its current attempt: the first line that fits.

    `decided`: some executions decide on the success, and all of these ended well. `storing`: outputs are on their way.
    """
    present = set(states)
    if not present <= TERMINAL:
        return _live_phase(present)
    if storing:
        return JobPhase.STORING
    if decided:
        return JobPhase.SUCCEEDED
    if present & {State.FAILED, State.LOST}:
        return JobPhase.FAILED
    return JobPhase.SUCCEEDED if present == {State.SUCCEEDED} else JobPhase.STOPPED


def _live_phase(present: set[State]) -> JobPhase:
    if present & {State.STOPPING, State.FAILED, State.LOST, State.STOPPED}:
        return JobPhase.STOPPING
    if present & {State.RUNNING, State.SUCCEEDED}:
        return JobPhase.RUNNING
    if present & {State.PLACED, State.PREPARING, State.CHECKED_IN, State.ARMED}:
        return JobPhase.PREPARING
    return JobPhase.QUEUED if State.QUEUED in present else JobPhase.WAITING
