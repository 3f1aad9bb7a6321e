"""The verdict of chaos on fences: it sees what ran on or was stopped against the rules, and nothing else."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from muster.domain.ids import ExecutionId, JobId, NodeId
from muster.domain.jobs.disconnect import SHORTEST_LOST_AFTER, OnDisconnect
from muster.domain.jobs.failure import Failure, FailureKind
from muster.domain.jobs.job import JobSpec, Role, Timeouts
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.view import AttemptView, ExecutionView, JobView
from tests.e2e.chaos.faults import COORDINATOR, Fault, Kind, Spell
from tests.e2e.chaos.fences import Course
from tests.e2e.chaos.user_code import Deeds

BEGAN, ENDED = 100.0, 200.0
LIMIT = BEGAN + SHORTEST_LOST_AFTER.total_seconds()
LATE, IN_TIME = LIMIT + 1, LIMIT - 1

CUT = (Kind.CUT, "a")
DEAD_AGENT = (Kind.AGENT, "a")
OUTAGE = (Kind.COORDINATOR, COORDINATOR)
KEEP, STOP = OnDisconnect.KEEP, OnDisconnect.STOP


def course(
    nodes: str, policy: OnDisconnect, broken: Sequence[tuple[Kind, str]], last_at: float, *, lost: bool = False
) -> Course:
    """An attempt with one worker on each node (a letter); all began at 0 and did their last deed at some time."""
    failure = Failure(kind=FailureKind.NODE_LOST, message="cut off") if lost else None
    executions = tuple(
        ExecutionView(
            id=ExecutionId(f"j-1-{rank}"),
            rank=rank,
            role="worker",
            state=State.FAILED if lost else State.RUNNING,
            node=NodeId(node),
            failure=failure,
        )
        for rank, node in enumerate(nodes)
    )
    view = JobView(
        id=JobId("j"),
        spec=JobSpec(
            name="job",
            roles=(Role(count=len(nodes)),),
            timeouts=Timeouts(lost_after=SHORTEST_LOST_AFTER),
            on_disconnect=policy,
        ),
        phase=JobPhase.RUNNING,
        summary="",
        submitted_at=datetime(2026, 11, 21, tzinfo=UTC),
    )
    deeds = Deeds(starts=1, lines=1, ended=False, first_at=0.0, last_at=last_at, code=None)
    return Course(
        view=view,
        attempt=AttemptView(number=1, executions=executions),
        deeds=dict.fromkeys(range(len(nodes)), deeds),
        spells=[
            Spell(
                fault=Fault(at=BEGAN, kind=kind, place=place, lasting=ENDED - BEGAN),
                began=BEGAN,
                ended=ENDED,
                mended=ENDED + 1,
            )
            for kind, place in broken
        ],
    )


@pytest.mark.parametrize(
    ("nodes", "policy", "broken", "late"),
    [
        ("ab", KEEP, CUT, 1),
        ("ab", KEEP, DEAD_AGENT, 1),
        ("bc", KEEP, CUT, 0),
        ("a", KEEP, CUT, 0),
        ("a", STOP, CUT, 1),
        ("a", STOP, DEAD_AGENT, 1),
        ("ab", KEEP, OUTAGE, 0),
        ("ab", STOP, OUTAGE, 2),
    ],
)
def test_who_runs_on_without_leave_is_seen(
    nodes: str, policy: OnDisconnect, broken: tuple[Kind, str], late: int
) -> None:
    assert len(list(course(nodes, policy, [broken], LATE).overruns())) == late
    assert list(course(nodes, policy, [broken], IN_TIME).overruns()) == []


@pytest.mark.parametrize(
    ("policy", "broken", "stopped"),
    [
        (KEEP, [OUTAGE], 2),
        (STOP, [OUTAGE], 0),
        (KEEP, [OUTAGE, CUT], 0),
        (KEEP, [OUTAGE, DEAD_AGENT], 0),
        (KEEP, [OUTAGE, (Kind.CUT, "c")], 2),
        (KEEP, [], 0),
    ],
)
def test_who_is_stopped_for_want_of_the_coordinator_alone_is_seen(
    policy: OnDisconnect, broken: list[tuple[Kind, str]], stopped: int
) -> None:
    assert len(list(course("ab", policy, broken, IN_TIME, lost=True).needlessly_stopped())) == stopped
    assert list(course("ab", policy, broken, IN_TIME).needlessly_stopped()) == []
