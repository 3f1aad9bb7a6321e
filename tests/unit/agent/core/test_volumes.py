"""What becomes of an execution whose volume has grown beyond its size."""

import pytest

from agent.core.actions import Action, Halt, Tell
from agent.core.events import Armed, Exited, Prepared, Started, VolumeOutgrown
from muster.domain.gangs.plan import Desired, Goal
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.stopping.notice import StopReason
from tests.unit.agent.core.ledger_builders import MASTER, Agent, assignment, desired, execution, roster

ME = execution()
MESSAGE = "the volume scratch holds 12.0 GiB; its size is 10.0 GiB (volumes.scratch.size)"


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


def halts(actions: list[Action]) -> list[Halt]:
    return [action for action in actions if isinstance(action, Halt)]


def test_it_is_stopped_with_its_own_grace_and_told_why(agent: Agent) -> None:
    [halt] = halts(agent.step(VolumeOutgrown(execution=ME, message=MESSAGE)))

    assert halt.grace == assignment().grace
    assert halt.notice is not None
    assert halt.notice.reason is StopReason.VOLUME_FULL
    assert not halt.fenced  # the next agent is not to take it for one that was cut off


def test_its_end_is_a_failure_of_the_job_that_names_the_volume(agent: Agent) -> None:
    agent.step(VolumeOutgrown(execution=ME, message=MESSAGE))
    [told] = [each for each in agent.step(Exited(execution=ME, exit=Exit(code=0))) if isinstance(each, Tell)]

    assert told.report.failure == Failure(kind=FailureKind.VOLUME_FULL, message=MESSAGE, exit=Exit(code=0))
    assert FailureKind.VOLUME_FULL.user


def test_what_is_being_stopped_anyway_is_not_stopped_again(agent: Agent) -> None:
    agent.plan(desired(Goal.STOP))

    assert halts(agent.step(VolumeOutgrown(execution=ME, message=MESSAGE))) == []
