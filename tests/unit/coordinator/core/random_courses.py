"""Small fleets with projects, quotas and jobs of all classes, and courses of events that are the same each time."""

from datetime import timedelta
from random import Random

from muster.domain.gangs.plan import Stage
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec, Timeouts
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.builders import World, pass_time, spec

NODES = {"n1": 4, "n2": 4, "n3": 2}
LEASE_SECONDS = 40
"""After which evictions are decided."""
STAGES = (Stage.PREPARED, Stage.ARMED, Stage.RUNNING)


def fleet(random: Random) -> World:
    """Three nodes and two projects, of which nobody is protected."""
    w = World(*NODES.items(), projects=("default", "a", "b"))
    for project in ("a", "b"):
        w.promise(project, quota=random.choice((0, 2, 4)), min_runtime=timedelta(), limit=random.choice((6, 100)))
    pass_time(w, LEASE_SECONDS)
    return w


def any_job(random: Random) -> JobSpec:
    """A job that the fleet could run."""
    run = random.choice((None, timedelta(minutes=random.choice((1, 20)))))
    return spec(
        random.choice((1, 1, 2, 3)),
        gpus=random.choice((1, 1, 2)),
        project=random.choice(("a", "b", "default")),
        job_class=random.choice((JobClass.PREEMPTIBLE, JobClass.PREEMPTIBLE, JobClass.SPARE, JobClass.GUARANTEED)),
        priority=random.choice((0, 0, 5)),
        timeouts=Timeouts(check_in=timedelta(seconds=30), run=run),
    )


def start_all(w: World) -> bool:
    """Let everything run that is placed; whether there was something."""
    placed = [job for job in w.cluster.jobs if w.phase(job) is JobPhase.PREPARING]
    for job in placed:
        w.tell_all(job, *STAGES)
    return bool(placed)


def end_all(w: World) -> bool:
    """Let everything end that is to stop; whether there was something."""
    stopping = [job for job in w.cluster.jobs if w.phase(job) is JobPhase.STOPPING]
    for job in stopping:
        for member in list(w.cluster.gangs.members(w.cluster.jobs[job].attempt_id)):
            if member.state is State.STOPPING:
                w.tell(job, member.rank, Stage.EXITED, exit=Exit(code=143), log_complete=True)
    return bool(stopping)
