"""Checkpoints of jobs: which ones stay, and which ones go."""

from coordinator.core.answers import Accepted, Refused
from coordinator.views.checkpoints import checkpoint_place, restored_place
from muster.domain.data.checkpoint import (
    INCOMPLETE_KEPT,
    CheckpointId,
    CheckpointOrder,
    CheckpointPlace,
    ToldCheckpoints,
)
from muster.domain.gangs.plan import Stage
from muster.domain.jobs.failure import Exit
from tests.builders import World, pass_time, report
from tests.unit.coordinator.core.saving import (
    fail,
    found_by,
    kept,
    order,
    part,
    restores,
    save,
    save_all,
    saving,
    start_again,
    whole,
)


def test_a_part_that_is_told_again_does_not_come_back_once_it_is_gone() -> None:
    w = World(("a", 0))
    job = w.running(saving(1, keep=1))
    old, new = part("step-100", 1), part("step-200", 2)
    save(w, job, 0, old)
    save(w, job, 0, old, new)
    assert kept(w, job) == {"step-200"}
    save(w, job, 0, old, new)
    w.restart()
    told = ToldCheckpoints(parts=(old, new))
    w.connect("a", reports=(report(w.rank(job, 0).id, Stage.RUNNING, checkpoints=told),))

    assert (whole(w, job), w.attempt(job).checkpoints.whole) == (["step-200"], 2)


def test_the_newest_whole_ones_stay_and_what_they_overtook_goes() -> None:
    w = World(("a", 0))
    job = w.running(saving(2, keep=2))
    for number, name in enumerate(("a", "b", "c"), start=1):
        save_all(w, job, name, number)
    assert whole(w, job) == ["c", "b"]
    save(w, job, 0, part("ahead", 5, "0"), part("far-ahead", 6, "0"))
    save(w, job, 1, part("alone", 4, "1"), part("ahead", 5, "1"))

    assert whole(w, job) == ["ahead", "c"]
    assert kept(w, job) == {"ahead", "c", "far-ahead"}


def test_those_that_never_become_whole_do_not_pile_up() -> None:
    w = World(("a", 0))
    job = w.running(saving(2))
    for number in range(1, INCOMPLETE_KEPT + 4):
        save(w, job, 0, part(f"step-{number}", number, "0"))

    assert kept(w, job) == {f"step-{number}" for number in range(4, INCOMPLETE_KEPT + 4)}
    assert len(w.store.load().parts) == INCOMPLETE_KEPT


def test_what_is_pinned_or_in_use_stays() -> None:
    w = World(("a", 0))
    job = w.running(saving(1, keep=1))
    save(w, job, 0, part("a", 1))
    order(w, job, "a", CheckpointOrder.PIN)
    save(w, job, 0, part("b", 2))
    start_again(w, job)
    assert restores(w, job) == CheckpointId(1, "b")
    save(w, job, 0, part("c", 1))
    save(w, job, 0, part("d", 2))
    assert kept(w, job) == {"a", "b", "d"}
    order(w, job, "a", CheckpointOrder.UNPIN)

    assert kept(w, job) == {"b", "d"}


def test_what_an_attempt_began_with_stays_as_it_was_chosen_whatever_is_told_late_of_the_one_before() -> None:
    w = World(("a", 0), ("b", 0))
    job = w.running(saving(1))
    node, first = w.seat(job), w.rank(job, 0).id
    save(w, job, 0, part("latest", 1, "100"))
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=1), checkpoints=ToldCheckpoints(storing=True))
    w.disconnect(node)
    pass_time(w, 200, node)
    chosen = found_by(w, job)
    late = ToldCheckpoints(parts=(part("latest", 2, "200"),))
    w.connect(str(node), reports=(report(first, Stage.EXITED, exit=Exit(code=1), checkpoints=late),))

    assert (w.cluster.jobs[job].attempt, restores(w, job)) == (2, CheckpointId(1, "latest"))
    assert found_by(w, job) == chosen != None  # noqa: E711 - a chain
    assert [each.tree for each in w.store.load().parts] == [part("latest", 1, "100").tree]


def test_a_bad_one_goes_once_there_is_a_newer_one() -> None:
    w = World(("a", 0))
    job = w.running(saving(1))
    save(w, job, 0, part("good", 1), part("broken", 2))
    for _ in range(3):
        start_again(w, job)
    save(w, job, 0, part("newer", 1))

    assert kept(w, job) == {"good", "newer"}
    assert w.cluster.jobs[job].checkpoints.bad == ()


def test_all_of_it_goes_with_its_job() -> None:
    w = World(("a", 0))
    job = w.running(saving(1))
    save(w, job, 0, part("step-100", 1))
    w.delete(job, force=True)
    w.tell(job, 0, Stage.STOPPED)

    assert kept(w, job) == set()
    assert w.store.load().parts == ()


def test_one_that_is_removed_is_gone_and_not_restored() -> None:
    w = World(("a", 0))
    job = w.running(saving(1))
    save(w, job, 0, part("a", 1), part("b", 2))
    order(w, job, "b", CheckpointOrder.PIN)
    assert isinstance(order(w, job, "b", CheckpointOrder.REMOVE), Accepted)
    fail(w, job)

    assert restores(w, job) == CheckpointId(1, "a")
    assert w.cluster.jobs[job].checkpoints.pinned == ()
    assert [each.name for each in w.store.load().parts] == ["a"]


def test_one_with_which_the_attempt_began_is_not_removed_nor_one_that_is_not_there() -> None:
    w = World(("a", 0))
    job = w.running(saving(1))
    save(w, job, 0, part("a", 1))
    fail(w, job)

    in_use, nowhere = (order(w, job, name, CheckpointOrder.REMOVE) for name in ("a", "b"))
    assert isinstance(in_use, Refused)
    assert isinstance(nowhere, Refused)
    assert in_use.message == "attempt 2 of job j001 began with a of attempt 1, so it stays while that goes on"
    assert nowhere.message == "job j001 has no checkpoint b of attempt 1"


def test_a_node_is_told_where_its_parts_go_in_a_store_and_which_of_them_stay() -> None:
    w = World(("a", 0))
    job = w.running(saving(2, keep=1, to="s3://acme/saved/", secret="store"))
    for number, name in enumerate(("one", "two"), 1):
        save_all(w, job, name, number)
    start_again(w, job)
    save(w, job, 1, part("three", 1, "1"))
    below = f"s3://acme/saved/{w.cluster.jobs[job].spec.name}-{job}"
    assert checkpoint_place(w.cluster, w.rank(job, 1)) == CheckpointPlace(
        to=f"{below}/2/1",
        secret="store",
        earlier=(f"{below}/1/1",),
        kept=tuple(sorted((part("two", 2, "1").tree, part("three", 1, "1").tree))),
        told=1,
    )
    for rank, tree in ((0, "0"), (1, "1")):
        found = restored_place(w.cluster, w.rank(job, rank), part("two", 2, tree).tree)
        assert found == CheckpointPlace(to=f"{below}/1/{rank}", secret="store")
    assert restored_place(w.cluster, w.rank(job, 1), part("two", 2, "0").tree) == CheckpointPlace(
        to=f"{below}/1/0", secret="store"
    )
