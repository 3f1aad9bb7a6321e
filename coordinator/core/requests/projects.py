"""Projects: the tenants of a fleet, and what each is opened for."""

from dataclasses import replace

from coordinator.core.answers import Answer, ProjectKept, RefusalCause, Refused
from coordinator.core.events import ProjectAdded, ProjectChanged
from coordinator.core.turn.turn import Turn
from muster.domain.fleet.access import Project


def add(turn: Turn, event: ProjectAdded) -> Answer:
    """Make a project, unless there is one of that name."""
    if event.name in turn.cluster.projects:
        return Refused(cause=RefusalCause.CONFLICT, message=f"there is a project {event.name} already")
    project = Project(name=event.name, created_at=turn.now)
    turn.put(project)
    return ProjectKept(project=project)


def change(turn: Turn, event: ProjectChanged) -> Answer:
    """Open a project for this and nothing else; jobs that were accepted stay what they were."""
    before = turn.cluster.projects.get(event.name)
    if before is None:
        message = f"there is no project {event.name!r}; `muster projects list` shows yours"
        return Refused(cause=RefusalCause.UNKNOWN, message=message)
    project = replace(before, permissions=event.permissions)
    turn.put(project)
    return ProjectKept(project=project, before=before)
