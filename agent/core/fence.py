"""When user code must stop for want of contact, and what peers hear: the agent's side of `docs/fencing.md`.

All times are seconds of the node's clock that goes on while it sleeps. They are handed in; nothing here reads a clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from agent.core.actions import AskPeers, LeavePeers
from agent.core.events import Contact, Disconnected, FenceEvent, PeersAnswered
from agent.core.ledger import Ledger
from agent.core.terms import Guarded, Terms
from muster.domain.gangs.fence import DEAD_BY, LEASE, LONGEST_FENCE_GRACE, PERMIT, QUESTION_INTERVAL, PeerWord
from muster.domain.ids import AttemptId, ExecutionId, NodeId
from muster.domain.jobs.disconnect import OnDisconnect

_LEASE = LEASE.total_seconds()
_PERMIT = PERMIT.total_seconds()
_INTERVAL = QUESTION_INTERVAL.total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff:
    """An execution must be stopped: the ledger hears of it as Fenced."""

    execution: ExecutionId
    grace: timedelta
    message: str


Decision = AskPeers | LeavePeers | CutOff
"""What the fence wants to have done."""


class Fencing:
    """What an agent knows of contact, permits and its own words; `ledger` says what runs, and is only read."""

    def __init__(self, ledger: Ledger, began: float) -> None:
        """Know nothing yet; `began` is when this life of the agent did."""
        self._ledger = ledger
        self._began = began
        self._noted: dict[ExecutionId, float] = {}
        """Deadlines of the life before."""
        self._contact: float | None = None
        self._connected = False
        self._permits: dict[AttemptId, float] = {}
        """Until when the last permit holds."""
        self._asked: dict[AttemptId, float] = {}
        """When the last round began."""
        self._asking = False
        """Whether peers were asked since there was contact."""
        self._words: dict[AttemptId, Mapping[NodeId, PeerWord]] = {}
        """What the last round brought."""
        self.said: dict[AttemptId, float] = {}
        """When a peer was last told WITHOUT."""
        self._cut: dict[ExecutionId, float] = {}
        """What is being stopped, and by when it is dead; nothing puts that off."""

    def begin(self, noted: Mapping[ExecutionId, float], at: float) -> None:
        """Count this life of the agent from now, and go on from the deadlines of the life before."""
        self._began, self._noted = at, dict(noted)

    def step(self, event: FenceEvent, at: float) -> list[Decision]:
        """Take one event in; what is to be done because of it.

        What is overdue stays overdue: news that comes after a deadline does not move it.
        """
        guarded = self._ledger.guarded()
        self._forget(guarded)
        late = self._overdue(guarded, at)
        if isinstance(event, Contact):
            self._contact = max(event.sent_at, event.sent_at if self._contact is None else self._contact)
            self._connected = True
        elif isinstance(event, Disconnected):
            self._connected = False
        elif isinstance(event, PeersAnswered):
            self._take(event)
        return [*late, *self._cut_off(guarded, at), *self._ask(guarded, at), *self._leave(at)]

    def wake_at(self) -> float | None:
        """When FenceTimePassed has something to do, at the latest; None: not before something else happens."""
        times: list[float] = []
        for each in self._ledger.guarded():
            stop_at = self._stop_at(each)
            if stop_at is not None and each.execution not in self._cut:
                times.append(stop_at)
                if _asks(each.terms):
                    times.append(self._next_round(each.terms.attempt_id))
        return min(times, default=None)

    def deadlines(self) -> dict[ExecutionId, float]:
        """Moments by which user code must be dead, for the program that kills it if this agent cannot; without those
        that have none.
        """
        found = {each.execution: self._dead_by(each) for each in self._ledger.guarded()}
        return {execution: dead_by for execution, dead_by in found.items() if dead_by is not None}

    def may_start(self, execution: ExecutionId, at: float) -> bool:
        """Whether user code may be started now; asked just before it is."""
        local = self._ledger.get(execution)
        if execution in self._cut or local is None or local.terms is None:
            return False
        stop_at = self._stop_at(Guarded(execution=execution, terms=local.terms))
        return stop_at is None or at < stop_at

    def in_contact(self, at: float) -> bool:
        """Whether the coordinator was there within a lease."""
        return self._contact is not None and at - self._contact < _LEASE

    def answer(self, attempt: AttemptId, at: float) -> PeerWord:
        """What a peer of the attempt hears now. A WITHOUT is remembered: it may be a permit."""
        if not self._ledger.takes_part(attempt):
            return PeerWord.OVER
        if self._connected and self.in_contact(at):
            return PeerWord.CONNECTED
        self.said[attempt] = at
        return PeerWord.WITHOUT

    def no_permit_for(self, execution: ExecutionId, at: float) -> timedelta | None:
        """How long ago a peer can last have been told WITHOUT, for a report; None while it still may be.

        What a former life of this agent said is not known, so the time of its end is the best that can be told.
        """
        local = self._ledger.get(execution)
        terms = None if local is None else local.terms
        if terms is not None and self._ledger.takes_part(terms.attempt_id):
            return None
        said = None if terms is None else self.said.get(terms.attempt_id)
        return timedelta(seconds=max(0.0, at - max(self._began, said or self._began)))

    # contact and permits

    def _take(self, event: PeersAnswered) -> None:
        terms = self._ledger.attempt(event.attempt)
        if terms is None or not _asks(terms):
            return
        self._words[event.attempt] = event.words
        if all(event.words.get(witness.node) is PeerWord.WITHOUT for witness in terms.fence.witnesses):
            permit = event.asked_at + _PERMIT
            self._permits[event.attempt] = max(permit, self._permits.get(event.attempt, permit))

    def _ask(self, guarded: tuple[Guarded, ...], at: float) -> list[Decision]:
        asks: list[Decision] = []
        for each in guarded:
            terms = each.terms
            if not _asks(terms) or each.execution in self._cut or at < self._next_round(terms.attempt_id):
                continue
            self._asked[terms.attempt_id], self._asking = at, True
            fence = terms.fence
            asks.append(AskPeers(attempt=terms.attempt_id, asked_at=at, witnesses=fence.witnesses, key=fence.key))
        return asks

    def _leave(self, at: float) -> list[Decision]:
        if not self._asking or not self.in_contact(at):
            return []
        self._asking = False
        return [LeavePeers()]

    def _next_round(self, attempt: AttemptId) -> float:
        lonely = self._began if self._contact is None else self._contact + _LEASE
        last = self._asked.get(attempt)
        return lonely if last is None else max(lonely, last + _INTERVAL)

    # deadlines

    def _dead_by(self, guarded: Guarded) -> float | None:
        """The moment by which it must be dead, as far as is known now; None: it may run without the coordinator."""
        terms = guarded.terms
        if guarded.execution in self._cut:
            return self._cut[guarded.execution]
        if terms.fence.on_disconnect is OnDisconnect.KEEP and not terms.fence.witnesses:
            return None
        times = [self._noted[guarded.execution]] if guarded.execution in self._noted else []
        if self._contact is not None:
            times.append(self._contact + terms.fence.lost_after.total_seconds() * DEAD_BY)
        if terms.attempt_id in self._permits and _asks(terms):
            times.append(self._permits[terms.attempt_id])
        return max(times, default=self._began)  # nobody knows how long it may run, so it may not

    def _stop_at(self, guarded: Guarded) -> float | None:
        dead_by = self._dead_by(guarded)
        return None if dead_by is None else dead_by - min(guarded.terms.grace, LONGEST_FENCE_GRACE).total_seconds()

    def _overdue(self, guarded: tuple[Guarded, ...], at: float) -> list[Decision]:
        """What to do about executions whose deadline is over, whatever the news is."""
        over = [(each, self._dead_by(each)) for each in guarded if each.execution not in self._cut]
        return [self._cut_one(each, dead_by, at) for each, dead_by in over if dead_by is not None and at >= dead_by]

    def _cut_off(self, guarded: tuple[Guarded, ...], at: float) -> list[Decision]:
        """What to do about executions that must be stopped now to be dead in time."""
        cut: list[Decision] = []
        for each in guarded:
            dead_by, stop_at = self._dead_by(each), self._stop_at(each)
            if each.execution in self._cut or dead_by is None or stop_at is None or at < stop_at:
                continue
            cut.append(self._cut_one(each, dead_by, at))
        return cut

    def _cut_one(self, guarded: Guarded, dead_by: float, at: float) -> CutOff:
        self._cut[guarded.execution] = dead_by
        left = timedelta(seconds=max(0.0, dead_by - at))
        return CutOff(
            execution=guarded.execution,
            grace=min(left, guarded.terms.grace, LONGEST_FENCE_GRACE),
            message=_why(guarded.terms, self._contact, self._words.get(guarded.terms.attempt_id), at),
        )

    def _forget(self, guarded: tuple[Guarded, ...]) -> None:
        """Keep nothing of what does not run any more; what was said is kept as long as it may be reported."""
        executions = {each.execution for each in guarded}
        attempts = {each.terms.attempt_id for each in guarded}
        for of_execution in (self._cut, self._noted):
            for execution in of_execution.keys() - executions:
                del of_execution[execution]
        for attempt in (self._permits.keys() | self._asked.keys() | self._words.keys()) - attempts:
            self._permits.pop(attempt, None)
            self._asked.pop(attempt, None)
            self._words.pop(attempt, None)
        for attempt in [attempt for attempt in self.said if self._ledger.attempt(attempt) is None]:
            del self.said[attempt]


# words for people


def _why(terms: Terms, contact: float | None, words: Mapping[NodeId, PeerWord] | None, at: float) -> str:
    """Why an execution is stopped; `words` are what its peers said last, if they were asked."""
    silence = f"for {at - contact:.0f} s" if contact is not None else "since the agent was started"
    return f"stopped by its agent: no word from the coordinator {silence}{_doubt(terms, words)}"


def _doubt(terms: Terms, words: Mapping[NodeId, PeerWord] | None) -> str:
    if terms.fence.on_disconnect is OnDisconnect.STOP:
        return ", and the job says on_disconnect: stop"
    if words is None:
        return ", and its peers were not asked in time"
    for witness in terms.fence.witnesses:
        said = words.get(witness.node)
        if said is not PeerWord.WITHOUT:
            return f" and {_DOUBTS[said].format(node=witness.node)}"
    return ", and its peers answered too late"


_DOUBTS: Mapping[PeerWord | None, str] = {
    None: "node {node}, which has a part in the job, does not answer",
    PeerWord.CONNECTED: "node {node}, which has a part in the job, still hears it",
    PeerWord.OVER: "the part of node {node} in the job is over",
}


def _asks(terms: Terms) -> bool:
    """Whether its peers can give it permits."""
    return terms.fence.on_disconnect is OnDisconnect.KEEP and bool(terms.fence.witnesses)
