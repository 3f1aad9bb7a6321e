"""Portions of GPUs make room for others, and others for them."""

from typing import Any

from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import GIB, World, report, role, spec
from tests.unit.coordinator.core.eviction.eviction_world import ended, of, running, world


def part(project: str, thousandths: int, gpus: int = 1, count: int = 1) -> JobSpec:
    return _of(project, role(count, gpus, gpu_portion=thousandths, cpus=0.1))


def memory(project: str, gib: int) -> JobSpec:
    return _of(project, role(1, 1, gpu_memory=gib * GIB, cpus=0.1))


def _of(project: str, wanted: Any) -> JobSpec:
    return spec(roles=(wanted,), project=project, job_class=JobClass.PREEMPTIBLE)


def phases(w: World, *jobs: JobId) -> list[JobPhase]:
    return [w.phase(job) for job in jobs]


RUNNING, STOPPING = JobPhase.RUNNING, JobPhase.STOPPING


def test_x2_a_portion_makes_room_with_what_is_left_of_its_gpu() -> None:
    w = world(("n1", 2), a=1, b=1)
    jobs = running(w, of("a", 1), part("a", 500), part("a", 250))

    b = w.submit(part("b", 500))

    assert phases(w, *jobs) == [RUNNING, RUNNING, STOPPING]
    ended(w, jobs[2])
    assert w.phase(b) is JobPhase.PREPARING
    assert w.rank(b, 0).gpus == ("GPU-n1-1",)


def test_x3_for_a_whole_gpu_the_portions_of_one_leave_where_that_costs_less() -> None:
    w = world(("n1", 2), a=1, b=1)
    jobs = running(w, part("a", 500), of("a", 1))

    b = w.submit(of("b", 1))

    assert phases(w, *jobs) == [STOPPING, RUNNING]
    ended(w, jobs[0])
    assert w.phase(b) is JobPhase.PREPARING
    assert w.rank(b, 0).gpus == ("GPU-n1-0",)


def test_all_portions_of_a_gpu_leave_for_a_job_that_needs_it_whole() -> None:
    w = world(("n1", 1), a=0, b=1)
    jobs = running(w, *[part("a", 250)] * 3)

    b = w.submit(of("b", 1))

    assert phases(w, *jobs) == [STOPPING] * 3
    for job in jobs[:2]:
        ended(w, job)
    assert w.phase(b) is JobPhase.QUEUED
    late = w.submit(part("a", 250))
    assert w.phase(late) is JobPhase.QUEUED, "the GPU is claimed"
    ended(w, jobs[2])
    assert w.phase(b) is JobPhase.PREPARING


def test_halves_that_are_freed_on_two_gpus_make_no_whole_one() -> None:
    w = world(("n1", 2), a=1, b=2)
    kept = running(w, part("b", 500), part("b", 500, 2))
    freed = running(w, part("a", 500))
    assert [w.rank(job, 0).gpus for job in (*kept, *freed)] == [
        ("GPU-n1-0",),
        ("GPU-n1-0", "GPU-n1-1"),
        ("GPU-n1-1",),
    ]

    b = w.submit(of("b", 1))

    assert phases(w, *freed) == [RUNNING], "nobody stops where it would not help"
    assert w.phase(b) is JobPhase.QUEUED


def test_a_whole_gpu_makes_room_for_a_portion_and_the_rest_of_it_is_open_to_others() -> None:
    w = world(("n1", 1), a=0, b=1)
    [whole] = running(w, of("a", 1))

    b = w.submit(part("b", 400))
    assert phases(w, whole) == [STOPPING]
    other = w.submit(part("b", 600))
    ended(w, whole)

    assert phases(w, b, other) == [JobPhase.PREPARING] * 2


def test_memory_of_a_gpu_makes_room_and_is_claimed_by_bytes() -> None:
    w = world(("n1", 1), a=0, b=1)
    jobs = running(w, memory("a", 30), memory("a", 30))

    b = w.submit(memory("b", 45))

    assert phases(w, *jobs) == [RUNNING, STOPPING]
    ended(w, jobs[1])
    assert w.phase(b) is JobPhase.PREPARING


def test_a_claim_of_a_portion_outlives_the_coordinator() -> None:
    w = world(("n1", 1), a=0, b=1)
    jobs = running(w, part("a", 600), part("a", 400))
    b = w.submit(part("b", 500))
    assert phases(w, *jobs).count(STOPPING) == 1
    w.restart()
    w.connect("n1", reports=[report(w.rank(job, 0).id, Stage.RUNNING) for job in jobs])

    victim = next(job for job in jobs if w.phase(job) is STOPPING)
    ended(w, victim)
    assert w.phase(b) is JobPhase.PREPARING
