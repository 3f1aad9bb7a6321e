"""Evictions decided for a gang, in a fleet that others have borrowed whole.

Two hundred projects in twenty departments have no quota and hold everything, with gangs of one and of eight nodes. One
project is promised what it asks for.
"""

import gc
from collections.abc import Iterator
from datetime import timedelta

from bench.core_fleet import GPUS, NODES, Fleet, reported, timed_at_pace
from bench.figures import Bar
from bench.programs import ProgramError
from bench.setting import Setting
from bench.uneven_fleet import uneven_inventory
from coordinator.core.events import JobSubmitted, ProjectAdded, QuotasChanged
from coordinator.core.scheduling.eviction.course import Decision, decide
from muster.domain.fleet.pool import DEFAULT_POOL
from muster.domain.fleet.quota import AmountBounds, QuotaTerms, QuotaUnit, UnitChange, UnitKind, UnitTerms
from muster.domain.gangs.plan import Stage
from muster.domain.ids import AttemptId, JobId
from muster.domain.jobs.job import JobSpec, Resources, Role
from muster.domain.jobs.job_class import JobClass

PROJECTS, DEPARTMENTS = 200, 20
OWNER = "owner"
"""The project that is promised something."""
WIDE = 8
"""Nodes of every second gang."""
PLACED_AT_ONCE = 100
"""Gangs that one turn takes in, as a cycle looks at no more."""
_OF = f"{NODES:,} uneven nodes, {NODES * GPUS:,} GPUs, {PROJECTS} projects"
BARS = {
    64: Bar(figure=f"eviction decided for 64 GPUs, {_OF}", limit=2, unit="ms"),
    512: Bar(figure=f"eviction decided for 512 GPUs, {_OF}", limit=None, unit="ms"),
    2048: Bar(figure=f"eviction decided for 2,048 GPUs, {_OF}", limit=10, unit="ms"),
}


def measure(setting: Setting) -> None:
    """Each size by itself; what is decided is not carried out."""
    it, repeats = crowded(), setting.repeats(30, 10)
    for gpus, bar in BARS.items():
        job = it.cluster.jobs[wanted(it, gpus)]
        values, pace = timed_at_pace(repeats, lambda job=job: decide(it.cluster, job, DEFAULT_POOL, None, it.now))  # type: ignore[misc]  # mypy infers no types of defaults in lambdas
        decided = decide(it.cluster, job, DEFAULT_POOL, None, it.now)
        if not isinstance(decided, Decision) or sum(gang.size.gpus for gang in decided.victims) < gpus * 1000:
            raise ProgramError(f"a job of {gpus} GPUs evicts {decided}")
        setting.findings.take(f"evictions: {bar.figure}", values, "ms", pace)
        setting.findings.at_pace(bar, f"evictions: {bar.figure}")
    gc.unfreeze()


def crowded() -> Fleet:
    """A fleet whose GPUs are all borrowed, by gangs that have run for different times."""
    it = Fleet(NODES, uneven_inventory, full=False)
    names = [f"project-{number}" for number in range(PROJECTS)]
    it.take(*(ProjectAdded(name=name) for name in (OWNER, *names)))
    it.take(QuotasChanged(changes=tuple(_terms(names))))
    gangs = [WIDE if number % 2 else 1 for number in range(2 * NODES // (WIDE + 1))]
    events = [_gang(it, number, count, names[number % PROJECTS]) for number, count in enumerate(gangs)]
    for first in range(0, len(events), PLACED_AT_ONCE):
        it.now += timedelta(seconds=7)
        taken = events[first : first + PLACED_AT_ONCE]
        it.take(*taken)
        for stage in (Stage.PREPARED, Stage.ARMED, Stage.RUNNING):
            members = (member for each in taken for member in it.cluster.gangs.members(AttemptId(each.job, 1)))
            it.take(*(reported(member, stage) for member in list(members) if member.node is not None))
    gc.collect()
    gc.freeze()
    return it


def wanted(it: Fleet, gpus: int) -> JobId:
    """A job of the owner that waits; nobody is evicted for it in the first seconds of a coordinator."""
    event = _gang(it, 0, gpus // GPUS, OWNER)
    it.cluster.started_at = it.now
    it.take(event)
    if it.cluster.queue.position(event.job) == 0:
        raise ProgramError(f"a job of {gpus} GPUs does not wait")
    return event.job


def _gang(it: Fleet, number: int, count: int, project: str) -> JobSubmitted:
    it.jobs += 1
    role = Role(count=count, command=("train",), resources=Resources(gpus=GPUS, cpu_millis=1000 * GPUS))
    spec = JobSpec(
        name=f"train-{it.jobs}",
        project=project,
        roles=(role,),
        job_class=JobClass.PREEMPTIBLE,
        priority=number // PROJECTS % 3,
    )
    return JobSubmitted(job=JobId(f"j{it.jobs}"), spec=spec)


def _terms(names: list[str]) -> Iterator[UnitChange]:
    for number in range(DEPARTMENTS):
        yield UnitChange(before=None, after=QuotaUnit(name=f"department-{number}", kind=UnitKind.DEPARTMENT))
    for number, name in enumerate((OWNER, *names)):
        before = QuotaUnit(name=name, kind=UnitKind.PROJECT)
        quota = AmountBounds(gpus=NODES * GPUS * 1000 if name == OWNER else 0)
        terms = UnitTerms(everywhere=QuotaTerms(quota=quota, min_runtime=timedelta()))
        department = "" if name == OWNER else f"department-{number % DEPARTMENTS}"
        yield UnitChange(
            before=before, after=QuotaUnit(name=name, kind=UnitKind.PROJECT, department=department, terms=terms)
        )
