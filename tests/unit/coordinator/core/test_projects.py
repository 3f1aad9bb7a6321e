"""Projects are records of the core: added, changed, removed, kept and loaded as jobs are."""

import pytest

from coordinator.core.answers import Accepted, NoneAccepted, ProjectGone, ProjectKept, RefusalCause, Refused
from coordinator.core.events import JobsSubmitted, ProjectAdded, ProjectChanged, ProjectRemoved, ProjectStorageLimited
from coordinator.core.records import DropProject
from muster.domain.fleet.access import DEFAULT_STORAGE, Permissions, Project
from muster.domain.fleet.project_use import ProjectUse, UseKind
from muster.domain.ids import JobId
from tests.builders import AT, World, spec

OPENED = Permissions(any_user=True)
VISION = Project(name="vision", created_at=AT)
REMOVED = ProjectRemoved(name="vision")
ABSENT = Refused(cause=RefusalCause.UNKNOWN, message="there is no project 'vision'; `muster projects list` shows yours")


def world() -> World:
    """Two projects, and no node: jobs wait until they are stopped."""
    return World(projects=["default", "vision"])


def job(w: World, **fields: object) -> JobId:
    return w.submit(spec(1, project="vision"), queue_anyway=True, **fields)


def ended_job(w: World, **fields: object) -> JobId:
    """A job of the project that has ended and is kept."""
    known = job(w, **fields)
    w.stop(known)
    return known


def in_conflict(message: str) -> Refused:
    return Refused(cause=RefusalCause.CONFLICT, message=message)


def test_a_project_is_added_once() -> None:
    w = World(projects=())

    assert w.turn(ProjectAdded(name="vision")) == [ProjectKept(project=VISION)]
    assert w.turn(ProjectAdded(name="vision")) == [in_conflict("there is a project vision already")]
    assert w.cluster.projects == {"vision": VISION}


def test_what_a_project_is_opened_for_takes_the_place_of_what_it_was_opened_for() -> None:
    [answer] = world().turn(ProjectChanged(name="vision", permissions=OPENED))

    after = Project(name="vision", created_at=AT, permissions=OPENED)
    assert answer == ProjectKept(project=after, before=VISION)


def test_a_project_may_keep_as_much_as_an_admin_says_and_is_opened_for_the_same() -> None:
    w = world()
    w.turn(ProjectChanged(name="vision", permissions=OPENED))
    [answer] = w.turn(ProjectStorageLimited(name="vision", storage=7))
    assert isinstance(answer, ProjectKept)
    assert answer.before is not None
    assert answer.before.storage == DEFAULT_STORAGE
    assert (answer.project.storage, answer.project.permissions) == (7, OPENED)


@pytest.mark.parametrize("event", [ProjectChanged(name="vision", permissions=OPENED), REMOVED])
def test_a_project_that_is_not_there_is_neither_changed_nor_removed(event: ProjectChanged | ProjectRemoved) -> None:
    assert World().turn(event) == [ABSENT]


def test_projects_are_there_after_a_restart_of_the_coordinator() -> None:
    w = world()
    w.turn(ProjectChanged(name="vision", permissions=OPENED))
    w.restart()

    assert w.cluster.projects["vision"].permissions == OPENED


def test_a_project_that_nothing_uses_is_removed_and_stays_away_after_a_restart() -> None:
    w = world()

    assert w.turn(REMOVED) == [ProjectGone(project=VISION)]
    assert list(w.cluster.projects) == ["default"]
    w.restart()
    assert list(w.cluster.projects) == ["default"]
    assert w.turn(REMOVED) == [ABSENT]


def test_the_project_that_every_fleet_has_stays() -> None:
    w = world()

    [answer] = w.turn(ProjectRemoved(name="default"))

    assert answer == in_conflict(
        "the project default stays: every fleet has it, and jobs that name no project go there"
    )
    assert "default" in w.cluster.projects


def test_a_project_with_jobs_that_have_not_ended_stays_and_says_which_and_what_to_do() -> None:
    w = world()
    first, _ = job(w), w.submit(spec(1), queue_anyway=True)

    assert w.turn(REMOVED) == [
        in_conflict(
            f"project vision is still in use, so it stays:\n  1 job has not ended ({first}): `muster stop {first}`"
        )
    ]
    more = [job(w) for _ in range(6)]
    assert w.turn(REMOVED) == [
        in_conflict(
            "project vision is still in use, so it stays:\n"
            f"  7 jobs have not ended ({', '.join(reversed(more[1:]))}, …): `muster stop --all --project vision`"
        )
    ]
    assert "vision" in w.cluster.projects


