"""The simulation finds nothing, would find something, and plays every seed the same way each time."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from coordinator.core.answers import Answer, Noted
from coordinator.core.events import Event, ExecutionsReported, NodeConnected, StopRequested
from coordinator.core.step import step
from coordinator.core.turn import Turn
from muster.domain.plan import Report, Stage
from tests.simulation.coordinator_program import Core
from tests.simulation.scenario import LARGE
from tests.simulation.simulation import Outcome, Simulation

ROOT = Path(__file__).resolve().parents[2]
FIRST = 20_261_121
SEEDS = 200


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return [Simulation(FIRST + number).run() for number in range(SEEDS)]


def test_small_fleets_come_through_their_troubles(outcomes: list[Outcome]) -> None:
    assert [(outcome.seed, outcome.problem) for outcome in outcomes if outcome.problem is not None] == []


def test_a_large_fleet_comes_through_its_troubles() -> None:
    outcome = Simulation(FIRST, LARGE).run()

    assert (outcome.seed, outcome.problem) == (FIRST, None)
    assert outcome.sights["job succeeded"] > 10


def test_there_was_something_to_come_through(outcomes: list[Outcome]) -> None:
    """Jobs ended in every way, and user code was stopped on nodes that were cut off."""
    seen = sum((outcome.sights for outcome in outcomes), Counter[str]())
    ways = ["job succeeded", "job failed", "job stopped", "job again", "execution lost", "fenced"]
    kinds = ["exit_code", "signal", "check_in_timeout", "time_limit", "agent_restarted", "node_lost", "runtime"]

    assert [sight for sight in (*ways, *(f"failure {kind}" for kind in kinds)) if not seen[sight]] == []


def test_a_seed_is_played_the_same_way_by_any_interpreter(outcomes: list[Outcome]) -> None:
    """Sets and dictionaries of strings are ordered otherwise there; nothing may depend on that."""
    program = [sys.executable, "-m", "tests.simulation", "--seed", str(FIRST + 3)]
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    played = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=60)

    assert f"seed {FIRST + 3}: {outcomes[3].fingerprint};" in played.stdout


def test_a_release_before_all_are_armed_is_found_and_told() -> None:
    """A core that takes a check-in for an arming lets user code start too early."""
    outcome = _first_problem(_hasty)

    assert outcome.problem is not None
    assert "is not armed" in outcome.problem
    assert any("sends" in line and "RUN" in line for line in outcome.story)


def test_a_stop_that_is_forgotten_is_found() -> None:
    outcome = _first_problem(_deaf)

    assert outcome.problem is not None
    assert "no rest after" in outcome.problem


def test_gangs_survive_a_coordinator_that_is_away_for_long() -> None:
    outcomes = [Simulation(FIRST + number, family="outage").run() for number in range(10)]

    assert [(outcome.seed, outcome.problem) for outcome in outcomes if outcome.problem is not None] == []
    assert [outcome.sights["fenced"] for outcome in outcomes] == [0] * len(outcomes)


def test_two_attempts_that_run_at_once_are_found() -> None:
    """A core that forgets what witnesses said a moment ago begins anew too early."""
    outcome = _first_problem(_forgetful, family="deaf", most=60)

    assert outcome.problem is not None
    assert "two attempts" in outcome.problem


def _first_problem(core: Core, family: str | None = None, most: int = 20) -> Outcome:
    outcomes = (Simulation(FIRST + number, core=core, family=family).run() for number in range(most))
    return next(outcome for outcome in outcomes if outcome.problem is not None)


def _hasty(turn: Turn, event: Event) -> Answer:
    if isinstance(event, ExecutionsReported):
        event = replace(event, reports=tuple(map(_armed_already, event.reports)))
    return step(turn, event)


def _armed_already(report: Report) -> Report:
    return replace(report, stage=Stage.ARMED) if report.stage is Stage.PREPARED else report


def _deaf(turn: Turn, event: Event) -> Answer:
    return Noted() if isinstance(event, StopRequested) else step(turn, event)


def _forgetful(turn: Turn, event: Event) -> Answer:
    if isinstance(event, ExecutionsReported | NodeConnected):
        event = replace(event, reports=tuple(map(_silent_for_long, event.reports)))
    return step(turn, event)


def _silent_for_long(report: Report) -> Report:
    return replace(report, no_permit_for=timedelta(days=1)) if report.no_permit_for is not None else report
