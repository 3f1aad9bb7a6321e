"""The same events decide the same, whether the coordinator was restarted between them or not."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinator.core.events import ExecutionsReported, NodeConnected
from coordinator.views.explain import explain
from muster.domain.fleet.features import ALL_FEATURES
from muster.domain.gangs.plan import Stage
from muster.domain.ids import NodeId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.builders import World, pass_time, report
from tests.unit.coordinator.core.random_courses import LEASE_SECONDS, NODES, STAGES, any_job, end_all, fleet, start_all

ROUNDS = 14
"""Rounds that together are shorter than the patience with terms, which begins anew with each coordinator."""
RESTARTS = st.sets(st.integers(0, ROUNDS - 1), min_size=1, max_size=4)


SESSIONS = count(1000)


def restart(w: World, *, one_by_one: bool = False) -> None:
    """Another coordinator goes on, and all agents open their streams: at once, or one some seconds after the other."""
    w.restart()
    events = [opened(w, node) for node in w.cluster.nodes]
    if not one_by_one:
        w.turn(*events)
        return
    for event in events:
        w.turn(event)
        pass_time(w, 3)


def opened(w: World, node: NodeId) -> NodeConnected:
    """An agent opens a stream to another coordinator, with all that runs on its node."""
    record = w.cluster.nodes[node]
    held = (w.cluster.executions[each] for each in sorted(w.cluster.load.used(node).executions))
    return NodeConnected(
        node=node,
        session=next(SESSIONS),
        identity=record.identity,
        version=record.agent_version,
        address=record.address,
        peer_port=record.peer_port,
        features=ALL_FEATURES,
        inventory=record.inventory,
        reports=tuple(report(each.id, Stage.RUNNING) for each in held),
    )


def told(w: World) -> dict[str, object]:
    """Where each job is, how often it made room, and why it is not elsewhere."""
    return {
        job: (w.phase(job), w.seats(job), record.evictions, explain(w.cluster, job, w.now).summary)
        for job, record in w.cluster.jobs.items()
    }


def course(seed: int, restarts: Sequence[int], *, one_by_one: bool = False) -> list[dict[str, object]]:
    """What is told after each round, of which some begin with a restart."""
    random, found = Random(seed), []
    w = fleet(random)
    for number in range(ROUNDS):
        if number in restarts:
            restart(w, one_by_one=one_by_one)
        pass_time(w, LEASE_SECONDS)
        running = [job for job in w.cluster.jobs if w.phase(job) is JobPhase.RUNNING]
        if running and random.random() < 0.4:
            w.tell_all(random.choice(running), Stage.EXITED, exit=Exit(code=0), log_complete=True)
        else:
            w.submit(any_job(random), queue_anyway=True)
        while start_all(w) or end_all(w):
            pass
        found.append(told(w))
    return found


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 1 << 32), restarts=RESTARTS)
@example(seed=1, restarts={9, 12})
def test_after_a_restart_the_same_jobs_have_the_same_seats_for_the_same_reasons(seed: int, restarts: set[int]) -> None:
    assert course(seed, sorted(restarts)) == course(seed, ())


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 1 << 32), restarts=RESTARTS)
def test_it_does_not_matter_that_agents_come_back_one_by_one(seed: int, restarts: set[int]) -> None:
    assert course(seed, sorted(restarts), one_by_one=True) == course(seed, ())


@pytest.mark.parametrize("seed", range(8))
def test_reports_in_one_turn_or_in_many_bring_gangs_equally_far(seed: int) -> None:
    """What executions tell on their way makes no room, where nobody evicts: how much comes at a time is nothing."""
    one, many = (World(*NODES.items()) for _ in range(2))
    for w, at_once in ((one, True), (many, False)):
        random = Random(seed)
        for _ in range(8):
            w.submit(replace(any_job(random), project="default", job_class=JobClass.GUARANTEED))
        placed = [each for each in w.cluster.executions.values() if each.state is State.PLACED]
        for stage in STAGES:
            events = [
                ExecutionsReported(node=NodeId(each.node or ""), reports=(report(each.id, stage),)) for each in placed
            ]
            for turn in [events] if at_once else [[event] for event in events]:
                w.turn(*turn)
    assert told(one) == told(many)
    assert {JobPhase.RUNNING} <= {one.phase(job) for job in one.cluster.jobs}