def test_what_uses_a_project_outside_the_core_keeps_it_too() -> None:
    w = world()
    uses = (
        ProjectUse(kind=UseKind.SECRET, count=1, first=("wandb",)),
        ProjectUse(kind=UseKind.TOKEN, count=2, first=("k3m8", "x2a9")),
    )

    assert w.turn(ProjectRemoved(name="vision", uses=uses)) == [
        in_conflict(
            "project vision is still in use, so it stays:\n"
            "  1 secret is kept in it (wandb): `muster secrets remove wandb --project vision`\n"
            "  2 tokens are made for it (k3m8, x2a9): `muster tokens revoke ID`"
        )
    ]
    assert "vision" in w.cluster.projects


def test_jobs_that_have_ended_outlive_their_project_and_can_still_be_deleted() -> None:
    w = world()
    known = ended_job(w)

    assert w.turn(REMOVED) == [ProjectGone(project=VISION)]
    w.restart()
    assert known in w.cluster.jobs
    assert isinstance(w.delete(known), Accepted)
    assert known not in w.cluster.jobs


def test_no_job_is_taken_for_a_project_that_is_not_there_any_more() -> None:
    w = world()
    ended_job(w, idempotency_key="k")
    w.turn(REMOVED)

    assert w.try_submit(spec(1, project="vision")) == ABSENT
    assert w.try_submit(spec(1, project="vision"), dry_run=True) == ABSENT
    assert w.try_submit(spec(1, project="vision"), idempotency_key="k") == ABSENT
    both = (w.submission(spec(1, project=name), queue_anyway=True) for name in ("default", "vision"))
    assert w.turn(JobsSubmitted(jobs=tuple(both))) == [NoneAccepted(refused={1: ABSENT})]


def test_of_a_submit_and_a_removal_in_one_turn_the_first_one_counts() -> None:
    w = world()
    [accepted, kept] = w.turn(w.submission(spec(1, project="vision"), queue_anyway=True), REMOVED)
    assert isinstance(accepted, Accepted)
    assert isinstance(kept, Refused)

    w = world()
    assert w.turn(REMOVED, w.submission(spec(1, project="vision"))) == [ProjectGone(project=VISION), ABSENT]


def test_a_name_can_be_used_again_and_the_new_project_is_opened_for_nothing() -> None:
    w = world()
    w.turn(ProjectChanged(name="vision", permissions=OPENED), REMOVED)
    w.advance(60)

    [answer] = w.turn(ProjectAdded(name="vision"))

    assert answer == ProjectKept(project=Project(name="vision", created_at=w.now))
    w.restart()
    assert w.cluster.projects["vision"].permissions == Permissions()


def test_a_project_that_is_removed_and_added_in_one_turn_is_the_new_one() -> None:
    w = world()
    w.turn(ProjectChanged(name="vision", permissions=OPENED))

    w.turn(REMOVED, ProjectAdded(name="vision"))

    w.restart()
    assert w.cluster.projects["vision"].permissions == Permissions()


def test_a_project_that_is_added_and_removed_in_one_turn_was_never_there() -> None:
    w = World()

    w.turn(ProjectAdded(name="vision"), REMOVED)

    w.restart()
    assert list(w.cluster.projects) == ["default"]


def test_a_new_project_does_not_take_over_what_is_left_of_an_older_one() -> None:
    w = world()
    known = ended_job(w)
    w.turn(REMOVED)
    left = ProjectUse(kind=UseKind.GRANT, count=1, first=("ada",))
    said = "there was a project vision before, and a new one must not take over what is left of it:\n"

    assert w.turn(ProjectAdded(name="vision", uses=(left,))) == [
        in_conflict(
            f"{said}  1 job of it is still kept ({known}): `muster delete {known}`\n"
            "  1 account has access to it (ada): `muster projects revoke vision ada`"
        )
    ]
    w.delete(known)
    assert w.turn(ProjectAdded(name="vision")) == [ProjectKept(project=VISION)]


def test_the_default_project_is_made_even_where_jobs_name_it_already() -> None:
    w = World()
    w.stop(w.submit(spec(1), queue_anyway=True))
    w.store.commit([DropProject(project="default")])
    w.restart()

    assert w.turn(ProjectAdded(name="default")) == [ProjectKept(project=Project(name="default", created_at=w.now))]
