"""What a node knows of the gangs of which it runs a part."""

from datetime import timedelta

import pytest

from agent.core.events import Armed, Fenced, Prepared, Recovered, Started
from agent.core.gang_part import gang_part, own_place
from agent.core.local import terms_of
from muster.domain.gangs.plan import Desired, Goal
from muster.domain.ids import AttemptId
from tests.unit.agent.core.ledger_builders import JOB, Agent, assignment, desired, execution, roster

ATTEMPT = AttemptId(JOB, 1)
ME = execution(1)


@pytest.fixture
def agent() -> Agent:
    return Agent()


def running(agent: Agent) -> None:
    agent.plan(desired(Goal.PREPARE, rank=1))
    agent.step(Prepared(execution=ME, address="10.0.0.2", ports=()))
    agent.plan(desired(Goal.ARM, rank=1), rosters=(roster(),))
    agent.step(Armed(execution=ME))
    agent.plan(desired(Goal.RUN, rank=1))
    agent.step(Started(execution=ME))


def test_of_an_attempt_of_which_nothing_is_here_nothing_is_known(agent: Agent) -> None:
    running(agent)
    assert gang_part(agent.ledger, AttemptId(JOB, 2)) is None
    assert own_place(agent.ledger, execution(0)) is None


def test_a_member_is_ahead_until_it_is_told_to_run(agent: Agent) -> None:
    agent.plan(desired(Goal.PREPARE, rank=1))
    part = gang_part(agent.ledger, ATTEMPT)
    assert part is not None
    assert part.roster is None
    assert (dict(part.running), part.ahead) == ({}, frozenset({1}))


def test_a_member_runs_with_its_roster_and_the_secret_of_its_attempt(agent: Agent) -> None:
    running(agent)
    part = gang_part(agent.ledger, ATTEMPT)
    assert part is not None
    assert (part.roster, part.running, part.ahead) == (roster(), {1: ME}, frozenset())
    assert part.secret == assignment(1).fence.key
    assert own_place(agent.ledger, ME) == (part, 1)


@pytest.mark.parametrize("how", ["stopped", "unlisted", "cut off"])
def test_a_member_that_is_to_end_takes_no_commands_any_more(agent: Agent, how: str) -> None:
    running(agent)
    if how == "stopped":
        agent.plan(desired(Goal.STOP, rank=1))
    elif how == "unlisted":
        agent.plan(removed=(ME,))
    else:
        agent.step(Fenced(execution=ME, grace=timedelta(seconds=1), message="cut off"))
    part = gang_part(agent.ledger, ATTEMPT)
    assert part is not None
    assert (part.running, part.ahead) == ({}, frozenset())


def test_an_agent_that_has_started_anew_waits_for_the_coordinator(agent: Agent) -> None:
    agent.step(Recovered(execution=ME, started=True, terms=terms_of(assignment(1))))
    part = gang_part(agent.ledger, ATTEMPT)
    assert part is not None
    assert (part.roster, part.running) == (None, {})
    assert own_place(agent.ledger, ME) is None
    agent.whole_plan(Desired(execution=ME, goal=Goal.RUN, assignment=assignment(1)), rosters=(roster(),))
    part = gang_part(agent.ledger, ATTEMPT)
    assert part is not None
    assert (part.roster, part.running) == (roster(), {1: ME})
