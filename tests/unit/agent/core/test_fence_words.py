"""What an agent tells its peers about an attempt, and what it tells the coordinator about what it told them."""

from datetime import timedelta

import pytest

from agent.core.events import ActionFailed, Began, Contact, Disconnected, Exited, Fenced, Recovered, Removed
from agent.core.past import Past
from agent.core.terms import Terms
from muster.domain.gangs.fence import PeerWord
from muster.domain.gangs.plan import Goal
from muster.domain.ids import AttemptId, ExecutionId
from muster.domain.jobs.failure import Exit, FailureKind
from tests.unit.agent.core.fence_builders import ATTEMPT, GANG, ME, STOPPER, FencedAgent, asks, cuts
from tests.unit.agent.core.ledger_builders import JOB, execution

TERMS = Terms(job=JOB, attempt=1, grace=timedelta(seconds=10), fence=GANG)
OTHER = execution(1)


def end(agent: FencedAgent, code: int = 0, rank: int = 0) -> None:
    agent.take(Exited(execution=execution(rank), exit=Exit(code=code)))


def recovered(noted: dict[ExecutionId, float], at: float) -> FencedAgent:
    """A new life of an agent that finds its execution running."""
    agent = FencedAgent(contact=None)
    agent.take(Recovered(execution=ME, started=True, terms=TERMS))
    agent.at = at
    agent.take(Began(noted=noted))
    return agent


def word(agent: FencedAgent, at: float = 40.0) -> PeerWord:
    return agent.word(ATTEMPT, at)


def test_it_is_connected_while_its_contact_is_younger_than_a_lease() -> None:
    agent = FencedAgent().run()
    assert word(agent, 29.999) is PeerWord.CONNECTED
    assert word(agent, 30.0) is PeerWord.WITHOUT


def test_it_is_without_the_coordinator_as_soon_as_its_stream_has_ended() -> None:
    agent = FencedAgent().run()
    agent.step(Disconnected(), 5.0)
    assert word(agent, 6.0) is PeerWord.WITHOUT

    agent.step(Contact(sent_at=7.0), 7.5)
    assert word(agent, 8.0) is PeerWord.CONNECTED


def test_what_is_not_known_is_over() -> None:
    assert FencedAgent().word(AttemptId(JOB, 7), 1.0) is PeerWord.OVER


def test_what_is_only_armed_goes_on() -> None:
    assert word(FencedAgent().start()) is PeerWord.WITHOUT


def test_what_was_told_to_stop_is_over_though_it_still_runs() -> None:
    agent = FencedAgent().run()
    agent.plan(Goal.STOP)
    assert word(agent) is PeerWord.OVER


def test_what_was_cut_off_is_over() -> None:
    agent = FencedAgent(STOPPER).run()
    agent.pass_time(75.0)
    assert word(agent, 75.0) is PeerWord.OVER


@pytest.mark.parametrize("code", [1, 143])
def test_what_has_failed_is_over(code: int) -> None:
    agent = FencedAgent().run()
    end(agent, code)
    assert word(agent) is PeerWord.OVER


def test_what_its_runtime_lost_is_over() -> None:
    agent = FencedAgent().run()
    agent.take(ActionFailed(execution=ME, kind=FailureKind.RUNTIME, message="gone"))
    assert word(agent) is PeerWord.OVER


def test_what_ended_well_lets_the_others_go_on() -> None:
    agent = FencedAgent().run()
    end(agent)
    assert word(agent) is PeerWord.WITHOUT


def test_what_ended_well_lets_the_others_go_on_when_it_is_cleared_away() -> None:
    agent = FencedAgent().run()
    end(agent)
    agent.take(Removed(execution=ME))
    assert word(agent) is PeerWord.WITHOUT
    agent.contact(35.0)
    assert word(agent) is PeerWord.CONNECTED


def test_an_order_to_stop_that_comes_after_a_good_end_is_only_for_clearing_away() -> None:
    agent = FencedAgent().run()
    end(agent)
    agent.plan(Goal.STOP)
    assert word(agent) is PeerWord.WITHOUT


def test_exit_code_0_after_an_order_to_stop_is_no_good_end() -> None:
    agent = FencedAgent().run()
    agent.plan(Goal.STOP)
    end(agent)
    assert word(agent) is PeerWord.OVER


def test_what_ended_before_the_agent_was_started_is_over_however_it_did() -> None:
    """A former life of the agent may have been told to stop it, or have cleared away another part that had failed."""
    agent = FencedAgent(contact=None)
    agent.take(Recovered(execution=ME, started=True, ended=True, terms=TERMS))
    assert word(agent, 1.0) is PeerWord.OVER
    end(agent)
    assert word(agent, 1.0) is PeerWord.OVER


