"""Which image a name means for a job: the first word counts, for every rank and attempt."""

from coordinator.core.data_events import ImageFound
from muster.domain.ids import JobId
from muster.domain.jobs.image import FoundImage
from tests.builders import World, spec

APP = FoundImage(image="team/app:1", digest=f"sha256:{'a' * 64}")
MOVED = FoundImage(image="team/app:1", digest=f"sha256:{'b' * 64}")
LOCAL = FoundImage(image="made-here", id=f"sha256:{'c' * 64}")


def test_the_first_word_counts_for_each_name() -> None:
    w = World(("a", 0))
    job = w.submit(spec(1, name="with-images"))
    for found in (APP, MOVED, LOCAL):
        w.turn(ImageFound(job=job, found=found))
    assert w.cluster.jobs[job].images == (APP, LOCAL)
    assert w.cluster.jobs[job].submitted is None


def test_a_job_that_is_gone_has_no_images() -> None:
    w = World(("a", 0))
    w.turn(ImageFound(job=JobId("gone"), found=APP))
    assert not w.cluster.jobs
