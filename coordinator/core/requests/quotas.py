"""What admins ask about departments and quotas: all of a change is done, or nothing of it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from coordinator.core.answers import Answer, QuotasSet, RefusalCause, Refused
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.job_index import Among
from coordinator.core.events import QuotasChanged
from coordinator.core.records import Job
from coordinator.core.requests import node_types
from coordinator.core.requests.pools import known_pools, unknown_pool
from coordinator.core.requests.projects import unknown_project
from coordinator.core.sharing.job_classes import class_of
from coordinator.core.sharing.units import Units
from coordinator.core.turn.turn import Turn
from muster.domain.fleet.quota import (
    MOST_UNITS,
    RESOURCES,
    UNLIMITED_AMOUNT,
    Department,
    QuotaUnit,
    UnitChange,
    UnitKind,
    amount_text,
)
from muster.domain.jobs.lifecycle import NOT_PLACED


def change(turn: Turn, event: QuotasChanged) -> Answer:
    """Promise departments and projects what was asked for, unless they are others than when somebody looked."""
    refused = _refusal(turn.cluster, event.changes)
    if refused is not None:
        return refused
    units, gone = turn.cluster.unit_load.units, list[Department]()
    counted = {pool: units.counted(pool) for pool in units.pools}
    for each in sorted(event.changes, key=lambda each: each.after is None or each.after.kind is UnitKind.PROJECT):
        if each.after is None:
            gone.append(turn.cluster.records.departments[each.name])
        else:
            _put(turn, each.after)
    for department in gone:
        turn.forget(department)
    counts_otherwise = any(units.counted(pool) != before for pool, before in counted.items())
    _settle_jobs(turn, None if counts_otherwise else _below(turn.cluster, event.changes))
    turn.reconsider_queue()
    return QuotasSet(warnings=tuple(warnings(turn.cluster)))


def unit_of(cluster: Cluster, name: str) -> QuotaUnit | None:
    """A department or a project as it is now; None: there is none of that name."""
    found = cluster.projects.get(name) or cluster.records.departments.get(name)
    return None if found is None else found.unit


def warnings(cluster: Cluster) -> Iterator[str]:
    """What of the quotas cannot be kept, or may surprise."""
    load, known = cluster.unit_load, known_pools(cluster)
    load.settle()
    for named in load.units:
        for pool in sorted(named.terms.pools.keys() - known):
            yield f"{named.name} has terms for a pool that is not there: {unknown_pool(cluster, pool)}"
    for pool in load.units.pools:
        standings = load.units.in_pool(pool)
        for place in standings.counted:
            for unit in load.units:
                if unit.kind is UnitKind.PROJECT and standings.entitlement(unit).quota[place] >= UNLIMITED_AMOUNT:
                    yield (
                        f"project {unit.name} is promised all of pool {pool}, so its jobs go before others; "
                        f"`muster quota set {unit.name} {RESOURCES[place]}=0` ends that"
                    )
            yield from _broken_promises(load.units, pool, place)


def _broken_promises(units: Units, pool: str, place: int) -> Iterator[str]:
    """Where the units below one are promised more of a resource than that has."""
    standings, what = units.in_pool(pool), RESOURCES[place]
    all_of_it = standings.root.share[place]
    promised: Counter[str] = Counter()
    has = {"": (f"the pool has {amount_text(what, all_of_it)}", all_of_it)}
    for unit in units:
        quota = standings.entitlement(unit).quota[place]
        if unit.kind is UnitKind.DEPARTMENT:
            has[unit.name] = (f"department {unit.name} is promised {amount_text(what, quota)}", quota)
        if quota < UNLIMITED_AMOUNT:
            promised["" if unit.above is None else unit.above.name] += quota
    for above, total in promised.items():
        told, most = has[above]
        if total > most:
            yield f"quotas promise {amount_text(what, total)} of pool {pool}, and {told}"


def _refusal(cluster: Cluster, changes: Sequence[UnitChange]) -> Refused | None:
    """Why a change is not made; None: it can be."""
    names = {each.name for each in changes}
    if len(names) < len(changes):
        return Refused(cause=RefusalCause.CONFLICT, message="a department or a project is named twice")
    departments = {name for name in cluster.records.departments if name not in names}
    departments |= {each.name for each in changes if each.after and each.after.kind is UnitKind.DEPARTMENT}
    for each in changes:
        found = unit_of(cluster, each.name)
        if found != each.before:
            return _outdated(each, found)
        if each.after is not None and (refused := _refused_after(each.after, found, departments)) is not None:
            return refused
    for project in cluster.projects.values():
        if project.name not in names and project.department and project.department not in departments:
            message = f"department {project.department} still has project {project.name}"
            return Refused(cause=RefusalCause.CONFLICT, message=message)
    count = len(departments) + len(cluster.projects)
    if count > MOST_UNITS:
        message = f"{count} departments and projects are more than the {MOST_UNITS} that a fleet can have"
        return Refused(cause=RefusalCause.EXHAUSTED, message=message)
    return None


def _outdated(asked: UnitChange, found: QuotaUnit | None) -> Refused:
    if asked.before is None and found is not None:
        message = f"there is a {found.kind} {found.name} already"
        return Refused(cause=RefusalCause.CONFLICT, message=message)
    if found is None:
        assert asked.before is not None, "what is new is not looked for"
        message = f"there is no {asked.before.kind} {asked.name!r}; `muster quota` shows all"
        return Refused(cause=RefusalCause.UNKNOWN, message=message)
    message = f"the terms of {asked.name} have changed since they were looked at; look again with `muster quota show`"
    return Refused(cause=RefusalCause.CONFLICT, message=message)


def _refused_after(after: QuotaUnit, found: QuotaUnit | None, departments: set[str]) -> Refused | None:
    if after.kind is UnitKind.PROJECT and found is None:
        return unknown_project(after.name)
    if found is not None and found.kind is not after.kind:
        message = f"{after.name} is a {found.kind}, and cannot become a {after.kind}"
        return Refused(cause=RefusalCause.CONFLICT, message=message)
    if after.department and (after.kind is UnitKind.DEPARTMENT or after.department not in departments):
        message = (
            f"there is no department {after.department!r}; `muster departments add {after.department}` makes one"
            if after.kind is UnitKind.PROJECT
            else "departments cannot be in departments"
        )
        return Refused(cause=RefusalCause.UNKNOWN, message=message)
    return None


def _put(turn: Turn, unit: QuotaUnit) -> None:
    if unit.kind is UnitKind.PROJECT:
        project = turn.cluster.projects[unit.name]
        turn.put(replace(project, department=unit.department, terms=unit.terms))
        return
    known = turn.cluster.records.departments.get(unit.name)
    created_at = turn.now if known is None else known.created_at
    turn.put(Department(name=unit.name, created_at=created_at, terms=unit.terms))


def _below(cluster: Cluster, changes: Sequence[UnitChange]) -> frozenset[str]:
    """The projects for which some terms may be others: those that are changed, and all of their departments.

    A department of which nothing is said is promised what its projects are.
    """
    changed = {each.name for each in changes}
    changed |= {unit.department for each in changes for unit in (each.before, each.after) if unit and unit.department}
    return frozenset(
        each.name for each in cluster.projects.values() if not changed.isdisjoint((each.name, each.department))
    )


def _settle_jobs(turn: Turn, projects: frozenset[str] | None) -> None:
    """Have jobs of projects that are not placed follow these in what they do not say, as their terms may be others.

    None: of all projects, as other resources count in a pool than before.

    What such a job has claimed is given back: what it may evict is other too, and it may be on nodes of a type that it
    may not use any more.
    """
    cluster = turn.cluster
    live = cluster.job_index.newest_first(among=Among(projects=projects, live=True))
    for job in [cluster.jobs[name] for _, name in live if name is not None]:
        if cluster.gangs.rank(job.attempt_id, 0).state in NOT_PLACED:
            settled = node_types.followed(cluster, _with_class(cluster, job))
            if settled is not job:
                turn.put(replace(cluster.attempts[job.attempt_id], claim=None))
                turn.put(settled)


def _with_class(cluster: Cluster, job: Job) -> Job:
    """A job with the class of its project, if it names none."""
    if job.spec.job_class is not None:
        return job
    job_class = class_of(cluster.unit_load.units, job.spec, cluster.unit_load.pools_of(job.spec))
    return job if job_class is job.job_class else replace(job, job_class=job_class)
