"""What an agent tells of how long the GPUs of an execution were busy."""

import pytest

from agent.core.actions import Action, Tell
from agent.core.events import Armed, Exited, GpusBusy, Prepared, Recovered, Started
from muster.domain.gangs.plan import Desired, Goal
from muster.domain.jobs.failure import Exit
from tests.unit.agent.core.ledger_builders import MASTER, Agent, assignment, desired, execution, roster

ME = execution()


@pytest.fixture
def agent() -> Agent:
    """An agent whose only execution runs."""
    agent = Agent()
    agent.plan(Desired(execution=ME, goal=Goal.PREPARE, assignment=assignment()))
    agent.step(Prepared(execution=ME, address="10.0.0.1", ports=(MASTER,)))
    agent.plan(desired(Goal.ARM), rosters=(roster(),))
    agent.step(Armed(execution=ME))
    agent.plan(desired(Goal.RUN))
    agent.step(Started(execution=ME))
    return agent


def told(actions: list[Action]) -> list[int | None]:
    return [action.report.gpu_busy_ms for action in actions if isinstance(action, Tell)]


def test_it_is_reported_and_stays_so_to_the_end(agent: Agent) -> None:
    assert told(agent.step(GpusBusy(execution=ME, milliseconds=0))) == [0]
    assert told(agent.step(GpusBusy(execution=ME, milliseconds=4000))) == [4000]
    assert told(agent.step(Exited(execution=ME, exit=Exit(code=0)))) == [4000]


def test_it_never_goes_back_and_ends_with_the_execution(agent: Agent) -> None:
    agent.step(GpusBusy(execution=ME, milliseconds=4000))
    assert told(agent.step(GpusBusy(execution=ME, milliseconds=3000))) == []
    agent.step(Exited(execution=ME, exit=Exit(code=0)))
    assert told(agent.step(GpusBusy(execution=ME, milliseconds=9000))) == []


def test_what_gpus_do_not_tell_is_not_reported(agent: Agent) -> None:
    assert told(agent.step(Exited(execution=ME, exit=Exit(code=0)))) == [None]


def test_the_next_agent_goes_on_with_what_was_noted() -> None:
    agent = Agent()
    agent.step(Recovered(execution=ME, started=True, gpu_busy_ms=7000))
    assert told(agent.step(Exited(execution=ME, exit=Exit(code=0)))) == [7000]
