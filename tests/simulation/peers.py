"""What agents ask each other: one question, one answer, over paths of their own between any two nodes."""

from collections.abc import Callable, Iterator
from typing import Protocol

from muster.domain.gangs.fence import PeerWord
from muster.domain.ids import AttemptId, NodeId
from tests.simulation.network import Path
from tests.simulation.world import World

PORT = 7471
REFUSED_WITHIN = 0.01


class Respondent(Protocol):
    """An agent that listens for questions."""

    def hear_question(self, attempt: AttemptId, answer: Callable[[PeerWord], None]) -> None: ...


class Peers:
    """All agents' ears, and the paths between them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.chance("peers")
        self._listening: dict[str, Respondent] = {}
        self._names: dict[str, NodeId] = {}
        self._paths: dict[tuple[NodeId, NodeId], Path] = {}

    def join(self, node: NodeId, address: str) -> None:
        """A node has its place in the network."""
        self._names[_ear(address)] = node

    def listen(self, address: str, respondent: Respondent | None) -> None:
        """Take questions, or no more."""
        if respondent is None:
            self._listening.pop(_ear(address), None)
        else:
            self._listening[_ear(address)] = respondent

    def path(self, sender: NodeId, receiver: NodeId) -> Path:
        """One direction between two nodes."""
        if (sender, receiver) not in self._paths:
            self._paths[sender, receiver] = Path(self._world, self._world.chance(f"{sender} to {receiver}"))
        return self._paths[sender, receiver]

    def paths(self, some: set[NodeId]) -> Iterator[Path]:
        """All that lead from some nodes to the others or back."""
        for one in self._names.values():
            for other in self._names.values():
                if (one in some) != (other in some):
                    yield self.path(one, other)

    def ask(
        self,
        sender: NodeId,
        ear: str,
        attempt: AttemptId,
        answered: Callable[[PeerWord], None],
        refused: Callable[[], None],
    ) -> None:
        """Put a question on its way; the answer comes, or does not, or comes late."""
        receiver = self._names.get(ear)
        if receiver is None:
            self._world.after(REFUSED_WITHIN, refused)
            return
        there, back = self.path(sender, receiver), self.path(receiver, sender)

        def arrive() -> None:
            respondent = self._listening.get(ear)
            if respondent is None:
                _send(back, refused)
            else:
                respondent.hear_question(attempt, lambda word: _send(back, lambda: answered(word)))

        _send(there, arrive)


def _ear(address: str) -> str:
    return f"{address}:{PORT}"


def _send(path: Path, arrive: Callable[[], None]) -> None:
    """Let it arrive after its time on the way; a path that is cut keeps it until it is mended, or loses it."""

    def come() -> None:
        if path.open:
            arrive()
        elif path.chance.random() < 0.5:
            path.hold(come)

    harsh = path.harshness
    for _ in range(1 + (path.chance.random() < harsh.double)):
        if path.chance.random() >= harsh.lose:
            late = path.chance.expovariate(1.0) if path.chance.random() < harsh.delay else 0.0
            path.world.after(path.latency() + late, come)
