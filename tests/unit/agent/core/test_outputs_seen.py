"""What an agent tells of outputs: nothing before the end, then both at once, and later what became of them."""

from agent.core.actions import Action, Tell
from agent.core.events import Exited, LogCompleted, OutputsSeen
from muster.domain.data.outputs import STORING_OUTPUTS, ExecutionOutputs, OutputsStage
from muster.domain.gangs.plan import Report, Stage
from muster.domain.jobs.failure import Exit
from tests.unit.agent.core.ledger_builders import execution, running

ME = execution()
STORED = ExecutionOutputs(stage=OutputsStage.STORED, tree="ab" * 32, size=90, files=1, bytes=7)


def told(actions: list[Action]) -> list[Report]:
    return [action.report for action in actions if isinstance(action, Tell)]


def test_outputs_are_told_with_the_end_and_not_before() -> None:
    agent = running()

    assert agent.step(OutputsSeen(execution=ME, outputs=STORING_OUTPUTS)) == []
    assert [each.outputs for each in agent.ledger.reports()] == [None]
    [report] = told(agent.step(Exited(execution=ME, exit=Exit(code=3))))
    assert (report.stage, report.outputs) == (Stage.EXITED, STORING_OUTPUTS)


def test_what_became_of_them_is_told_after_the_end() -> None:
    agent = running()
    agent.step(OutputsSeen(execution=ME, outputs=STORING_OUTPUTS))
    agent.step(Exited(execution=ME, exit=Exit(code=0)))

    [report] = told(agent.step(OutputsSeen(execution=ME, outputs=STORED)))
    assert report.outputs == STORED
    [report] = told(agent.step(LogCompleted(execution=ME)))
    assert report.outputs == STORED


def test_an_end_without_outputs_tells_none() -> None:
    agent = running()
    [report] = told(agent.step(Exited(execution=ME, exit=Exit(code=0))))

    assert report.outputs is None
