"""Jobs that had no room are tried again when a claim ends, and a core that does not do so is found."""

import pytest

from coordinator.core.events import DeleteRequested, Event, HoldRequested, StopRequested
from coordinator.core.step import finish, step
from coordinator.core.turn.turn import Turn
from muster.domain.ids import JobId
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World
from tests.invariants import validate
from tests.unit.coordinator.core.eviction.eviction_world import of, running, world


def claimed() -> tuple[World, JobId, JobId]:
    """Two GPUs are free, and claimed with two more by one job; another one wants two, and comes after it."""
    w = world(("n1", 8))
    running(w, *[of("a")] * 3)
    claimant, late = w.submit(of("b", 4)), w.submit(of("b"))
    assert (len(w.cluster.load.claims), w.phase(late)) == (1, JobPhase.QUEUED)
    return w, claimant, late


def ends_of(claimant: JobId) -> tuple[Event, ...]:
    return (StopRequested(job=claimant), DeleteRequested(job=claimant, force=True), HoldRequested(job=claimant))


@pytest.mark.parametrize("way", range(3), ids=["stopped", "deleted", "held"])
def test_who_waits_is_tried_again_when_a_claim_ends(way: int) -> None:
    w, claimant, late = claimed()
    w.turn(ends_of(claimant)[way])
    assert w.phase(late) is JobPhase.PREPARING


@pytest.mark.parametrize("way", range(3), ids=["stopped", "deleted", "held"])
def test_a_class_that_stays_closed_when_a_claim_ends_is_found(way: int) -> None:
    """Planted: whatever a claim gives back, a class that had no room counts as tried."""
    w, claimant, _ = claimed()
    free = w.cluster.load.free
    closed = [each for each in w.cluster.queue.lines.request_classes if each.fails(free.fresh())]
    turn = Turn(w.cluster, w.now)
    step(turn, ends_of(claimant)[way])
    for request_class in closed:
        request_class.fail(free.fresh())
    finish(turn)
    with pytest.raises(AssertionError, match="fits and is not tried"):
        validate(w.cluster, w.now)
