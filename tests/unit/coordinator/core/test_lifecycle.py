"""The table of an execution's life, and the phases of a job that follow from it."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.domain.errors import IllegalTransitionError
from muster.domain.jobs.lifecycle import (
    NOT_PLACED,
    PROGRESS,
    TERMINAL,
    TRANSITIONS,
    JobPhase,
    State,
    Trigger,
    advance,
    phase,
)

every_case = settings(max_examples=100)


@given(st.lists(st.sampled_from(Trigger), max_size=30))
@every_case
def test_only_listed_moves_are_possible_and_the_last_states_are_final(triggers: list[Trigger]) -> None:
    state = State.QUEUED
    for trigger in triggers:
        if (state, trigger) not in TRANSITIONS:
            with pytest.raises(IllegalTransitionError):
                advance("execution x", state, trigger)
            continue
        assert state not in TERMINAL
        state = advance("execution x", state, trigger)


@given(st.lists(st.sampled_from(Trigger), max_size=30))
@every_case
def test_no_state_is_entered_twice_but_those_before_the_placement(triggers: list[Trigger]) -> None:
    past = [State.QUEUED]
    for trigger in triggers:
        if (past[-1], trigger) in TRANSITIONS:
            past.append(advance("x", past[-1], trigger))

    placed = [state for state in past if state not in NOT_PLACED]
    assert len(placed) == len(set(placed))
    assert placed == past[len(past) - len(placed) :], "nothing leads back"


@pytest.mark.parametrize("state", [state for state in State if state not in TERMINAL])
def test_every_live_state_has_a_way_to_every_kind_of_end(state: State) -> None:
    reached, fresh = {state}, {state}
    while fresh:
        fresh = {after for (before, _), after in TRANSITIONS.items() if before in fresh} - reached
        reached |= fresh

    only_stop = {State.STOPPED, State.FAILED, State.LOST} if state is State.STOPPING else TERMINAL
    assert reached & TERMINAL == only_stop


def test_the_straight_way_is_in_the_table() -> None:
    steps = {(before, after) for (before, _), after in TRANSITIONS.items()}

    assert set(pairwise(PROGRESS)) <= steps


def test_an_illegal_move_says_who_was_where_and_what_was_tried() -> None:
    with pytest.raises(IllegalTransitionError) as error:
        advance("execution j-1-0", State.SUCCEEDED, Trigger.FAILED)

    assert str(error.value) == "execution j-1-0 is succeeded; the trigger failed is not possible there"


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({State.QUEUED}, JobPhase.QUEUED),
        ({State.PLACED, State.PREPARING}, JobPhase.PREPARING),
        ({State.CHECKED_IN, State.ARMED}, JobPhase.PREPARING),
        ({State.ARMED, State.RUNNING}, JobPhase.RUNNING),
        ({State.RUNNING, State.SUCCEEDED}, JobPhase.RUNNING),
        ({State.RUNNING, State.FAILED}, JobPhase.STOPPING),
        ({State.STOPPING, State.SUCCEEDED}, JobPhase.STOPPING),
        ({State.SUCCEEDED}, JobPhase.SUCCEEDED),
        ({State.SUCCEEDED, State.STOPPED}, JobPhase.STOPPED),
        ({State.STOPPED, State.FAILED}, JobPhase.FAILED),
        ({State.STOPPED, State.LOST}, JobPhase.FAILED),
    ],
)
def test_the_phase_of_a_job_follows_from_its_executions(states: set[State], expected: JobPhase) -> None:
    assert phase(states, decided=False) is expected


@pytest.mark.parametrize("others", [State.STOPPED, State.LOST, State.SUCCEEDED])
def test_once_those_that_decide_have_ended_well_the_others_do_not_count(others: State) -> None:
    assert phase({State.SUCCEEDED, others}, decided=True) is JobPhase.SUCCEEDED


@given(st.sets(st.sampled_from(State), min_size=1), st.booleans())
@every_case
def test_a_job_has_ended_exactly_when_all_its_executions_have(states: set[State], decided: bool) -> None:
    assert phase(states, decided=decided).ended == (states <= TERMINAL)
