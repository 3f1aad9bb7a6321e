"""What counts as use of an execution, and what the coordinator is told of it."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from agent.core.actions import Tell
from agent.core.events import Armed, Began, Event, Exited, PlanReceived, Prepared, Recovered, Started, Used
from agent.core.step import AgentState, Now, step
from agent.core.watching.idle import UseSample, busiest, used_at
from muster.domain.gangs.plan import Desired, Goal, Plan, Stage
from muster.domain.ids import GpuUuid
from muster.domain.jobs.failure import Exit, FailureKind
from muster.domain.telemetry.sample import GpuUse
from tests.unit.agent.core.ledger_builders import NOW, assignment, execution, roster

LATER = NOW + timedelta(minutes=1)
LIMIT = timedelta(hours=2)
GPUS = (GpuUuid("a"), GpuUuid("b"))


def sample(at: datetime = LATER, **seen: object) -> UseSample:
    fields: dict[str, object] = {"at": at, "seconds": (at - NOW).total_seconds()}
    return UseSample(**{**fields, **seen})  # type: ignore[arg-type]  # a builder takes any field


def told(state: AgentState, *events: Event) -> list[Tell]:
    now = Now(wall=LATER, boot=60.0)
    return [action for event in events for action in step(state, event, now) if isinstance(action, Tell)]


def plan(goal: Goal, revision: int, **changes: Any) -> PlanReceived:
    line = Desired(execution=execution(), goal=goal, assignment=assignment(**changes) if goal is Goal.PREPARE else None)
    rosters = (roster(),) if goal is Goal.ARM else ()
    return PlanReceived(plan=Plan(revision=revision, base=revision - 1, desired=(line,), rosters=rosters))


def running(**changes: Any) -> AgentState:
    """An agent with one execution that runs."""
    state = AgentState(0.0)
    told(state, Began(noted={}), plan(Goal.PREPARE, 1, **changes))
    told(state, Prepared(execution=execution(), address="10.0.0.1", ports=()), plan(Goal.ARM, 2))
    told(state, Armed(execution=execution()), plan(Goal.RUN, 3), Started(execution=execution()))
    return state


@pytest.mark.parametrize(("percent", "used"), [(0, None), (2, None), (3, LATER), (100, LATER)])
def test_a_gpu_above_two_percent_is_use(percent: int, used: datetime | None) -> None:
    assert used_at(None, sample(gpu_percent=percent)) == used
    assert used_at(sample(NOW), sample(gpu_percent=percent)) == used


@pytest.mark.parametrize(("seconds", "used"), [(0.0, None), (3.0, None), (3.1, LATER), (500.0, LATER), (-20.0, None)])
def test_a_cpu_above_five_percent_is_use_where_there_is_no_gpu(seconds: float, used: datetime | None) -> None:
    assert used_at(sample(NOW, cpu_seconds=100.0), sample(cpu_seconds=100.0 + seconds)) == used
    assert used_at(sample(NOW, cpu_seconds=100.0), sample(gpu_percent=0, cpu_seconds=100.0 + seconds)) is None


def test_of_the_first_sample_and_of_what_is_not_known_the_cpu_says_nothing() -> None:
    assert used_at(None, sample(cpu_seconds=500.0)) is None
    assert used_at(sample(NOW), sample(cpu_seconds=500.0)) is None
    assert used_at(sample(NOW, cpu_seconds=0.0), sample()) is None
    assert used_at(sample(cpu_seconds=0.0), sample(cpu_seconds=500.0)) is None


def test_bytes_of_who_is_attached_are_use_once() -> None:
    at = NOW + timedelta(seconds=20)
    first = sample(NOW, attached_at=at)
    assert used_at(None, first) == at
    assert used_at(first, sample(attached_at=at)) is None
    assert used_at(first, sample(attached_at=LATER)) == LATER
    assert used_at(first, sample(attached_at=at, gpu_percent=50)) == LATER


@pytest.mark.parametrize(
    ("percents", "most"),
    [
        ({}, None),
        ({"a": 0}, None),
        ({"a": 90}, 90),
        ({"a": 1, "b": 2}, 2),
        ({"a": 0, "b": 80, "c": 99}, 80),
        ({"c": 9}, None),
    ],
)
def test_the_busiest_of_its_own_gpus_counts_unless_one_does_not_tell(
    percents: dict[str, int], most: int | None
) -> None:
    assert busiest(GPUS, {GpuUuid(name): GpuUse(busy=percent / 100) for name, percent in percents.items()}) == most
    assert busiest((), {GpuUuid("a"): GpuUse(busy=0.9)}) is None


def limit(state: AgentState) -> timedelta | None:
    """How long the execution may go unused, as far as somebody wants to hear of it."""
    local = state.ledger.get(execution())
    assert local is not None
    return local.idle_limit


def test_only_what_runs_and_has_a_limit_is_watched() -> None:
    limited = running(idle=LIMIT)
    assert limit(limited) == LIMIT
    assert limit(running()) is None
    told(limited, Exited(execution=execution(), exit=Exit(code=0)))
    assert limit(limited) is None


def test_what_an_agent_finds_at_its_start_is_watched_once_the_coordinator_has_told_its_limit() -> None:
    state = AgentState(0.0)
    told(state, Recovered(execution=execution(), started=True), Began(noted={}))
    assert limit(state) is None

    line = Desired(execution=execution(), goal=Goal.RUN, assignment=assignment(idle=LIMIT))
    told(state, PlanReceived(plan=Plan(revision=1, desired=(line,))))
    assert limit(state) == LIMIT


def test_use_is_reported_at_once_and_again_with_everything_that_follows() -> None:
    state = running(idle=LIMIT)
    [news] = told(state, Used(execution=execution(), at=LATER))
    assert (news.report.stage, news.report.used_at) == (Stage.RUNNING, LATER)
    assert [report.used_at for report in state.reports(70.0)] == [LATER]
    [end] = told(state, Exited(execution=execution(), exit=Exit(code=0)))
    assert (end.report.stage, end.report.used_at) == (Stage.EXITED, LATER)


def test_use_of_what_does_not_run_any_more_is_not_told() -> None:
    state = running(idle=LIMIT)
    told(state, Exited(execution=execution(), exit=Exit(code=0)))
    assert told(state, Used(execution=execution(), at=LATER)) == []
    assert told(AgentState(0.0), Used(execution=execution(), at=LATER)) == []


def test_an_end_in_the_setup_is_a_failure_of_its_own_kind_unless_memory_ran_out() -> None:
    end = Exited(execution=execution(), exit=Exit(code=3), in_setup=True)
    [news] = told(running(), end)
    assert news.report.failure is not None
    assert (news.report.failure.kind, news.report.failure.message) == (
        FailureKind.SETUP,
        "its setup (interactive.setup) ended with exit code 3",
    )
    [news] = told(running(), replace(end, exit=Exit(code=137, out_of_memory=True)))
    assert news.report.failure is not None
    assert news.report.failure.kind is FailureKind.OUT_OF_MEMORY
