from pathlib import Path

import pytest

from muster.domain.data.tree import ContentKind
from muster.transfer.remembered import (
    NOTHING_REMEMBERED,
    UNSETTLED_NS,
    RememberedFile,
    RememberedFolder,
    TreeSummary,
    load_remembered,
    remembered_file,
    save_remembered,
)

FILE = RememberedFile(3, 10, 20, 7, ContentKind.PROGRAM, "0" * 64)
LINK = RememberedFile(4, 10, 20, 8, ContentKind.LINK, "../a")


@pytest.mark.parametrize("tree", [None, TreeSummary("1" * 64, 200, 2, 3)])
@pytest.mark.parametrize("files", [{}, {"a b\n": FILE, "é": LINK}])
def test_what_is_saved_is_remembered(
    tmp_path: Path, files: dict[str, RememberedFile], tree: TreeSummary | None
) -> None:
    found = RememberedFolder(files=files, rules={"": "a", "é": "b"}, tree=tree)
    save_remembered(tmp_path / "new" / "file", found)
    assert load_remembered(tmp_path / "new" / "file") == found


def test_a_damaged_file_is_forgotten(tmp_path: Path) -> None:
    save_remembered(tmp_path / "file", RememberedFolder(files={"a": FILE}))
    whole = (tmp_path / "file").read_bytes()
    for text in (b"", b"\xff\n", b"other\n", whole[:-1], whole.replace(b"000", b"001"), b"muster-folder-1\n[1]\n"):
        (tmp_path / "file").write_bytes(text)
        assert load_remembered(tmp_path / "file") == NOTHING_REMEMBERED


def test_nothing_is_remembered_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    save_remembered(tmp_path / "file" / "below", RememberedFolder(files={"a": FILE}))
    assert load_remembered(tmp_path / "file" / "below") == NOTHING_REMEMBERED


def test_a_file_that_was_just_changed_is_not_settled() -> None:
    assert not FILE.stamp.is_settled(20 + UNSETTLED_NS)
    assert FILE.stamp.is_settled(21 + UNSETTLED_NS)


def test_each_folder_has_a_file_of_its_own_in_the_cache_of_the_user(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert remembered_file(environ, tmp_path / "a") != remembered_file(environ, tmp_path / "b")
    assert remembered_file(environ, tmp_path / "a" / ".." / "a") == remembered_file(environ, tmp_path / "a")
    assert remembered_file(environ, tmp_path / "a").parent == tmp_path / "cache" / "muster" / "folders"
