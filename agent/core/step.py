"""The one door into the agent's core: what happened goes in, what is to be done comes out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from agent.core.actions import Action, AnswerPeer, LedgerAction, NoteDeadlines, Tell
from agent.core.events import (
    Began,
    Contact,
    Disconnected,
    Event,
    Fenced,
    FenceTimePassed,
    GpuFaulted,
    LedgerEvent,
    PeerAsked,
    PeersAnswered,
    PlanReceived,
    Recovered,
)
from agent.core.fence import CutOff, Decision, Fencing
from agent.core.ledger import Ledger
from agent.core.observed import observe, recover
from agent.core.terms import Guarded
from agent.core.wanted import take_plan
from muster.domain.gangs.plan import Report
from muster.domain.ids import ExecutionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The time at which an event is taken in."""

    wall: datetime
    """Time of day, which reports tell."""
    boot: float
    """Seconds on the clock of fencing, which nobody sets and which goes on while the machine sleeps."""


class AgentState:
    """All that decides on a node: what it runs, and how long that may go on. Everybody reads it, `step` changes it."""

    def __init__(self, began: float) -> None:
        """Know nothing yet; `began` is the time on the clock of fencing."""
        self.ledger = Ledger()
        self.fencing = Fencing(self.ledger, began)
        self.guarded: tuple[Guarded, ...] = ()
        """What ran when the fence last looked."""
        self.deadlines: Mapping[ExecutionId, float] = {}
        """What was last given out to be noted."""
        self.wake_at: float | None = None
        """When the fence must look again, on its clock; None: not before something else happens."""

    def reports(self, boot: float) -> tuple[Report, ...]:
        """The whole truth about every execution, for Hello."""
        return tuple(self.told(report, boot) for report in self.ledger.reports())

    def told(self, report: Report, boot: float) -> Report:
        """A report as it is told now: with how long ago a peer can last have had a permit."""
        no_permit_for = self.fencing.no_permit_for(report.execution, boot)
        return report if no_permit_for is None else replace(report, no_permit_for=no_permit_for)


def step(state: AgentState, event: Event, now: Now) -> list[Action]:
    """Take one event in; what is to be done because of it, in order."""
    match event:
        case PeerAsked():
            return [AnswerPeer(word=state.fencing.answer(event.attempt, now.boot))]
        case Contact() | Disconnected() | PeersAnswered() | FenceTimePassed():
            return _fenced(state, state.fencing.step(event, now.boot), now)
        case Began():
            state.fencing.begin(event.noted, now.boot)
            return _fenced(state, (), now)
        case Recovered():
            recover(state.ledger, event, now.wall)
            return []  # nothing is decided before Began, as nobody knows what was noted
        case _:
            return _decide(state, event, now)


def _decide(state: AgentState, event: LedgerEvent, now: Now) -> list[Action]:
    """Take in an event of the ledger; the fence looks only when something else runs than before."""
    actions = _told(state, _in_ledger(state.ledger, event, now), now)
    if state.ledger.guarded() == state.guarded:
        return actions
    return [*_fenced(state, state.fencing.step(FenceTimePassed(), now.boot), now), *actions]


def _in_ledger(ledger: Ledger, event: LedgerEvent, now: Now) -> list[LedgerAction]:
    match event:
        case PlanReceived():
            return take_plan(ledger, event, now.wall)
        case GpuFaulted():
            ledger.gpu_faults.note(event, now.wall)
            return []
        case _:
            return observe(ledger, event, now.wall)


def _fenced(state: AgentState, decisions: Iterable[Decision], now: Now) -> list[Action]:
    """Have what is cut off stopped, and what changed of the deadlines noted first."""
    actions: list[Action] = []
    for decision in decisions:
        if isinstance(decision, CutOff):
            fenced = Fenced(execution=decision.execution, grace=decision.grace, message=decision.message)
            actions += _told(state, observe(state.ledger, fenced, now.wall), now)
        else:
            actions.append(decision)
    state.guarded, state.wake_at = state.ledger.guarded(), state.fencing.wake_at()
    deadlines = state.fencing.deadlines()
    if deadlines == state.deadlines:
        return actions
    state.deadlines = deadlines
    return [NoteDeadlines(deadlines=deadlines), *actions]


def _told(state: AgentState, actions: Iterable[LedgerAction], now: Now) -> list[Action]:
    return [
        Tell(report=state.told(action.report, now.boot)) if isinstance(action, Tell) else action for action in actions
    ]
