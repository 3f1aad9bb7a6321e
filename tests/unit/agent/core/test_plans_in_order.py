"""Revisions count within one stream: what is older, or of another stream, is not built on."""

from agent.core.actions import Prepare
from agent.core.events import PlanReceived
from muster.domain.gangs.plan import Desired, Goal, Plan
from tests.unit.agent.core.ledger_builders import Agent, assignment, desired, execution

FIRST, SECOND = execution(0), execution(1)
BOTH = (desired(Goal.PREPARE, 0), desired(Goal.PREPARE, 1))


def test_an_older_whole_plan_that_comes_again_clears_nothing_away() -> None:
    agent = Agent()
    agent.step(PlanReceived(plan=Plan(revision=1, desired=BOTH[:1])))
    agent.step(PlanReceived(plan=Plan(revision=2, base=1, desired=BOTH[1:])))

    assert agent.step(PlanReceived(plan=Plan(revision=1, desired=BOTH[:1]))) == []
    assert agent.ledger.revision == 2


def test_a_new_stream_begins_with_a_whole_plan_whatever_its_revision() -> None:
    """A coordinator that was restarted counts from one again."""
    agent = Agent()
    agent.step(PlanReceived(plan=Plan(revision=7, desired=BOTH), stream=1))

    actions = agent.step(PlanReceived(plan=Plan(revision=1), stream=2))

    assert {action.execution for action in actions if not isinstance(action, Prepare)} == {FIRST, SECOND}  # type: ignore[union-attr]  # all others are of one execution
    assert agent.ledger.revision == 1


def test_a_change_of_a_plan_of_another_stream_is_not_applied() -> None:
    """The revisions are equal by chance; the whole plan of the new stream was lost."""
    agent = Agent()
    agent.step(PlanReceived(plan=Plan(revision=3), stream=1))
    line = Desired(execution=FIRST, goal=Goal.PREPARE, assignment=assignment(0))

    assert agent.step(PlanReceived(plan=Plan(revision=4, base=3, desired=(line,)), stream=2)) == []
    assert agent.step(PlanReceived(plan=Plan(revision=5, desired=(line,)), stream=2)) != []


def test_what_was_applied_is_told_by_stream() -> None:
    """Otherwise a coordinator would take another stream's revision for its own, and a lost plan for applied."""
    agent = Agent()
    agent.step(PlanReceived(plan=Plan(revision=3), stream=1))

    assert [agent.ledger.applied(stream) for stream in (1, 2)] == [3, 0]
