"""What the agent's journal says of an action that begins, with the cause that came with the plan."""

from dataclasses import replace
from datetime import timedelta

from agent.core.beginnings import BEGINNINGS, fields_of
from agent.core.events import Armed, Fenced, Prepared, Started
from agent.core.local import MOVES, LocalState
from muster.domain.gangs.plan import Desired, Goal
from tests.unit.agent.core.ledger_builders import MASTER, Agent, assignment, desired, execution, roster

ME = execution()
PLACE = {"job": assignment().job, "attempt": assignment().attempt, "rank": assignment().rank, "node": "gpu-3"}


def because(line: Desired, cause: str) -> Desired:
    return replace(line, cause=cause)


def said(agent: Agent) -> tuple[str, dict[str, object]]:
    """What is said of the action that is under way."""
    local = agent.ledger.get(ME)
    assert local is not None
    return BEGINNINGS[local.phase], fields_of(local, "gpu-3")


def armed() -> Agent:
    agent = Agent()
    agent.plan(because(desired(Goal.PREPARE), "call 3f0a-1 jobs.submit"))
    agent.step(Prepared(execution=ME, address="10.0.0.1", ports=(MASTER,)))
    agent.plan(because(desired(Goal.ARM), "a stream 1 message 4"), rosters=(roster(),))
    agent.step(Armed(execution=ME))
    return agent


def test_each_action_has_the_fields_of_the_coordinator_and_the_cause_of_its_order() -> None:
    agent = Agent()
    agent.plan(because(desired(Goal.PREPARE), "call 3f0a-1 jobs.submit"))

    assert said(agent) == (
        "execution is being prepared",
        {**PLACE, "from": "new", "to": "preparing", "cause": "call 3f0a-1 jobs.submit"},
    )


def test_the_newest_order_is_the_cause_of_what_follows_from_it() -> None:
    agent = armed()
    agent.plan(because(desired(Goal.RUN), "b stream 2 message 5"))

    sentence, fields = said(agent)

    assert (sentence, fields["cause"]) == ("execution is being started", "b stream 2 message 5")


def test_an_execution_that_the_agent_cuts_off_by_itself_has_that_as_its_cause() -> None:
    agent = armed()
    agent.plan(desired(Goal.RUN))
    agent.step(Started(execution=ME))
    agent.step(Fenced(execution=ME, grace=timedelta(seconds=1), message="no word from the coordinator"))

    assert said(agent)[1]["cause"] == "no word from the coordinator"


def test_every_state_with_an_action_under_way_has_a_sentence() -> None:
    reached = {after for after in MOVES.values() if after.endswith("ing") and after is not LocalState.RUNNING}

    assert reached == BEGINNINGS.keys()
