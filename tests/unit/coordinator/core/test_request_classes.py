"""Jobs of one request class are tried once in a walk along the queue."""

import pytest

from muster.domain.jobs.job import JobSpec, Packing
from tests.builders import World, spec


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
