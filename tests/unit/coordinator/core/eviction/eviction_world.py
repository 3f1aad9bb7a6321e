"""A fleet of two projects that are promised the same, whose jobs make room for each other."""

from datetime import timedelta
from typing import Any

from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import State
from tests.builders import World, pass_time, spec

NOTHING = timedelta()
LEASE_SECONDS = 31


def world(*nodes: tuple[str, int], min_runtime: timedelta = NOTHING, **quotas: int) -> World:
    """A fleet that has run for a while, whose projects a and b are promised so many GPUs."""
    found = World(*nodes, projects=("default", "a", "b"))
    for project, quota in {"a": 4, "b": 4, **quotas}.items():
        found.promise(project, quota=quota, min_runtime=min_runtime)
    found.promise("default", quota=0)
    pass_time(found, LEASE_SECONDS)
    return found


def of(project: str, gpus: int = 2, count: int = 1, **fields: Any) -> JobSpec:
    return spec(count, gpus=gpus, project=project, **{"job_class": JobClass.PREEMPTIBLE, **fields})


def running(w: World, *wanted: JobSpec) -> list[JobId]:
    """Jobs that run, each started ten seconds after the one before."""
    jobs = []
    for each in wanted:
        jobs.append(w.running(each))
        pass_time(w, 10)
    return jobs


def ended(w: World, job: JobId, code: int = 143) -> None:
    """Every execution that is being stopped says that it has ended."""
    for member in list(w.cluster.gangs.members(w.cluster.jobs[job].attempt_id)):
        if member.state is State.STOPPING:
            w.tell(job, member.rank, Stage.EXITED, exit=Exit(code=code))
