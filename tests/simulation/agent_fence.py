"""What an agent's fence has done: questions to peers, and deadlines for the killer."""

from collections.abc import Callable
from functools import partial

from agent.core.actions import AskPeers, NoteDeadlines
from agent.core.events import PeersAnswered
from muster.domain.gangs.fence import PeerWord
from muster.domain.ids import AttemptId, NodeId
from tests.simulation.peers import Peers
from tests.simulation.truth import SimulatedNode
from tests.simulation.world import Life

ASK_WITHIN = 1.5
"""Seconds for which answers are waited for."""


class AgentFence:
    """The edge of fencing in one life of an agent."""

    def __init__(
        self,
        life: Life,
        node: SimulatedNode,
        peers: Peers,
        put: Callable[[PeersAnswered], None],
        answer: Callable[[AttemptId], PeerWord],
    ) -> None:
        self._life = life
        self._node = node
        self._peers = peers
        self._put = put
        self._answer = answer
        peers.listen(node.address, self)

    def note(self, action: NoteDeadlines) -> None:
        """Tell the killer."""
        self._node.killer.note(action.deadlines)

    def hear_question(self, attempt: AttemptId, answer: Callable[[PeerWord], None]) -> None:
        """A peer wants to know."""
        self._life.soon(lambda: answer(self._answer(attempt)))

    def ask(self, ask: AskPeers) -> None:
        """One round: it is over when all have answered, or after some time."""
        words: dict[NodeId, PeerWord | None] = {}
        over = False

        def end() -> None:
            nonlocal over
            if not over:
                over = True
                told = {node: word for node, word in words.items() if word is not None}
                self._put(PeersAnswered(attempt=ask.attempt, asked_at=ask.asked_at, words=told))

        def hear(node: NodeId, word: PeerWord | None) -> None:
            words.setdefault(node, word)
            if len(words) == len(ask.witnesses):
                self._life.after(0.0, end)

        for witness in ask.witnesses:
            answered, refused = partial(hear, witness.node), partial(hear, witness.node, None)
            self._peers.ask(self._node.name, witness.address, ask.attempt, answered, refused)
        self._life.after(ASK_WITHIN, end)
