"""The class of a job that names none, and what keeps a job of a class from ever running in its project."""

from collections.abc import Sequence

from coordinator.core.sharing.precedence import Bar, never
from coordinator.core.sharing.units import Units
from muster.domain.fleet.quota import UNLIMITED_AMOUNT, amounts_of_job
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.job_class import JobClass


def class_of(units: Units, spec: JobSpec, pools: Sequence[str]) -> JobClass:
    """How surely a job keeps what it gets.

    A job that names no class is guaranteed if its project is promised all of the pools that it wants. It is so, too, if
    people work in it and it fits into the quota in the first of them. Else it is what its project or its department
    says, and preemptible where they say nothing.
    """
    if spec.job_class is not None:
        return spec.job_class
    if all(_is_promised_all(units, spec.project, pool) for pool in pools):
        return JobClass.GUARANTEED
    if spec.interactive is not None and broken(units, spec, pools[0], JobClass.GUARANTEED) is None:
        return JobClass.GUARANTEED
    for unit in units.get(spec.project).line():
        said = unit.terms.everywhere.job_class
        if said is not None:
            return said
    return JobClass.PREEMPTIBLE


def broken(units: Units, spec: JobSpec, pool: str, job_class: JobClass) -> Bar | None:
    """The term that a job would break even if nothing else of its project ran; None: there is none."""
    return never(units.path(spec.project, pool), amounts_of_job(spec), units.counted(pool), job_class)


def _is_promised_all(units: Units, project: str, pool: str) -> bool:
    """Whether a project has no quota that could be used up."""
    quota = units.entitlement(project, pool).quota
    return all(quota[place] >= UNLIMITED_AMOUNT for place in units.counted(pool))
