"""Lines of a plan that cannot be read: their executions fail with the reason, and nothing else changes."""

from agent.core.actions import Action, Halt, Prepare, Remove, Tell
from agent.core.events import PlanReceived
from muster.domain.gangs.plan import Goal, Plan, Stage, Unreadable
from muster.domain.jobs.failure import Failure, FailureKind
from tests.unit.agent.core.ledger_builders import Agent, desired, execution

FIRST, SECOND = execution(0), execution(1)


def unreadable(rank: int, goal: Goal = Goal.PREPARE) -> Unreadable:
    return Unreadable(execution=execution(rank), goal=goal, reason="PlanRole.role is no role")


def take(agent: Agent, plan: Plan) -> list[Action]:
    return agent.step(PlanReceived(plan=plan))


def test_an_execution_whose_line_cannot_be_read_fails_with_the_reason_and_the_others_go_on() -> None:
    agent = Agent()

    actions = take(agent, Plan(revision=1, desired=(desired(Goal.PREPARE, 0),), unreadable=(unreadable(1),)))

    assert [action.assignment.execution for action in actions if isinstance(action, Prepare)] == [FIRST]
    told = {action.report.execution: action.report for action in actions if isinstance(action, Tell)}
    assert told[SECOND].stage is Stage.FAILED
    assert told[SECOND].failure == Failure(
        kind=FailureKind.RUNTIME, message="its agent cannot read what it is told: PlanRole.role is no role"
    )
    assert agent.ledger.revision == 1


def test_what_is_known_is_not_cleared_away_because_its_line_cannot_be_read() -> None:
    agent = Agent()
    take(agent, Plan(revision=1, desired=(desired(Goal.PREPARE, 0),)))

    assert take(agent, Plan(revision=2, unreadable=(unreadable(0),))) == []


def test_what_is_known_is_stopped_though_its_line_cannot_be_read() -> None:
    agent = Agent()
    take(agent, Plan(revision=1, desired=(desired(Goal.PREPARE, 0),)))

    actions = take(agent, Plan(revision=2, base=1, unreadable=(unreadable(0, Goal.STOP),)))

    assert [action.execution for action in actions if isinstance(action, Halt)] == [FIRST]


def test_one_that_has_failed_so_is_cleared_away_when_it_is_not_wanted_any_more() -> None:
    agent = Agent()
    take(agent, Plan(revision=1, unreadable=(unreadable(1),)))

    actions = take(agent, Plan(revision=2, base=1, removed=(SECOND,)))

    assert [action.execution for action in actions if isinstance(action, Remove)] == [SECOND]
