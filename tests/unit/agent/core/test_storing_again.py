"""An agent that is to store outputs again, whether or not it knows the execution any more."""

from dataclasses import replace

from agent.core.actions import Action, Remove, StoreAgain, Tell
from agent.core.events import Exited, LogCompleted, OutputsSeen, Removed
from muster.domain.data.outputs import STORING_OUTPUTS, ExecutionOutputs, OutputsStage
from muster.domain.gangs.plan import Desired, Goal, Report, Stage
from muster.domain.ids import GpuUuid
from muster.domain.jobs.failure import Exit
from tests.unit.agent.core.ledger_builders import Agent, assignment, execution, running

ME = execution()
ON_NODE = ExecutionOutputs(stage=OutputsStage.ON_NODE, why="the fleet has no depot")
STORED = ExecutionOutputs(stage=OutputsStage.STORED, tree="ab" * 32, size=90, files=1, bytes=7)


def wanted(times: int = 1) -> Desired:
    return Desired(execution=ME, goal=Goal.STOP, assignment=assignment(gpus=(GpuUuid("gpu"),)), store_again=times)


def order(times: int = 1) -> StoreAgain:
    return StoreAgain(execution=ME, retries=times, owner_counts=True)


def told(actions: list[Action]) -> list[Report]:
    return [action.report for action in actions if isinstance(action, Tell)]


def ended() -> Agent:
    """An agent that could not store what an execution has left."""
    agent = running()
    agent.step(OutputsSeen(execution=ME, outputs=STORING_OUTPUTS))
    agent.step(Exited(execution=ME, exit=Exit(code=0)))
    agent.step(LogCompleted(execution=ME))
    agent.step(OutputsSeen(execution=ME, outputs=ON_NODE))
    return agent


def test_an_execution_that_is_not_known_any_more_is_stored_and_holds_nothing() -> None:
    agent = Agent()
    actions = agent.plan(wanted())

    assert [action for action in actions if not isinstance(action, Tell)] == [order()]
    [report] = told(actions)
    assert (report.stage, report.outputs) == (Stage.STOPPED, replace(STORING_OUTPUTS, retries=1))
    assert (agent.ledger.assigned(), list(agent.ledger.live())) == (frozenset(), [])


def test_what_came_of_it_is_told_until_it_is_wanted_no_more() -> None:
    agent = Agent()
    agent.plan(wanted())
    [report] = told(agent.step(OutputsSeen(execution=ME, outputs=replace(STORED, retries=1))))
    assert report.outputs == replace(STORED, retries=1)
    assert agent.whole_plan(wanted()) == []

    assert agent.plan(removed=(ME,)) == [Remove(execution=ME)]
    agent.step(Removed(execution=ME))
    assert agent.ledger.get(ME) is None


def test_each_further_time_is_an_order_of_its_own() -> None:
    agent = Agent()
    agent.plan(wanted())
    assert agent.plan(wanted(2)) == []
    actions = agent.step(OutputsSeen(execution=ME, outputs=replace(ON_NODE, retries=1)))

    assert order(2) in actions


def test_an_execution_that_is_still_here_is_stored_where_it_lies() -> None:
    agent = ended()
    actions = agent.plan(wanted())

    assert order() in actions
    [report] = told(actions)
    assert (report.stage, report.exit) == (Stage.EXITED, Exit(code=0))


def test_one_that_is_just_being_cleared_away_is_stored_once_it_is() -> None:
    agent = ended()
    agent.plan(removed=(ME,))
    assert agent.plan(wanted()) == []

    assert order() in agent.step(Removed(execution=ME))
