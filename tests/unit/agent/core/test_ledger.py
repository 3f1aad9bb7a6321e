"""The agent brings an execution exactly as far as the plan wants it, whatever happens in which order."""

from datetime import timedelta

import pytest

from agent.core.actions import Action, Arm, Halt, Prepare, Remove, Start, Tell
from agent.core.events import (
    ActionFailed,
    Armed,
    Exited,
    Halted,
    LogCompleted,
    PlanReceived,
    Prepared,
    Progressed,
    Recovered,
    Removed,
    Started,
)
from agent.core.local import MOVES, LocalExecution, LocalState, Move, WantedExecution, after
from agent.core.observed import exit_failure
from muster.domain.errors import IllegalTransitionError
from muster.domain.gangs.plan import Desired, Goal, Plan, Report, Stage
from muster.domain.jobs.failure import Exit, FailureKind
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from tests.unit.agent.core.ledger_builders import MASTER, NOW, Agent, assignment, desired, execution, roster

ME = execution()


def orders(actions: list[Action]) -> list[Action]:
    return [action for action in actions if not isinstance(action, Tell)]


def told(actions: list[Action]) -> list[Report]:
    return [action.report for action in actions if isinstance(action, Tell)]


@pytest.fixture
def agent() -> Agent:
    return Agent()


def prepared(agent: Agent) -> list[Action]:
    agent.plan(desired(Goal.PREPARE))
    return agent.step(Prepared(execution=ME, address="10.0.0.1", ports=(MASTER,)))


def armed(agent: Agent) -> list[Action]:
    prepared(agent)
    agent.plan(desired(Goal.ARM), rosters=(roster(),))
    return agent.step(Armed(execution=ME))


def running(agent: Agent) -> list[Action]:
    armed(agent)
    agent.plan(desired(Goal.RUN))
    return agent.step(Started(execution=ME))


def test_a_new_execution_is_prepared_at_once(agent: Agent) -> None:
    actions = agent.plan(desired(Goal.PREPARE))
    assert orders(actions) == [Prepare(assignment=assignment())]
    assert [report.stage for report in told(actions)] == [Stage.PREPARING]


def test_a_prepared_execution_tells_its_address_and_waits(agent: Agent) -> None:
    actions = prepared(agent)
    assert orders(actions) == []
    assert told(actions) == [
        Report(execution=ME, stage=Stage.PREPARED, at=NOW, address="10.0.0.1", ports=(MASTER,)),
    ]


def test_it_is_armed_with_the_roster_of_its_attempt(agent: Agent) -> None:
    prepared(agent)
    assert orders(agent.plan(desired(Goal.ARM), rosters=(roster(),))) == [Arm(assignment=assignment(), roster=roster())]


def test_it_is_not_started_before_it_is_told_to(agent: Agent) -> None:
    actions = armed(agent)
    assert orders(actions) == []
    assert [report.stage for report in told(actions)] == [Stage.ARMED]
    assert orders(agent.plan(desired(Goal.RUN))) == [Start(execution=ME)]


def test_an_order_to_run_that_comes_early_is_carried_out_step_by_step(agent: Agent) -> None:
    line = Desired(execution=ME, goal=Goal.RUN, assignment=assignment())
    assert orders(agent.plan(line, rosters=(roster(),))) == [Prepare(assignment=assignment())]
    arm = agent.step(Prepared(execution=ME, address="10.0.0.1", ports=(MASTER,)))
    assert orders(arm) == [Arm(assignment=assignment(), roster=roster())]
    assert orders(agent.step(Armed(execution=ME))) == [Start(execution=ME)]


def test_the_same_plan_again_orders_nothing_twice(agent: Agent) -> None:
    running(agent)
    line = Desired(execution=ME, goal=Goal.RUN, assignment=assignment())
    assert agent.whole_plan(line, rosters=(roster(),)) == []


def test_a_change_of_a_plan_that_was_missed_is_not_applied(agent: Agent) -> None:
    late = Plan(revision=7, base=6, desired=(desired(Goal.PREPARE),))
    assert agent.step(PlanReceived(plan=late)) == []
    assert agent.ledger.revision == 0


def test_a_goal_never_falls(agent: Agent) -> None:
    running(agent)
    assert orders(agent.plan(desired(Goal.PREPARE))) == []


