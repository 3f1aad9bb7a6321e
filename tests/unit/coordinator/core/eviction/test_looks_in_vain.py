"""Jobs for which no victims are found: whom they do not look at, and when they are looked at again."""

from coordinator.core.scheduling.eviction.entitlement import rules_for, without_vain
from coordinator.core.scheduling.eviction.gangs import RoomSeeker
from coordinator.core.scheduling.eviction.running import RunningGangs
from muster.domain.fleet.pool import DEFAULT_POOL
from muster.domain.fleet.quota import amounts_of_job
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World
from tests.unit.coordinator.core.eviction.eviction_world import NOTHING, of, running, world


def borrowed() -> tuple[World, list[JobId]]:
    """Project a runs on all GPUs, half of them borrowed; b is promised none, and gets nothing of what is left over."""
    w = world(("n1", 8))
    w.promise("b", quota=0, weight=0)
    return w, running(w, *[of("a")] * 4)


def candidates(w: World, project: str) -> set[JobId]:
    """The gangs that any rule would look at for a job of a project, of those that run."""
    units = w.cluster.unit_load.units
    seeker = RoomSeeker(
        path=units.path(project, DEFAULT_POOL),
        size=amounts_of_job(of(project)),
        job_class=JobClass.PREEMPTIBLE,
        priority=0,
        counted=units.counted(DEFAULT_POOL),
    )
    gangs = RunningGangs(w.cluster, seeker, DEFAULT_POOL, w.now, 16).gangs
    bounded = (rule for rule in rules_for(seeker) if rule.bound is not None)
    return {gang.attempt.job for rule in bounded for gang in without_vain(rule, seeker, gangs)}


def test_who_has_no_right_to_their_seats_looks_at_no_gangs_of_others_but_spare_ones() -> None:
    w, (first, *others) = borrowed()
    w.tell_all(first, Stage.EXITED, exit=Exit(code=0), log_complete=True)
    [spare] = running(w, of("a", job_class=JobClass.SPARE))
    assert candidates(w, "b") == {spare}

    w.promise("b", quota=4, min_runtime=NOTHING)
    assert candidates(w, "b") == {spare, *others}


def test_what_was_looked_for_in_vain_is_looked_for_again_once_terms_give_a_right_to_it() -> None:
    w, jobs = borrowed()
    waiting = w.submit(of("b"))
    assert [w.phase(job) for job in jobs] == [JobPhase.RUNNING] * 4

    w.promise("b", quota=2)
    assert [w.phase(job) for job in jobs] == [JobPhase.RUNNING] * 3 + [JobPhase.STOPPING]
    assert w.attempt(waiting).claim is not None
