"""Executions that use more GPU memory than their portion: when that is told, and what becomes of them."""

from dataclasses import replace

import pytest

from agent.core.actions import Action, Halt, Tell
from agent.core.events import Armed, Exited, PortionOutgrown, Prepared, Started
from agent.core.watching.gpu_memory import CONTEXT_MEMORY, MOST_CONTEXTS, PORTION_PATIENCE, GpuMemoryUse, PortionWatch
from muster.domain.fleet.pool import PortionRule
from muster.domain.gangs.plan import Desired, Goal
from muster.domain.ids import GpuUuid
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.stopping.notice import StopReason
from tests.unit.agent.core.ledger_builders import MASTER, Agent, assignment, desired, execution, roster

ME, OTHER = execution(), execution(1)
GIB = 1 << 30
A, B = GpuUuid("GPU-a"), GpuUuid("GPU-b")
PROMISED = 20 * GIB
MESSAGE = "uses 31.0 GiB of the memory of GPU-a, and its portion is 20.0 GiB"


def use(gib: float, gpu: GpuUuid = A, processes: int = 1) -> GpuMemoryUse:
    return GpuMemoryUse(gpu=gpu, processes=processes, memory=int(gib * GIB))


def test_it_is_told_once_it_has_lasted() -> None:
    watch = PortionWatch()
    told = [watch.look(ME, [use(31)], PROMISED, seconds) for seconds in (0.0, 2.0, PORTION_PATIENCE - 0.1)]
    assert told == ["", "", ""]
    assert watch.look(ME, [use(31)], PROMISED, PORTION_PATIENCE) == MESSAGE


def test_time_begins_anew_once_it_keeps_to_its_portion() -> None:
    watch = PortionWatch()
    watch.look(ME, [use(31)], PROMISED, 0.0)
    watch.look(ME, [use(20)], PROMISED, 8.0)
    assert watch.look(ME, [use(31)], PROMISED, 12.0) == ""
    assert watch.look(ME, [use(31)], PROMISED, 12.0 + PORTION_PATIENCE) != ""


def test_each_execution_has_a_time_of_its_own_and_those_that_end_are_forgotten() -> None:
    watch = PortionWatch()
    watch.look(ME, [use(31)], PROMISED, 0.0)
    assert watch.look(OTHER, [use(31)], PROMISED, 11.0) == ""
    watch.keep([OTHER])
    assert watch.look(ME, [use(31)], PROMISED, 12.0) == ""


def test_of_several_gpus_each_has_its_portion() -> None:
    watch = PortionWatch()
    for seconds in (0.0, 11.0):
        assert watch.look(ME, [use(15, A), use(15, B)], PROMISED, seconds) == ""
    watch.look(ME, [use(1, A), use(31, B)], PROMISED, 12.0)
    assert watch.look(ME, [use(1, A), use(31, B)], PROMISED, 30.0) == MESSAGE.replace("GPU-a", "GPU-b")


@pytest.mark.parametrize(("processes", "contexts"), [(1, 1), (3, 3), (100, MOST_CONTEXTS)])
def test_what_contexts_take_is_no_excess(processes: int, contexts: int) -> None:
    most = PROMISED + contexts * CONTEXT_MEMORY
    assert not GpuMemoryUse(gpu=A, processes=processes, memory=most).is_over(PROMISED)
    assert GpuMemoryUse(gpu=A, processes=processes, memory=most + 1).is_over(PROMISED)


def running(enforce: PortionRule) -> Agent:
    """An agent whose only execution runs."""
    agent = Agent()
    agent.plan(Desired(execution=ME, goal=Goal.PREPARE, assignment=replace(assignment(), enforce=enforce)))
    agent.step(Prepared(execution=ME, address="10.0.0.1", ports=(MASTER,)))
    agent.plan(desired(Goal.ARM), rosters=(roster(),))
    agent.step(Armed(execution=ME))
    agent.plan(desired(Goal.RUN))
    agent.step(Started(execution=ME))
    return agent


def halts(actions: list[Action]) -> list[Halt]:
    return [action for action in actions if isinstance(action, Halt)]


def told(actions: list[Action]) -> list[str]:
    return [action.report.over_portion for action in actions if isinstance(action, Tell)]


def test_where_the_pool_says_nothing_it_is_told_once_and_goes_on() -> None:
    agent = running(PortionRule.TELL)
    first = agent.step(PortionOutgrown(execution=ME, message=MESSAGE))
    again = agent.step(PortionOutgrown(execution=ME, message=MESSAGE))

    assert (told(first), halts(first), again) == ([MESSAGE], [], [])
    [end] = [each for each in agent.step(Exited(execution=ME, exit=Exit(code=0))) if isinstance(each, Tell)]
    assert (end.report.failure, end.report.over_portion) == (None, MESSAGE)


def test_where_the_pool_says_stop_it_is_stopped_with_its_grace_and_has_failed() -> None:
    agent = running(PortionRule.STOP)
    [halt] = halts(agent.step(PortionOutgrown(execution=ME, message=MESSAGE)))
    [end] = [each for each in agent.step(Exited(execution=ME, exit=Exit(code=0))) if isinstance(each, Tell)]

    assert halt.grace == assignment().grace
    assert halt.notice is not None
    assert halt.notice.reason is StopReason.GPU_MEMORY
    assert end.report.failure == Failure(kind=FailureKind.GPU_MEMORY, message=MESSAGE, exit=Exit(code=0))
    assert FailureKind.GPU_MEMORY.user


def test_what_is_being_stopped_anyway_is_not_stopped_again() -> None:
    agent = running(PortionRule.STOP)
    agent.plan(desired(Goal.STOP))
    assert agent.step(PortionOutgrown(execution=ME, message=MESSAGE)) == []
