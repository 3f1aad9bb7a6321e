"""The agent's fence around its real core: contact, questions to peers, deadlines that are noted and kept."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from agent.core.events import Fenced
from agent.core.fence import (
    AskPeers,
    Contact,
    CutOff,
    Disconnected,
    FenceEvent,
    FenceTimePassed,
    Fencing,
    PeersAnswered,
)
from agent.core.ledger import Ledger
from agent.core.terms import AttemptKey
from muster.domain.gangs.fence import PeerWord
from muster.domain.gangs.plan import Report
from muster.domain.ids import ExecutionId, NodeId
from tests.simulation.peers import Peers
from tests.simulation.truth import SimulatedNode
from tests.simulation.world import Life, Timer

ASK_WITHIN = 1.5
"""Seconds for which answers are waited for."""
TICK = 1e-4


class AgentFence:
    """Of one life of an agent."""

    def __init__(
        self,
        life: Life,
        node: SimulatedNode,
        ledger: Ledger,
        peers: Peers,
        fenced: Callable[[Fenced], None],
        fencing: type[Fencing] = Fencing,
    ) -> None:
        self._life = life
        self._node = node
        self._peers = peers
        self._fenced = fenced
        self._ledger = ledger
        self._fencing = fencing(ledger, life.clock.seconds, node.keeper.noted())
        self._alarm: Timer | None = None
        peers.listen(node.address, self)

    def contact(self, sent_at: float) -> None:
        """The coordinator has taken in what was sent then."""
        self._step(Contact(sent_at=sent_at))

    def disconnected(self) -> None:
        """The stream to the coordinator has ended."""
        self._step(Disconnected())

    def look(self) -> None:
        """The ledger has changed, or time has passed."""
        self._step(FenceTimePassed())

    def may_start(self, execution: ExecutionId) -> bool:
        """Asked just before user code is started; what is noted then holds for it."""
        self._note()
        return self._fencing.may_start(execution, self._now)

    def told(self, report: Report) -> Report:
        """As it goes to the coordinator."""
        return replace(report, no_permit_for=self._fencing.no_permit_for(report.execution, self._now))

    def hear_question(self, attempt: AttemptKey, answer: Callable[[PeerWord], None]) -> None:
        """A peer wants to know."""
        self._life.soon(lambda: answer(self._fencing.answer(attempt, self._now)))

    @property
    def _now(self) -> float:
        return self._life.clock.seconds

    def _step(self, event: FenceEvent) -> None:
        for action in self._fencing.step(event, self._now):
            match action:
                case AskPeers():
                    self._ask(action)
                case CutOff():
                    world, job = self._node.world, action.execution.partition("-")[0]
                    sandbox = self._node.sandboxes[action.execution]
                    sandbox.fenced = action.message
                    self._node.nature.fenced(self._node, sandbox)
                    world.tell(f"cuts off {action.execution}: {action.message}", self._node.name, job)
                    self._fenced(Fenced(execution=action.execution, grace=action.grace, message=action.message))
        self._note()
        self._set_alarm()

    def _note(self) -> None:
        self._node.keeper.note(self._fencing.deadlines())

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        due = self._fencing.wake_at()
        if due is not None:
            self._alarm = self._life.after(max(0.0, due - self._now) + TICK, self.look)

    def _ask(self, ask: AskPeers) -> None:
        """One round: it is over when all have answered, or after some time."""
        words: dict[NodeId, PeerWord | None] = {}
        over = False

        def end() -> None:
            nonlocal over
            if not over:
                over = True
                told = {node: word for node, word in words.items() if word is not None}
                self._step(PeersAnswered(attempt=ask.attempt, asked_at=ask.asked_at, words=told))

        def hear(node: NodeId, word: PeerWord | None) -> None:
            words.setdefault(node, word)
            if len(words) == len(ask.witnesses):
                self._life.after(0.0, end)

        for witness in ask.witnesses:
            answered, refused = partial(hear, witness.node), partial(hear, witness.node, None)
            self._peers.ask(self._node.name, witness.address, ask.attempt, answered, refused)
        self._life.after(ASK_WITHIN, end)
