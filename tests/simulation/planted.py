"""Faults that were made on purpose: each breaks one rule of a core, and the simulation must find it."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from agent.core.actions import Action
from agent.core.events import Event as AgentEvent
from agent.core.events import PlanReceived
from agent.core.fence import AskPeers, Contact, CutOff, FenceEvent, Fencing
from agent.core.ledger import Ledger
from agent.core.terms import AttemptKey
from coordinator.core.answers import Answer, Noted
from coordinator.core.events import Event, ExecutionsReported, NodeConnected, StopRequested
from coordinator.core.step import step
from coordinator.core.turn.turn import Turn
from muster.domain.gangs.fence import PeerWord
from muster.domain.gangs.plan import Report, Stage
from muster.domain.ids import NodeId
from tests.simulation.cores import Cores


def _taking_a_check_in_for_an_arming(turn: Turn, event: Event) -> Answer:
    if isinstance(event, ExecutionsReported):
        event = replace(event, reports=tuple(map(_armed_already, event.reports)))
    return step(turn, event)


def _armed_already(report: Report) -> Report:
    return replace(report, stage=Stage.ARMED) if report.stage is Stage.PREPARED else report


def _ignoring_stops(turn: Turn, event: Event) -> Answer:
    return Noted() if isinstance(event, StopRequested) else step(turn, event)


def _keeping_stops_in_memory(turn: Turn, event: Event) -> Answer:
    """Carries a stop out, and leaves out of the commit that the job was asked to stop."""
    answer = step(turn, event)
    if isinstance(event, StopRequested) and event.job in turn.cluster.jobs:
        turn.put(replace(turn.cluster.jobs[event.job], stop_requested_at=None))
    return answer


def _forgetting_last_words(turn: Turn, event: Event) -> Answer:
    if isinstance(event, ExecutionsReported | NodeConnected):
        event = replace(event, reports=tuple(map(_silent_for_long, event.reports)))
    return step(turn, event)


def _silent_for_long(report: Report) -> Report:
    return replace(report, no_permit_for=timedelta(days=1)) if report.no_permit_for is not None else report


class _FirstOfLastWords:
    """Takes the earliest of the times at which a node can last have given a permit, where the latest counts."""

    def __init__(self) -> None:
        self._words: dict[tuple[str, NodeId], datetime] = {}

    def __call__(self, turn: Turn, event: Event) -> Answer:
        if isinstance(event, ExecutionsReported | NodeConnected):
            event = replace(event, reports=tuple(self._earliest(event.node, event.reports, turn.now)))
        return step(turn, event)

    def _earliest(self, node: NodeId, reports: Iterable[Report], now: datetime) -> Iterable[Report]:
        for report in reports:
            if report.no_permit_for is None:
                yield report
                continue
            key = (report.execution.rpartition("-")[0], node)
            told = now - report.no_permit_for
            self._words[key] = min(told, self._words.get(key, told))
            yield replace(report, no_permit_for=now - self._words[key])


class _TakingOldPlans(Ledger):
    """Applies every plan that does not build on another, however old it is."""

    def step(self, event: AgentEvent, now: datetime) -> list[Action]:
        if isinstance(event, PlanReceived) and event.plan.base == 0 and event.plan.revision <= self.revision:
            self.revision = 0
        return super().step(event, now)


class _CountingFromAcknowledgements(Fencing):
    """Takes the time at which an acknowledgement comes for the time at which the coordinator heard the agent."""

    def step(self, event: FenceEvent, at: float) -> list[AskPeers | CutOff]:
        return super().step(Contact(sent_at=at) if isinstance(event, Contact) else event, at)


class _NeverConnected(Fencing):
    """Tells peers that the coordinator is away, also when it is there."""

    def answer(self, attempt: AttemptKey, at: float) -> PeerWord:
        word = super().answer(attempt, at)
        if word is not PeerWord.CONNECTED:
            return word
        self._said[attempt] = at
        return PeerWord.WITHOUT


RELEASED_TOO_EARLY = Cores(step=_taking_a_check_in_for_an_arming)
STOP_IGNORED = Cores(step=_ignoring_stops)
LAST_WORDS_FORGOTTEN = Cores(step=_forgetting_last_words)
OLD_PLAN_APPLIED = Cores(ledger=_TakingOldPlans)
CONTACT_FROM_ACKNOWLEDGEMENT = Cores(fencing=_CountingFromAcknowledgements)
STOP_NOT_STORED = Cores(step=_keeping_stops_in_memory)
CONNECTED_NEVER_SAID = Cores(fencing=_NeverConnected)


def first_of_last_words() -> Cores:
    """Made anew for each fleet, as it remembers what it heard."""
    return Cores(step=_FirstOfLastWords())
