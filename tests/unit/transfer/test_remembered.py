from pathlib import Path

import pytest

from muster.transfer.remembered import (
    UNSETTLED_NS,
    FileStamp,
    load_remembered,
    remembered_file,
    save_remembered,
)

STAMP = FileStamp(size=3, modified_ns=10, changed_ns=20, inode=7)


def test_what_is_saved_is_remembered(tmp_path: Path) -> None:
    found = {"a b\n": (STAMP, "0" * 64), "é": (STAMP, "1" * 64)}
    save_remembered(tmp_path / "new" / "file", found)
    assert load_remembered(tmp_path / "new" / "file") == found


@pytest.mark.parametrize(
    "text",
    ["", "other\n", "muster-folder-1\n[1]\n", "muster-folder-1\nno json\n", 'muster-folder-1\n["a",1,2,3,4,5]\n'],
)
def test_a_damaged_file_is_forgotten(tmp_path: Path, text: str) -> None:
    (tmp_path / "file").write_text(text)
    assert load_remembered(tmp_path / "file") == {}


def test_nothing_is_remembered_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    save_remembered(tmp_path / "file" / "below", {"a": (STAMP, "0" * 64)})
    assert load_remembered(tmp_path / "file" / "below") == {}


def test_a_file_that_was_just_changed_is_not_settled() -> None:
    assert not STAMP.is_settled(20 + UNSETTLED_NS)
    assert STAMP.is_settled(21 + UNSETTLED_NS)


def test_each_folder_has_a_file_of_its_own_in_the_cache_of_the_user(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert remembered_file(environ, tmp_path / "a") != remembered_file(environ, tmp_path / "b")
    assert remembered_file(environ, tmp_path / "a" / ".." / "a") == remembered_file(environ, tmp_path / "a")
    assert remembered_file(environ, tmp_path / "a").parent == tmp_path / "cache" / "muster" / "folders"