def test_a_preparation_is_interrupted_by_an_order_to_stop(agent: Agent) -> None:
    agent.plan(desired(Goal.PREPARE))
    assert orders(agent.plan(desired(Goal.STOP))) == [Halt(execution=ME, grace=timedelta(seconds=10))]
    assert [report.stage for report in told(agent.step(Halted(execution=ME)))] == [Stage.STOPPED]


def test_a_preparation_that_ends_while_it_is_being_stopped_changes_nothing(agent: Agent) -> None:
    agent.plan(desired(Goal.PREPARE))
    agent.plan(desired(Goal.STOP))
    assert agent.step(Prepared(execution=ME, address="10.0.0.1", ports=())) == []
    assert [report.stage for report in told(agent.step(Halted(execution=ME)))] == [Stage.STOPPED]


def test_arming_is_finished_before_it_is_stopped(agent: Agent) -> None:
    prepared(agent)
    agent.plan(desired(Goal.ARM), rosters=(roster(),))
    assert orders(agent.plan(desired(Goal.STOP))) == []
    assert orders(agent.step(Armed(execution=ME))) == [Halt(execution=ME, grace=timedelta(seconds=10))]


def test_a_start_under_way_is_finished_before_it_is_stopped(agent: Agent) -> None:
    armed(agent)
    agent.plan(desired(Goal.RUN))
    assert orders(agent.plan(desired(Goal.STOP))) == []
    assert [type(order) for order in orders(agent.step(Started(execution=ME)))] == [Halt]


def test_a_stopped_execution_that_ran_tells_its_exit_code(agent: Agent) -> None:
    running(agent)
    agent.plan(desired(Goal.STOP))
    actions = agent.step(Exited(execution=ME, exit=Exit(code=143)))
    assert [(report.stage, report.exit) for report in told(actions)] == [(Stage.EXITED, Exit(code=143))]
    assert agent.step(Halted(execution=ME)) == []


def test_a_failed_preparation_tells_why(agent: Agent) -> None:
    agent.plan(desired(Goal.PREPARE))
    actions = agent.step(ActionFailed(execution=ME, kind=FailureKind.IMAGE, message="no such image"))
    [report] = told(actions)
    assert report.stage is Stage.FAILED
    assert report.failure is not None
    assert (report.failure.kind, report.failure.message) == (FailureKind.IMAGE, "no such image")


def test_a_failure_while_it_is_being_stopped_counts_as_stopped(agent: Agent) -> None:
    agent.plan(desired(Goal.PREPARE))
    agent.plan(desired(Goal.STOP))
    actions = agent.step(ActionFailed(execution=ME, kind=FailureKind.RUNTIME, message="cancelled"))
    assert [report.stage for report in told(actions)] == [Stage.STOPPED]


def test_user_code_that_its_runtime_lost_has_failed(agent: Agent) -> None:
    running(agent)
    [report] = told(agent.step(ActionFailed(execution=ME, kind=FailureKind.RUNTIME, message="Docker was stopped")))
    assert report.stage is Stage.FAILED
    assert report.failure is not None
    assert report.failure.message == "Docker was stopped"


def test_the_first_end_is_the_one_that_counts(agent: Agent) -> None:
    running(agent)
    agent.plan(desired(Goal.STOP))
    agent.step(ActionFailed(execution=ME, kind=FailureKind.RUNTIME, message="cannot be stopped"))
    assert agent.step(ActionFailed(execution=ME, kind=FailureKind.RUNTIME, message="Docker was stopped")) == []
    assert agent.step(Exited(execution=ME, exit=Exit(code=0))) == []
    assert [report.stage for report in agent.ledger.reports()] == [Stage.FAILED]


def test_progress_is_told_once(agent: Agent) -> None:
    agent.plan(desired(Goal.PREPARE))
    progress = Progressed(execution=ME, detail="pulling 41 %")
    assert [report.detail for report in told(agent.step(progress))] == ["pulling 41 %"]
    assert agent.step(progress) == []


def test_a_failed_exit_carries_the_last_lines(agent: Agent) -> None:
    running(agent)
    [report] = told(agent.step(Exited(execution=ME, exit=Exit(code=3), log_tail=("boo",))))
    assert report.failure is not None
    assert report.failure.log_tail == ("boo",)


