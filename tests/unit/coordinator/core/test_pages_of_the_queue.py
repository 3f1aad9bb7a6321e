"""Pages of the queue: one after another they are the whole queue, each project in its own order, the next one first."""

from collections.abc import Sequence
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.core.scheduling.bars import Bars
from coordinator.core.scheduling.order import across_leaves
from coordinator.views.quotas import queue_page
from muster.domain.fleet.standing_view import QueueLine
from muster.domain.ids import JobId
from tests.builders import World
from tests.unit.coordinator.core.random_courses import any_job, fleet


def everybody(_: object) -> bool:
    return True


def paged(w: World, most: int) -> Sequence[QueueLine]:
    """All lines, page by page."""
    lines, first = list[QueueLine](), "1"
    while first:
        page = queue_page(w.cluster, w.now, everybody, everybody, int(first), most)
        lines += page.lines
        first = page.next_page
    return lines


def plainly(w: World) -> Sequence[JobId]:
    """The queue as somebody orders it who compares the first jobs of all projects again for each place."""
    left, bars, found = list(w.cluster.queue), Bars(w.cluster, w.now), list[JobId]()
    while left:
        firsts = {job.spec.project: job for job in reversed(left)}
        least = min(firsts.values(), key=lambda job: across_leaves(w.cluster, job, bars.pool(job)))
        found.append(least.id)
        left.remove(least)
    return found


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1 << 32), most=st.integers(1, 5))
def test_pages_are_the_queue_in_the_order_in_which_jobs_are_tried(seed: int, most: int) -> None:
    random = Random(seed)
    w = fleet(random)
    for _ in range(random.randint(3, 20)):
        w.submit(any_job(random), queue_anyway=True)
    lines = paged(w, most)
    assert [line.job for line in lines] == plainly(w)
    assert [line.position for line in lines] == list(range(1, len(lines) + 1))


def test_a_page_begins_where_it_is_asked_to() -> None:
    w = fleet(Random(1))
    for _ in range(20):
        w.submit(any_job(Random(2)), queue_anyway=True)
    whole = paged(w, 100)
    assert len(whole) > 3
    assert list(queue_page(w.cluster, w.now, everybody, everybody, 3, 100).lines) == list(whole[2:])
