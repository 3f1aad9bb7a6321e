"""What an execution finds of a checkpoint: its own part, and what else the first rank of its role has."""

from muster.domain.data.checkpoint import is_checkpoint_name
from muster.domain.data.overlay import laid_over
from muster.domain.data.tree import ContentEntry, ContentKind, ContentTree, content_tree


def tree(**files: str) -> ContentTree:
    return content_tree(
        ContentEntry(path=path.replace("_", "/"), kind=ContentKind.FILE, size=1, content=content * 32)
        for path, content in files.items()
    )


def test_its_own_files_win_and_the_others_stand_beside_them() -> None:
    found = laid_over(tree(s_rank="aa", s_own="bb"), tree(s_rank="cc", s_shared="dd"))

    assert {entry.path: entry.content[:2] for entry in found.entries} == {
        "s/own": "bb",
        "s/rank": "aa",
        "s/shared": "dd",
    }


def test_nothing_is_laid_into_a_file_nor_a_file_over_a_directory() -> None:
    assert laid_over(tree(s="aa"), tree(s_x="bb")) == tree(s="aa")
    assert laid_over(tree(s_x="aa"), tree(s="bb")) == tree(s_x="aa")


def test_hidden_names_unfinished_ones_and_paths_are_no_names_of_checkpoints() -> None:
    assert all(map(is_checkpoint_name, ("step-1", "model.pt", "ä")))
    assert not any(map(is_checkpoint_name, ("", ".a", "a.tmp", "a/b", "a\n", "x" * 201, "\udc80")))
