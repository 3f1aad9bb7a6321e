"""Jobs of one request class are tried once in a walk along the queue."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.core.placement.bins import MOST_GROWN, Capacities
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.placement import NoFit, place
from coordinator.core.placement.request_classes import RequestClass
from muster.domain.jobs.job import JobSpec, Packing
from tests.builders import World, capacity, mig_devices, role, spec

NODES = ("n1", "n2", "n3")


def test_jobs_that_ask_for_the_same_have_one_shape() -> None:
    w = World()
    one, another = (
        w.submit(spec(2, gpus=1), queue_anyway=True),
        w.submit(spec(2, gpus=1, priority=3), queue_anyway=True),
    )

    assert w.cluster.queue.request_class(one) is w.cluster.queue.request_class(another)


@pytest.mark.parametrize(
    "other",
    [spec(3, gpus=1), spec(2, gpus=2), spec(2, gpus=1, packing=Packing.SPREAD), spec(2, gpus=1, max_per_node=1)],
)
def test_jobs_that_ask_for_something_else_have_another(other: JobSpec) -> None:
    w = World()
    one, another = w.submit(spec(2, gpus=1), queue_anyway=True), w.submit(other, queue_anyway=True)

    assert w.cluster.queue.request_class(one) is not w.cluster.queue.request_class(another)


def test_a_job_that_does_not_wait_has_none() -> None:
    w = World(("a", 2))
    job = w.submit(spec(1, gpus=1))

    with pytest.raises(KeyError):
        w.cluster.queue.request_class(job)


def any_capacity(random: Random, node: str) -> Capacity:
    """What a node has: GPUs or MIG devices, CPUs, memory; now and then nothing can be placed there."""
    found = capacity(node, random.randrange(4), cpus=random.randrange(4), memory=random.randrange(3) * 2**30)
    mig = mig_devices(node, "1g.10gb", "1g.10gb") if random.random() < 0.2 else ()
    return replace(found, gpus=(*found.gpus, *mig), problem=random.choice([None] * 9 + ["is cordoned"]))


def any_job(random: Random) -> JobSpec:
    roles = (
        role(
            random.randint(1, 4),
            gpus=gpus,
            cpus=random.randrange(3),
            memory=random.choice([None, 2**30]),
            mig=random.choice([None, None, "1g.10gb"]) if gpus else None,
        )
        for gpus in (random.randrange(4) for _ in range(random.choice([1, 1, 2])))
    )
    return spec(roles=tuple(roles), max_per_node=random.choice([None, None, 1]))


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_a_class_that_failed_fits_nowhere_until_it_is_open_again(seed: int) -> None:
    random = Random(seed)
    capacities, job = Capacities(any_capacity(random, node) for node in NODES), any_job(random)
    request_class = RequestClass(None, job)
    for _ in range(random.randint(1, 20)):
        fails = isinstance(place(job, Available(capacities=capacities)), NoFit)
        assert fails or not request_class.fails(capacities)
        if fails:
            request_class.fail(capacities)
        if random.random() < 0.1:
            capacities.drop(
                random.choice(list(capacities)).node if len(capacities) else any_capacity(random, "n1").node
            )
        capacities.put(any_capacity(random, random.choice(NODES)))


def test_a_class_stays_closed_while_no_node_that_has_more_takes_one_of_its_jobs() -> None:
    capacities = Capacities([capacity("n1", 0), capacity("n2", 0)])
    request_class = RequestClass(None, spec(2, gpus=2))
    request_class.fail(capacities)

    capacities.put(capacity("n1", 1))
    assert request_class.fails(capacities)
    capacities.put(capacity("n2", 2))
    assert not request_class.fails(capacities)


def test_a_class_is_open_again_once_more_nodes_have_grown_than_are_remembered() -> None:
    capacities = Capacities([capacity("n1", 0)])
    request_class = RequestClass(None, spec(1, gpus=2))
    request_class.fail(capacities)

    for _ in range(MOST_GROWN):
        capacities.put(capacity("n1", 1))
        capacities.put(capacity("n1", 0))
    assert request_class.fails(capacities)
    request_class = RequestClass(None, spec(1, gpus=2))
    request_class.fail(capacities)
    for _ in range(MOST_GROWN + 1):
        capacities.put(capacity("n1", 1))
        capacities.put(capacity("n1", 0))
    assert not request_class.fails(capacities)
