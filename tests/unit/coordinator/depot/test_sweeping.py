"""What a sweep of the depot removes, and that nothing goes which a job names, or was just used."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from coordinator.depot.messages import DepotHolds, DepotNames, DepotSwept
from coordinator.depot.sweeping import NAMES_COUNT_FOR, UNNAMED_KEPT, KeptTrees, NamesOfTrees, Sweep, kept_trees
from muster.domain.data.tree import ContentEntry, ContentKind, ContentTree, content_tree
from muster.transfer.objects import ObjectFiles

NOW = datetime(2026, 11, 25, tzinfo=UTC)
OLD = (NOW - UNNAMED_KEPT - timedelta(minutes=1)).timestamp()


class Shelf:
    """Objects of a directory, and trees that were put there long ago."""

    def __init__(self, directory: Path) -> None:
        self.objects = ObjectFiles(directory)
        self._directory = directory

    def put(self, content: bytes, at: float = OLD) -> str:
        digest = sha256(content).hexdigest()
        with self.objects.arriving(digest, len(content)) as arriving:
            arriving.write(content)
            arriving.commit()
        os.utime(self._path(digest), (at, at))
        return digest

    def tree(self, *contents: bytes) -> ContentTree:
        entries = (
            ContentEntry(path=f"{number}.py", kind=ContentKind.FILE, size=len(content), content=self.put(content))
            for number, content in enumerate(contents)
        )
        tree = content_tree(entries)
        self.put(tree.form)
        return tree

    def has(self, tree: ContentTree) -> bool:
        """Whether a tree is there with all that it lists."""
        return all(self.objects.size(each) is not None for each in _objects_of(tree))

    @property
    def digests(self) -> set[str]:
        return {digest for digest, _ in self.objects.all()}

    def sweep(self, names: Mapping[str, set[str]], now: datetime = NOW) -> Sweep:
        return Sweep(objects=self.objects, names=names, now=lambda: now)

    def _path(self, digest: str) -> Path:
        return self._directory / "objects" / digest[:2] / digest


def _objects_of(tree: ContentTree) -> set[str]:
    return {tree.digest, *(each.digest for each in tree.objects)}


@pytest.fixture(name="shelf")
def _shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def swept(sweep: Sweep) -> DepotSwept:
    for _ in sweep.steps():
        pass
    assert sweep.outcome is not None
    return sweep.outcome


def test_what_no_job_names_goes_and_what_one_names_stays(shelf: Shelf) -> None:
    named, other = shelf.tree(b"shared", b"mine"), shelf.tree(b"shared", b"other")
    outcome = swept(shelf.sweep({"vision": {named.digest}}))
    assert shelf.digests == _objects_of(named)
    assert (outcome.removed_objects, outcome.removed_bytes) == (2, len(b"other") + len(other.form))
    assert (outcome.objects, outcome.unnamed_objects) == (3, 0)


def test_what_was_used_within_a_day_stays(shelf: Shelf) -> None:
    fresh = shelf.put(b"fresh", at=(NOW - UNNAMED_KEPT + timedelta(minutes=1)).timestamp())
    shelf.put(b"old")
    outcome = swept(shelf.sweep({}))
    assert shelf.digests == {fresh}
    assert (outcome.unnamed_objects, outcome.unnamed_bytes) == (1, len(b"fresh"))


def test_an_object_of_two_projects_counts_for_each_and_once_for_all(shelf: Shelf) -> None:
    one, two = shelf.tree(b"shared", b"one"), shelf.tree(b"shared", b"two")
    sweep = shelf.sweep({"vision": {one.digest}, "speech": {one.digest, two.digest}})
    outcome = swept(sweep)
    vision = len(b"sharedone") + len(one.form)
    assert sweep.holds == (
        DepotHolds(project="speech", trees=2, objects=5, bytes=vision + len(b"two") + len(two.form)),
        DepotHolds(project="vision", trees=1, objects=3, bytes=vision),
    )
    assert (outcome.objects, outcome.bytes) == (5, vision + len(b"two") + len(two.form))


def test_a_tree_says_nothing_of_how_much_is_there(shelf: Shelf) -> None:
    content = shelf.put(b"as large as it is")
    lying = content_tree([ContentEntry(path="a", kind=ContentKind.FILE, size=0, content=content)])
    shelf.put(lying.form)
    sweep = shelf.sweep({"vision": {lying.digest}})
    swept(sweep)
    assert sweep.holds[0].bytes == len(b"as large as it is") + len(lying.form)


def test_a_sweep_that_ends_early_has_removed_only_what_nobody_names(tmp_path: Path) -> None:
    steps = 0
    while True:
        shelf = Shelf(tmp_path / str(steps))
        first, second = shelf.tree(b"shared", b"first"), shelf.tree(b"shared", b"second")
        shelf.tree(b"shared", b"unnamed")
        going = shelf.sweep({"a": {first.digest}, "b": {second.digest}}).steps()
        ended = any(next(going, True) for _ in range(steps))
        assert shelf.has(first)
        assert shelf.has(second)
        if ended:
            assert shelf.digests == _objects_of(first) | _objects_of(second)
            return
        steps += 37


def test_nothing_goes_before_all_names_were_read(shelf: Shelf) -> None:
    trees = [shelf.tree(b"%d" % number) for number in range(3)]
    before = shelf.digests
    going = shelf.sweep({"vision": {trees[0].digest, trees[1].digest}}).steps()
    next(going)
    next(going)
    assert shelf.digests == before


def test_a_tree_that_is_kept_while_a_sweep_goes_on_stays_whole(shelf: Shelf) -> None:
    old = shelf.tree(*(b"%d" % number for number in range(50)))
    assert min(_objects_of(old)) > "01"  # the first step looks at none of them
    going = shelf.sweep({}).steps()
    next(going)
    assert kept_trees(shelf.objects, [old.digest]) == ()
    for _ in going:
        pass
    assert shelf.has(old)


def test_of_a_tree_that_lost_something_a_sender_is_told(shelf: Shelf) -> None:
    tree, no_tree = shelf.tree(b"a", b"b"), shelf.put(b"no tree")
    shelf.objects.remove(tree.objects[0].digest)
    gone = "ab" * 32
    assert kept_trees(shelf.objects, [tree.digest, no_tree, gone, "../etc"]) == (tree.digest, no_tree, gone, "../etc")


def test_a_tree_that_was_kept_lately_is_not_looked_at_again(shelf: Shelf) -> None:
    tree, now = shelf.tree(b"a", b"b"), [NOW]
    kept = KeptTrees(shelf.objects, lambda: now[0])
    assert kept.keep([tree.digest]) == ()
    shelf.objects.remove(tree.objects[0].digest)
    assert kept.keep([tree.digest]) == ()
    now[0] += timedelta(hours=1)
    assert kept.keep([tree.digest]) == kept.keep([tree.digest]) == (tree.digest,)


def test_names_that_are_too_old_count_no_more(shelf: Shelf) -> None:
    shelf.put(b"old")
    now = [NOW]
    sweep = Sweep(objects=shelf.objects, names={}, now=lambda: now[0])
    going = sweep.steps()
    next(going)
    now[0] += NAMES_COUNT_FOR
    assert next(going, None) is None
    assert sweep.outcome is None


def test_names_count_only_if_all_have_come() -> None:
    names = NamesOfTrees()
    names.take(DepotNames(project="vision", trees=("ab" * 32,)))
    names.take(DepotNames(project="vision", trees=("cd" * 32, "no digest")))
    assert names.all(2) is None
    assert names.all(3) == {"vision": {"ab" * 32, "cd" * 32}}
