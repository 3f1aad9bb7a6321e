"""The examples that the pages about scheduling and placement follow through."""

import pytest

from coordinator.core.placement.placement import NoFit, Placement, place
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.job import Packing
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World, available, capacity, spec


def end(w: World, job: JobId) -> None:
    w.delete(job, force=True)
    w.tell_all(job, Stage.STOPPED)


def waiting(w: World, *jobs: JobId) -> list[bool]:
    return [w.phase(job) is JobPhase.QUEUED for job in jobs]


def two_nodes_in_use() -> tuple[World, JobId, JobId]:
    w = World(("node-1", 8), ("node-2", 8))
    a, b = w.submit(spec(1, gpus=8)), w.submit(spec(1, gpus=4))
    assert [w.seats(a), w.seats(b)] == [["node-1"], ["node-2"]]
    return w, a, b


def test_nobody_passes_a_head_that_needs_all_nodes() -> None:
    w, a, b = two_nodes_in_use()
    c, d, e = w.submit(spec(2, gpus=8)), w.submit(spec(1, gpus=4)), w.submit(spec(1, gpus=4))
    assert waiting(w, c, d, e) == [True, True, True]

    end(w, b)
    assert waiting(w, c, d, e) == [True, True, True]

    end(w, a)
    assert waiting(w, c, d, e) == [False, True, True]
    assert w.seats(c) == ["node-1", "node-2"]


def test_others_pass_a_head_whose_reservation_leaves_a_node() -> None:
    w, _, _ = two_nodes_in_use()
    c, d, e = w.submit(spec(1, gpus=8)), w.submit(spec(1, gpus=4)), w.submit(spec(1, gpus=4))
    assert waiting(w, c, d, e) == [True, False, True]
    assert w.seats(d) == ["node-2"]


@pytest.mark.parametrize(
    ("packing", "nodes"),
    [
        (Packing.PACK, ["node-1", "node-1", "node-1", "node-1", "node-3"]),
        (Packing.SPREAD, ["node-1", "node-1", "node-2", "node-2", "node-3"]),
    ],
)
def test_a_gang_is_packed_or_spread(packing: Packing, nodes: list[str]) -> None:
    three = available(capacity("node-1", 8), capacity("node-2", 8), capacity("node-3", 2))
    fit = place(spec(5, gpus=2, packing=packing), three)
    assert isinstance(fit, Placement)
    assert [seat.node for seat in fit.seats] == nodes
    assert place(spec(10, gpus=2), three) == NoFit(wanted=10, found=9, nodes=3)