def test_an_execution_is_cleared_away_only_when_it_is_not_wanted_any_more(agent: Agent) -> None:
    running(agent)
    assert orders(agent.step(Exited(execution=ME, exit=Exit(code=0)))) == []
    [report] = told(agent.step(LogCompleted(execution=ME)))
    assert report.log_complete
    assert orders(agent.plan(removed=(ME,))) == [Remove(execution=ME)]
    assert agent.step(Removed(execution=ME)) == []
    assert agent.ledger.reports() == ()


def test_a_running_execution_that_the_whole_plan_does_not_list_is_stopped_and_removed(agent: Agent) -> None:
    running(agent)
    assert [type(order) for order in orders(agent.whole_plan())] == [Halt]
    actions = agent.step(Exited(execution=ME, exit=Exit(code=143)))
    assert [report.stage for report in told(actions)] == [Stage.EXITED]
    assert orders(actions) == [Remove(execution=ME)]


def test_a_recovered_execution_that_runs_is_reported_as_running(agent: Agent) -> None:
    agent.step(Recovered(execution=ME, started=True))
    assert [report.stage for report in agent.ledger.reports()] == [Stage.RUNNING]


def test_a_recovered_execution_that_never_started_is_reported_as_stopped(agent: Agent) -> None:
    agent.step(Recovered(execution=ME, started=False))
    assert [report.stage for report in agent.ledger.reports()] == [Stage.STOPPED]


def test_news_of_an_unknown_execution_is_nobodys(agent: Agent) -> None:
    assert agent.step(Exited(execution=ME, exit=Exit(code=0))) == []


def test_its_gpus_are_assigned_until_it_is_removed(agent: Agent) -> None:
    line = Desired(execution=ME, goal=Goal.PREPARE, assignment=assignment(gpus=("GPU-1",)))
    agent.plan(line)
    assert agent.ledger.assigned() == {"GPU-1"}
    agent.plan(removed=(ME,))
    agent.step(Halted(execution=ME))
    agent.step(Removed(execution=ME))
    assert agent.ledger.assigned() == frozenset()


def test_a_move_that_is_not_in_the_table_names_execution_phase_and_move() -> None:
    local = LocalExecution(execution=ME, wanted=WantedExecution(goal=Goal.RUN), since=NOW, phase=LocalState.EXITED)
    with pytest.raises(IllegalTransitionError, match=r"execution j-1-0 is exited; the trigger start"):
        after(local, Move.START)


def test_user_code_starts_only_out_of_the_armed_phase() -> None:
    assert [phase for (phase, move) in MOVES if move is Move.START] == [LocalState.ARMED]


@pytest.mark.parametrize(
    ("end", "kind", "message"),
    [
        (Exit(code=3), FailureKind.EXIT_CODE, "ended with exit code 3"),
        (Exit(code=127), FailureKind.EXIT_CODE, "ended with exit code 127 (a shell's word for: command not found)"),
        (Exit(code=139), FailureKind.SIGNAL, "was killed by SIGSEGV"),
        (Exit(code=137, out_of_memory=True), FailureKind.OUT_OF_MEMORY, "ran out of memory and was killed"),
    ],
)
def test_a_bad_end_is_put_into_words(end: Exit, kind: FailureKind, message: str) -> None:
    failure = exit_failure(end, ())
    assert failure is not None
    assert (failure.kind, failure.message) == (kind, message)


@pytest.mark.parametrize(
    ("rank", "counted"), [(0, Exit(code=0)), (1, Exit(code=0, out_of_memory=True))], ids=["its own program", "waits"]
)
def test_a_lack_of_memory_counts_after_a_good_end_where_the_main_program_only_waits(
    agent: Agent, rank: int, counted: Exit
) -> None:
    me = execution(rank)
    mpi = assignment(rank, framework=Framework(name=FrameworkName.MPI))
    agent.plan(Desired(execution=me, goal=Goal.PREPARE, assignment=mpi))
    agent.step(Prepared(execution=me, address=f"10.0.0.{rank + 1}", ports=(MASTER,)))
    agent.plan(desired(Goal.ARM, rank), rosters=(roster(),))
    agent.step(Armed(execution=me))
    agent.plan(desired(Goal.RUN, rank))
    agent.step(Started(execution=me))
    [report] = told(agent.step(Exited(execution=me, exit=Exit(code=0, out_of_memory=True), log_tail=())))
    assert report.exit == counted


def test_a_good_end_is_no_failure() -> None:
    assert exit_failure(Exit(code=0), ()) is None