def test_one_failure_among_several_executions_here_is_the_end_of_the_part() -> None:
    agent = FencedAgent().run().run(rank=1)
    end(agent)
    end(agent, code=1, rank=1)
    assert word(agent) is PeerWord.OVER
    agent.take(Removed(execution=OTHER))
    assert word(agent) is PeerWord.OVER
    agent.take(Removed(execution=ME))
    assert word(agent) is PeerWord.OVER


def test_good_ends_are_remembered_for_a_thousand_attempts() -> None:
    past = Past(memory=2)
    keys = []
    for number in range(4):
        terms = Terms(job=JOB, attempt=number, grace=timedelta(0), fence=GANG)
        keys.append(terms.attempt_id)
        past.add(terms, well=True, others=number == 0)
        past.trim({keys[0]})
    assert [past.well(key) is not None for key in keys] == [True, False, False, True]


def test_before_its_first_contact_an_agent_is_without_the_coordinator() -> None:
    agent = FencedAgent(contact=None)
    agent.take(Recovered(execution=ME, started=True, terms=TERMS))
    assert word(agent, 1.0) is PeerWord.WITHOUT


def test_as_long_as_it_may_still_give_permits_a_report_promises_nothing() -> None:
    agent = FencedAgent().run()
    assert agent.fencing.no_permit_for(ME, 60.0) is None
    end(agent)
    assert agent.fencing.no_permit_for(ME, 60.0) is None


def test_after_the_end_a_report_tells_how_long_ago_the_last_permit_was_given() -> None:
    agent = FencedAgent().run()
    word(agent, 40.0)
    word(agent, 42.0)
    end(agent, 1)
    assert agent.fencing.no_permit_for(ME, 60.0) == timedelta(seconds=18)


def test_being_connected_or_over_gives_no_permit() -> None:
    agent = FencedAgent().run()
    word(agent, 10.0)
    end(agent, 1)
    word(agent, 50.0)
    assert agent.fencing.no_permit_for(ME, 60.0) == timedelta(seconds=60)


def test_a_permit_that_was_given_for_one_execution_counts_for_all_of_the_attempt() -> None:
    agent = FencedAgent().run().run(rank=1)
    word(agent, 40.0)
    end(agent, 1, rank=1)
    assert agent.fencing.no_permit_for(ME, 50.0) == timedelta(seconds=10)


def test_of_a_former_life_nothing_is_promised() -> None:
    agent = FencedAgent(contact=None)
    agent.take(Recovered(execution=ME, started=False, terms=TERMS))
    agent.at = 100.0
    agent.take(Began(noted={}))
    assert agent.fencing.no_permit_for(ME, 103.0) == timedelta(seconds=3)


def test_a_new_agent_goes_on_with_the_deadlines_of_the_one_before() -> None:
    agent = recovered({ME: 120.0}, at=100.0)
    assert agent.fencing.deadlines() == {ME: 120.0}
    assert agent.state.wake_at == 100.0  # it asks at once


def test_what_runs_without_a_deadline_that_was_noted_may_not_run() -> None:
    agent = recovered({}, at=100.0)
    assert agent.fencing.deadlines() == {ME: 100.0}
    assert len(cuts(agent.pass_time(100.0))) == 1


def test_what_ended_before_the_agent_came_is_not_cut_off_and_ends_as_it_did() -> None:
    agent = FencedAgent(contact=None)
    agent.take(Recovered(execution=ME, started=True, ended=True, terms=TERMS))
    assert agent.deadline() is None
    agent.take(Fenced(execution=ME, grace=timedelta(0), message="cut off"))
    agent.take(Exited(execution=ME, exit=Exit(code=0)))
    [report] = agent.ledger.reports()
    assert (report.exit, report.failure) == (Exit(code=0), None)


def test_an_execution_whose_terms_nobody_noted_has_no_deadline_until_there_is_an_assignment() -> None:
    agent = FencedAgent()
    agent.take(Recovered(execution=ME, started=True))
    assert agent.deadline() is None
    agent.plan(Goal.RUN)
    assert agent.deadline() == 81.0


def test_what_a_killer_killed_is_the_nodes_fault() -> None:
    agent = FencedAgent(contact=None)
    agent.take(Recovered(execution=ME, started=True, terms=TERMS, fenced="killed by muster-killer"))
    agent.take(Exited(execution=ME, exit=Exit(code=137)))
    [report] = agent.ledger.reports()
    assert report.failure is not None
    assert (report.failure.kind, report.failure.message) == (FailureKind.NODE_LOST, "killed by muster-killer")


def test_nobody_asks_for_what_has_ended() -> None:
    agent = FencedAgent().run()
    end(agent)
    assert asks(agent.pass_time(50.0)) == []
