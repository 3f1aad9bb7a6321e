"""What victims of its own project must free so that the terms of its units bar a job no longer."""

from coordinator.core.scheduling.eviction.gangs import Lift
from coordinator.core.sharing.pool_standings import Path
from coordinator.core.sharing.precedence import BarKind, barred
from coordinator.core.sharing.unit import Unit
from muster.domain.fleet.quota import Amounts
from muster.domain.jobs.job_class import JobClass


def lift_for(
    path: Path, unit: Unit, size: Amounts, counted: tuple[int, ...], job_class: JobClass, owner: str
) -> Lift | None:
    """What must be freed for a job that is barred; None: no victims lift what bars it.

    Guaranteed jobs are no victims, so that a quota that they have used up stays used up. A number of jobs for each user
    is not lifted either: whose jobs are evicted is no matter of who submitted them.
    """
    over = [
        max(0, *(each.load(place) + size[place] - each.entitlement.limit[place] for each in path)) for place in range(3)
    ]
    amounts = Amounts(*(more if size[place] else 0 for place, more in enumerate(over)))
    jobs = max(
        (each.running + 1 - most for each in unit.line() if (most := each.terms.everywhere.max_running) is not None),
        default=0,
    )
    for standing in path if job_class is JobClass.GUARANTEED else ():
        if any(
            size[place] and standing.fixed[place] + size[place] > standing.entitlement.quota[place] for place in counted
        ):
            return None
    bar = barred(path, unit, size, counted, job_class, owner)
    if bar is not None and bar.kind is BarKind.MAX_RUNNING_PER_USER:
        return None
    return Lift(amounts=amounts, jobs=max(0, jobs))
