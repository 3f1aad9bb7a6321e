"""An agent whose fence is driven second by second."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from agent.core.actions import Action, AnswerPeer, AskPeers, Halt, NoteDeadlines
from agent.core.events import (
    Armed,
    Contact,
    Event,
    FenceEvent,
    FenceTimePassed,
    PeerAsked,
    PeersAnswered,
    PlanReceived,
    Prepared,
    Started,
)
from agent.core.step import AgentState, Now, step
from muster.domain.gangs.fence import Fence, PeerWord, Witness
from muster.domain.gangs.plan import Desired, Goal, Plan
from muster.domain.ids import AttemptId, ExecutionId, NodeId
from muster.domain.jobs.disconnect import OnDisconnect
from tests.unit.agent.core.ledger_builders import JOB, MASTER, NOW, assignment, execution, roster

A, B = NodeId("a"), NodeId("b")
WITNESSES = (Witness(node=A, address="10.0.0.1:7"), Witness(node=B, address="10.0.0.2:7"))
ATTEMPT: AttemptId = AttemptId(JOB, 1)
ME = execution(0)

GANG = Fence(witnesses=WITNESSES, key=b"secret")
STOPPER = Fence(witnesses=WITNESSES, key=b"secret", on_disconnect=OnDisconnect.STOP)
ALONE = Fence(key=b"secret")

ALL_WITHOUT = {A: PeerWord.WITHOUT, B: PeerWord.WITHOUT}


class FencedAgent:
    """The core of an agent, with the time on its clock of fencing."""

    def __init__(self, fence: Fence = GANG, *, grace: float = 10.0, contact: float | None = 0.0) -> None:
        self.fence = fence
        self.grace = timedelta(seconds=grace)
        self.state = AgentState(began=0.0)
        self.ledger, self.fencing = self.state.ledger, self.state.fencing
        self.at = 0.0
        self.halts: list[tuple[float, Halt]] = []
        if contact is not None:
            self.contact(contact)

    def take(self, event: Event) -> list[Action]:
        """Something happens now; what is to be done, but for noting deadlines."""
        done = step(self.state, event, Now(wall=NOW, boot=self.at))
        self.halts += [(self.at, action) for action in cuts(done)]
        return [action for action in done if not isinstance(action, NoteDeadlines)]

    def plan(self, goal: Goal, rank: int = 0) -> list[Action]:
        known = assignment(rank, fence=self.fence, grace=self.grace)
        line = Desired(execution=known.execution, goal=goal, assignment=known)
        revision = self.ledger.revision
        plan = Plan(revision=revision + 1, base=revision, desired=(line,), rosters=(roster(attempt=known.attempt),))
        return self.take(PlanReceived(plan=plan))

    def start(self, rank: int = 0) -> "FencedAgent":
        """Bring it to the point where its start is under way."""
        self.plan(Goal.RUN, rank)
        self.take(Prepared(execution=execution(rank), address="10.0.0.1", ports=(MASTER,)))
        self.take(Armed(execution=execution(rank)))
        return self

    def run(self, rank: int = 0) -> "FencedAgent":
        self.start(rank)
        self.take(Started(execution=execution(rank)))
        return self

    def step(self, event: FenceEvent, at: float) -> list[Action]:
        self.at = at
        return self.take(event)

    def pass_time(self, at: float) -> list[Action]:
        return self.step(FenceTimePassed(), at)

    def contact(self, sent_at: float, heard_at: float | None = None) -> list[Action]:
        return self.step(Contact(sent_at=sent_at), sent_at if heard_at is None else heard_at)

    def answers(self, asked_at: float, words: Mapping[NodeId, PeerWord], at: float | None = None) -> None:
        event = PeersAnswered(attempt=ATTEMPT, asked_at=asked_at, words=words)
        self.step(event, asked_at if at is None else at)

    def word(self, attempt: AttemptId, at: float) -> PeerWord:
        """What a peer hears then."""
        [given] = step(self.state, PeerAsked(attempt=attempt), Now(wall=NOW, boot=at))
        assert isinstance(given, AnswerPeer)
        return given.word

    def deadline(self, of: ExecutionId = ME) -> float | None:
        return self.fencing.deadlines().get(of)

    @property
    def messages(self) -> list[str]:
        """Why executions were cut off."""
        return [halt.fenced for _, halt in self.halts]


def asks(done: Sequence[Action]) -> list[AskPeers]:
    return [each for each in done if isinstance(each, AskPeers)]


def cuts(done: Sequence[Action]) -> list[Halt]:
    """Orders to stop what may not run any longer."""
    return [each for each in done if isinstance(each, Halt) and each.fenced]
