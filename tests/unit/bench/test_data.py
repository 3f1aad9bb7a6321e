"""Folders that the benchmarks send."""

from pathlib import Path

from bench.data.folders import EACH, PER_DIRECTORY, folder_of, kept_folder
from muster.transfer.folder import read_folder


def test_a_folder_has_as_many_files_as_were_asked_for_each_with_another_content(tmp_path: Path) -> None:
    tree = read_folder(folder_of(tmp_path / "folder", PER_DIRECTORY + 1), now_ns=0).tree
    assert len(tree.entries) == len(tree.objects) == PER_DIRECTORY + 1
    assert tree.size == (PER_DIRECTORY + 1) * EACH
    assert {each.path.partition("/")[0] for each in tree.entries} == {"d0", "d1"}


def test_a_folder_of_an_earlier_run_is_taken_if_it_is_whole(tmp_path: Path) -> None:
    folder = kept_folder(tmp_path / "folder", 3)
    first = read_folder(folder, now_ns=0).tree
    assert len(first.entries) == 3
    assert read_folder(kept_folder(folder, 3), now_ns=0).tree == first
    (folder / "whole").unlink()
    assert read_folder(kept_folder(folder, 3), now_ns=0).tree != first
