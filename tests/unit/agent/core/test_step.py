"""One door into the agent's core: the ledger and the fence hear of each other, and nobody else sees to that."""

from datetime import timedelta

from agent.core.actions import AskPeers, Halt, LeavePeers, NoteDeadlines, Start, Tell
from agent.core.events import Armed, Began, Contact, Exited, FenceTimePassed, PlanReceived, Prepared, Recovered, Started
from agent.core.step import AgentState, Now, step
from agent.core.terms import Terms
from muster.domain.gangs.fence import PeerWord
from muster.domain.gangs.plan import Desired, Goal, Plan
from muster.domain.ids import AttemptId
from muster.domain.jobs.failure import Exit
from tests.unit.agent.core.fence_builders import ALL_WITHOUT, GANG, ME, STOPPER, FencedAgent, asks
from tests.unit.agent.core.ledger_builders import JOB, MASTER, NOW, assignment, roster

TERMS = Terms(job=JOB, attempt=1, grace=timedelta(seconds=10), fence=STOPPER)


def at(boot: float) -> Now:
    return Now(wall=NOW, boot=boot)


def armed() -> AgentState:
    """An agent in contact whose execution is told to run as soon as it is armed."""
    state = AgentState(began=0.0)
    step(state, Contact(sent_at=0.0), at(0.0))
    known = assignment(0, fence=STOPPER, grace=timedelta(seconds=10))
    line = Desired(execution=ME, goal=Goal.RUN, assignment=known)
    step(state, PlanReceived(plan=Plan(revision=1, desired=(line,), rosters=(roster(),))), at(1.0))
    step(state, Prepared(execution=ME, address="10.0.0.1", ports=(MASTER,)), at(2.0))
    return state


def test_a_deadline_is_given_out_before_the_start_that_it_is_for() -> None:
    """User code starts only when the killer knows by when it must be dead."""
    actions = step(armed(), Armed(execution=ME), at(3.0))
    told = [action for action in actions if not isinstance(action, Tell)]
    assert told == [NoteDeadlines(deadlines={ME: 81.0}), Start(execution=ME)]


def test_contact_puts_a_deadline_off_and_an_end_takes_it_back() -> None:
    state = armed()
    step(state, Armed(execution=ME), at(3.0))
    assert step(state, Contact(sent_at=10.0), at(10.5)) == [NoteDeadlines(deadlines={ME: 91.0})]
    step(state, Started(execution=ME), at(11.0))
    ended = step(state, Exited(execution=ME, exit=Exit(code=0)), at(20.0))
    assert NoteDeadlines(deadlines={}) in ended
    assert state.wake_at is None


def test_what_changes_nothing_of_the_fence_gives_no_deadlines_out() -> None:
    state = armed()
    step(state, Armed(execution=ME), at(3.0))
    assert step(state, Contact(sent_at=0.0), at(4.0)) == []
    assert step(state, FenceTimePassed(), at(5.0)) == []


def test_what_is_cut_off_is_stopped_at_once_and_says_why() -> None:
    agent = FencedAgent(STOPPER).run()
    [halt] = agent.pass_time(75.0)
    assert isinstance(halt, Halt)
    assert (halt.grace, "no word from the coordinator for 75 s" in halt.fenced) == (timedelta(seconds=6), True)


def test_an_order_to_stop_is_no_cut() -> None:
    agent = FencedAgent(STOPPER).run()
    [halt] = [action for action in agent.plan(Goal.STOP) if isinstance(action, Halt)]
    assert halt.fenced == ""


def test_nothing_is_cut_off_before_it_is_known_what_was_noted() -> None:
    """An agent that starts finds executions one by one; their deadlines come after the last."""
    state = AgentState(began=0.0)
    assert step(state, Recovered(execution=ME, started=True, terms=TERMS), at(500.0)) == []
    assert step(state, Began(noted={ME: 520.0}), at(501.0)) == [NoteDeadlines(deadlines={ME: 520.0})]
    assert step(state, FenceTimePassed(), at(502.0)) == []


def test_peers_are_left_alone_once_there_is_contact_again() -> None:
    agent = FencedAgent(GANG).run()
    assert agent.contact(1.0) == []
    assert len(asks(agent.pass_time(31.0))) == 1
    agent.answers(31.0, ALL_WITHOUT)
    assert agent.contact(33.0) == [LeavePeers()]
    assert agent.contact(34.0) == []


def test_an_agent_that_is_asked_before_it_is_lonely_itself_gives_no_permit() -> None:
    agent = FencedAgent(GANG).run()
    assert agent.word(AttemptId(JOB, 1), 10.0) is PeerWord.CONNECTED
    assert [type(action) for action in agent.pass_time(31.0)] == [AskPeers]
