"""An agent's ledger and its fencing, driven second by second."""

from collections.abc import Mapping
from datetime import timedelta

from agent.core.actions import Action, Halt
from agent.core.events import Armed, Fenced, PlanReceived, Prepared, Started
from agent.core.fence import AskPeers, Contact, CutOff, FenceEvent, FenceTimePassed, Fencing, PeersAnswered
from agent.core.ledger import Ledger
from agent.core.terms import AttemptKey
from muster.domain.gangs.fence import Fence, PeerWord, Witness
from muster.domain.gangs.plan import Desired, Goal, Plan
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.jobs.disconnect import OnDisconnect
from tests.unit.agent.core.ledger_builders import JOB, MASTER, NOW, assignment, execution, roster

A, B = NodeId("a"), NodeId("b")
WITNESSES = (Witness(node=A, address="10.0.0.1:7"), Witness(node=B, address="10.0.0.2:7"))
ATTEMPT: AttemptKey = (JOB, 1)
ME = execution(0)

GANG = Fence(witnesses=WITNESSES, key=b"secret")
STOPPER = Fence(witnesses=WITNESSES, key=b"secret", on_disconnect=OnDisconnect.STOP)
ALONE = Fence(key=b"secret")

ALL_WITHOUT = {A: PeerWord.WITHOUT, B: PeerWord.WITHOUT}


class FencedAgent:
    """A ledger with fencing, which hears at once what it decides, as in the loop."""

    def __init__(self, fence: Fence = GANG, *, grace: float = 10.0, contact: float | None = 0.0) -> None:
        self.fence = fence
        self.grace = timedelta(seconds=grace)
        self.ledger = Ledger()
        self.fencing = Fencing(self.ledger, began=0.0)
        self.halts: list[tuple[float, Halt]] = []
        self.messages: list[str] = []
        if contact is not None:
            self.fencing.step(Contact(sent_at=contact), contact)

    def plan(self, goal: Goal, rank: int = 0) -> list[Action]:
        known = assignment(rank, fence=self.fence, grace=self.grace)
        line = Desired(execution=known.execution, goal=goal, assignment=known)
        revision = self.ledger.revision
        plan = Plan(revision=revision + 1, base=revision, desired=(line,), rosters=(roster(attempt=known.attempt),))
        return self.ledger.step(PlanReceived(plan=plan), NOW)

    def start(self, rank: int = 0) -> "FencedAgent":
        """Bring it to the point where its start is under way."""
        self.plan(Goal.RUN, rank)
        self.ledger.step(Prepared(execution=execution(rank), address="10.0.0.1", ports=(MASTER,)), NOW)
        self.ledger.step(Armed(execution=execution(rank)), NOW)
        return self

    def run(self, rank: int = 0) -> "FencedAgent":
        self.start(rank)
        self.ledger.step(Started(execution=execution(rank)), NOW)
        return self

    def step(self, event: FenceEvent, at: float) -> list[AskPeers | CutOff]:
        done = self.fencing.step(event, at)
        for each in done:
            if isinstance(each, CutOff):
                self.messages.append(each.message)
                fenced = Fenced(execution=each.execution, grace=each.grace, message=each.message)
                actions = self.ledger.step(fenced, NOW)
                self.halts += [(at, action) for action in actions if isinstance(action, Halt)]
        return done

    def pass_time(self, at: float) -> list[AskPeers | CutOff]:
        return self.step(FenceTimePassed(), at)

    def contact(self, sent_at: float, heard_at: float | None = None) -> list[AskPeers | CutOff]:
        return self.step(Contact(sent_at=sent_at), sent_at if heard_at is None else heard_at)

    def answers(self, asked_at: float, words: Mapping[NodeId, PeerWord], at: float | None = None) -> None:
        event = PeersAnswered(attempt=ATTEMPT, asked_at=asked_at, words=words)
        self.step(event, asked_at if at is None else at)

    def deadline(self, of: ExecutionId = ME) -> float | None:
        return self.fencing.deadlines().get(of)


def asks(done: list[AskPeers | CutOff]) -> list[AskPeers]:
    return [each for each in done if isinstance(each, AskPeers)]


def cuts(done: list[AskPeers | CutOff]) -> list[CutOff]:
    return [each for each in done if isinstance(each, CutOff)]
