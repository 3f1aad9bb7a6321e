"""What lies in a directory of checkpoints is told apart: whole, half, none; and what a node keeps of it is compared."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from agent.data.checkpoints.kept import KeptParts
from agent.data.checkpoints.looking import CheckpointLook, looks
from agent.data.checkpoints.note import note_of, read_note, write_note
from agent.data.checkpoints.remembered import TREES_REMEMBERED, RememberedTrees
from agent.data.left_files import ReadFiles, read_left_files
from muster.domain.data.checkpoint import JobCheckpoint, StoredPart
from muster.domain.data.tree import ContentTree

MINUTE = timedelta(minutes=1)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    directory = tmp_path / "checkpoint"
    (directory / "step-1").mkdir(parents=True)
    (directory / "step-1" / "model").write_text("weights")
    return directory


def only(directory: Path, done: str = "") -> CheckpointLook:
    [look] = looks(directory, done)
    return look


def tree_of(directory: Path, name: str) -> ContentTree:
    return read_left_files(directory, None, 1_000_000, which=ReadFiles(entry=name)).tree


def test_one_counts_once_it_has_not_changed_for_a_while(saved: Path) -> None:
    look = only(saved)
    assert not look.finished(MINUTE, look.changed_at + 59)
    assert look.finished(MINUTE, look.changed_at + 60)


def test_a_mark_or_a_file_that_is_written_last_says_so_at_once(saved: Path) -> None:
    assert not only(saved, ".metadata").marked
    (saved / "step-1" / ".metadata").touch()
    assert only(saved, ".metadata").marked
    assert not only(saved).marked
    (saved / ".step-1.finished").touch()
    assert only(saved).marked


def test_names_that_are_none_and_empty_directories_do_not_count(saved: Path) -> None:
    for name in (".hidden", "step-2.tmp", "empty"):
        (saved / name).mkdir()
    (saved / "step-2.tmp" / "model").touch()
    assert [look.name for look in looks(saved, "")] == ["step-1"]
    assert looks(saved / "nowhere", "") == []


def test_whoever_writes_into_one_changes_what_is_seen_of_it(saved: Path) -> None:
    before = only(saved).state
    assert only(saved).state == before
    (saved / "step-1" / "model").write_text("other weights")
    assert only(saved).state != before


def test_one_alone_is_read_with_its_name_in_front(saved: Path) -> None:
    (saved / "file.pt").write_text("all")
    assert [entry.path for entry in tree_of(saved, "step-1").entries] == ["step-1/model"]
    assert [entry.path for entry in tree_of(saved, "file.pt").entries] == ["file.pt"]


def test_what_is_noted_is_read_again(tmp_path: Path) -> None:
    note = note_of("j1", 3, JobCheckpoint(done=".metadata"), MINUTE)
    part = StoredPart(name="a", number=1, tree="ab" * 32, size=9, files=1, bytes=2)
    write_note(tmp_path, note.stored(part, "seen"))
    assert read_note(tmp_path) == note.stored(part, "seen")
    (tmp_path / "checkpoint.json").write_text("{")
    assert read_note(tmp_path) is None


def test_names_that_user_code_has_removed_are_noted_no_longer() -> None:
    note = note_of("j1", 3, JobCheckpoint(), MINUTE)
    for number, name in enumerate("abc", 1):
        note = note.stored(StoredPart(name=name, number=number, tree="ab" * 32, size=9, files=1, bytes=2), "seen")
    assert sorted(note.forgetting({"b", "c", "new"}).seen) == ["b", "c"]
    assert note.forgetting({"b"}).number == 3


def test_the_newest_trees_are_remembered_and_no_more_than_that(tmp_path: Path) -> None:
    remembered, trees = RememberedTrees(), []
    for number in range(TREES_REMEMBERED + 1):
        (tmp_path / f"s{number}").write_text(str(number))
        trees.append(tree_of(tmp_path, f"s{number}"))
    for tree in (*trees[:2], trees[0], *trees[2:]):
        remembered.add(tree)
    assert [tree for tree in trees if remembered.get(tree.digest) is None] == [trees[1]]
    remembered.drop(trees[0].digest)
    assert remembered.get(trees[0].digest) is None


def test_a_kept_part_is_copied_only_as_it_was_stored(saved: Path, tmp_path: Path) -> None:
    kept, tree, into = KeptParts(tmp_path / "kept"), tree_of(saved, "step-1"), tmp_path / "into"
    kept.keep("j1.0", tree, saved / "step-1")
    assert kept.tree(tree.digest) == tree
    assert kept.copy(tree.digest, tree.entries[0], into)
    assert (into / "step-1" / "model").read_text() == "weights"
    (tmp_path / "kept" / "j1.0" / tree.digest / "files" / "step-1" / "model").write_text("WEIGHTS")

    assert not kept.copy(tree.digest, tree.entries[0], tmp_path / "again")
    assert not (tmp_path / "again" / "step-1" / "model").exists()


def test_the_newest_two_of_a_rank_stay_and_old_ones_go(tmp_path: Path) -> None:
    trees = []
    kept = KeptParts(tmp_path / "kept", now=lambda: 1_000_000.0)
    for number in range(3):
        (tmp_path / f"s{number}").write_text(str(number))
        trees.append(tree_of(tmp_path, f"s{number}"))
        kept.keep("j1.0", trees[-1], tmp_path / f"s{number}")
        os.utime(tmp_path / "kept" / "j1.0" / trees[-1].digest, (number, number + 999_000))
    assert [kept.tree(tree.digest) is not None for tree in trees] == [False, True, True]
    KeptParts(tmp_path / "kept", now=lambda: 1_000_000.0 + 8 * 86_400).clear()

    assert [kept.tree(tree.digest) for tree in trees] == [None, None, None]
