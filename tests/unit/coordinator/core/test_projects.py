"""Projects are records of the core: added, changed, kept and loaded as jobs are."""

from coordinator.core.answers import ProjectKept, RefusalCause, Refused
from coordinator.core.events import ProjectAdded, ProjectChanged
from muster.domain.fleet.access import Permissions, Project
from tests.builders import AT, World

OPENED = Permissions(any_user=True)


def test_a_project_is_added_once() -> None:
    w = World()
    vision = Project(name="vision", created_at=AT)

    assert w.turn(ProjectAdded(name="vision")) == [ProjectKept(project=vision)]
    [again] = w.turn(ProjectAdded(name="vision"))
    assert again == Refused(cause=RefusalCause.CONFLICT, message="there is a project vision already")
    assert w.cluster.projects == {"vision": vision}


def test_what_a_project_is_opened_for_takes_the_place_of_what_it_was_opened_for() -> None:
    w = World()
    w.turn(ProjectAdded(name="vision"))
    [answer] = w.turn(ProjectChanged(name="vision", permissions=OPENED))

    before, after = Project(name="vision", created_at=AT), Project(name="vision", created_at=AT, permissions=OPENED)
    assert answer == ProjectKept(project=after, before=before)


def test_a_project_that_is_not_there_is_not_changed() -> None:
    [answer] = World().turn(ProjectChanged(name="vision", permissions=OPENED))

    assert isinstance(answer, Refused)
    assert answer.cause is RefusalCause.UNKNOWN


def test_projects_are_there_after_a_restart_of_the_coordinator() -> None:
    w = World()
    w.turn(ProjectAdded(name="vision"), ProjectChanged(name="vision", permissions=OPENED))
    w.restart()

    assert w.cluster.projects["vision"].permissions == OPENED
