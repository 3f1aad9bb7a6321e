"""What admins ask about projects: make one, say what its jobs may ask for, and remove one."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from coordinator.core.answers import Answer, ProjectGone, ProjectKept, RefusalCause, Refused
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.job_index import Among
from coordinator.core.events import ProjectAdded, ProjectChanged, ProjectRemoved, ProjectStorageLimited
from coordinator.core.turn.notices import notice_fleet
from coordinator.core.turn.turn import Turn
from muster.domain.event import FleetEventKind
from muster.domain.fleet.access import Project, no_project
from muster.domain.fleet.project_use import USERS_NAMED, ProjectUse, UseKind
from muster.domain.jobs.job import DEFAULT_PROJECT


def add(turn: Turn, event: ProjectAdded) -> Answer:
    """Make a project, unless there is one of that name, or it would take over what is left of an older one."""
    if event.name in turn.cluster.projects:
        message = f"there is a project {event.name} already"
        return Refused(cause=RefusalCause.CONFLICT, message=message)
    if event.name in turn.cluster.records.departments:
        message = f"there is a department {event.name}, and no project can have its name"
        return Refused(cause=RefusalCause.CONFLICT, message=message)
    # The default project is never removed, so that its jobs are its own.
    jobs = () if event.name == DEFAULT_PROJECT else _jobs(turn.cluster, event.name, UseKind.KEPT_JOB)
    if left := (*jobs, *event.uses):
        message = f"there was a project {event.name} before, and a new one must not take over what is left of it"
        return _used(event.name, message, left)
    project = Project(name=event.name, created_at=turn.now)
    notice_fleet(turn, FleetEventKind.PROJECT_ADDED, project=event.name)
    turn.put(project)
    return ProjectKept(project=project)


def change(turn: Turn, event: ProjectChanged | ProjectStorageLimited) -> Answer:
    """Open a project for this and nothing else, or limit its storage; jobs that were accepted stay what they were."""
    before = turn.cluster.projects.get(event.name)
    if before is None:
        return unknown_project(event.name)
    match event:
        case ProjectChanged(permissions=permissions):
            project = replace(before, permissions=permissions)
        case ProjectStorageLimited(storage=storage):
            project = replace(before, storage=storage)
    if project != before:
        notice_fleet(turn, FleetEventKind.PROJECT_CHANGED, project=event.name)
    turn.put(project)
    return ProjectKept(project=project, before=before)


def remove(turn: Turn, event: ProjectRemoved) -> Answer:
    """Forget a project that nothing uses; its jobs that have ended stay."""
    project = turn.cluster.projects.get(event.name)
    if project is None:
        return unknown_project(event.name)
    if event.name == DEFAULT_PROJECT:
        message = f"the project {DEFAULT_PROJECT} stays: every fleet has it, and jobs that name no project go there"
        return Refused(cause=RefusalCause.CONFLICT, message=message)
    if uses := (*_jobs(turn.cluster, event.name, UseKind.JOB), *event.uses):
        return _used(event.name, f"project {event.name} is still in use, so it stays", uses)
    notice_fleet(turn, FleetEventKind.PROJECT_REMOVED, project=event.name)
    turn.forget(project)
    return ProjectGone(project=project)


def unknown_project(name: str) -> Refused:
    """The answer about a project that is not there."""
    return Refused(cause=RefusalCause.UNKNOWN, message=no_project(name))


def _used(name: str, message: str, uses: Sequence[ProjectUse]) -> Refused:
    lines = "".join(f"\n  {use.told(name)}" for use in uses)
    return Refused(cause=RefusalCause.CONFLICT, message=f"{message}:{lines}")


def _jobs(cluster: Cluster, name: str, kind: UseKind) -> tuple[ProjectUse, ...]:
    """The use of a project by its jobs; counted without a look at each, as there may be very many."""
    live = kind is UseKind.JOB
    count = cluster.job_index.count_in(name, live=live)
    if not count:
        return ()
    newest = cluster.job_index.newest_first(among=Among(projects=(name,), live=live))
    first = tuple(job for _, job in islice(newest, USERS_NAMED) if job is not None)
    return (ProjectUse(kind=kind, count=count, first=first),)
