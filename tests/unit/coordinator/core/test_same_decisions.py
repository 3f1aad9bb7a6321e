"""The same events decide the same, whether the coordinator was restarted between them or not."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
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

ROUNDS = 15


def restart(w: World) -> None:
    """Another coordinator goes on, and all agents open their streams at once."""
    w.restart()
    events = []
    for session, (node, record) in enumerate(w.cluster.nodes.items(), start=1000):
        held = (w.cluster.executions[each] for each in sorted(w.cluster.load.used(node).executions))
        events.append(
            NodeConnected(
                node=node,
                session=session,
                identity=record.identity,
                version=record.agent_version,
                address=record.address,
                peer_port=record.peer_port,
                features=ALL_FEATURES,
                inventory=record.inventory,
                reports=tuple(report(each.id, Stage.RUNNING) for each in held),
            )
        )
    w.turn(*events)


def told(w: World) -> dict[str, object]:
    """Where each job is, how often it made room, and why it is not elsewhere."""
    return {
        job: (w.phase(job), w.seats(job), record.evictions, explain(w.cluster, job, w.now).summary)
        for job, record in w.cluster.jobs.items()
    }


def course(seed: int, restarts: Sequence[int]) -> list[dict[str, object]]:
    """What is told after each round, of which some begin with a restart.

    All jobs are of one project. Between projects the head stays the head when others come before it, and that is not
    stored: a coordinator that starts keeps seats for whoever is first then.
    """
    random, found = Random(seed), []
    w = fleet(random)
    for number in range(ROUNDS):
        if number in restarts:
            restart(w)
        pass_time(w, LEASE_SECONDS)
        running = [job for job in w.cluster.jobs if w.phase(job) is JobPhase.RUNNING]
        if running and random.random() < 0.4:
            w.tell_all(random.choice(running), Stage.EXITED, exit=Exit(code=0), log_complete=True)
        else:
            w.submit(replace(any_job(random), project="a"), queue_anyway=True)
        while start_all(w) or end_all(w):
            pass
        found.append(told(w))
    return found


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 1 << 32), restarts=st.sets(st.integers(0, ROUNDS - 1), min_size=1, max_size=4))
def test_after_a_restart_the_same_jobs_have_the_same_seats_for_the_same_reasons(seed: int, restarts: set[int]) -> None:
    assert course(seed, sorted(restarts)) == course(seed, ())


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
