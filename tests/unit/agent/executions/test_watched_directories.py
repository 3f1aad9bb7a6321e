"""The kernel tells of every change below a directory, and of nothing else."""

import mmap
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.code.watching import WatchedDirectories


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "code" / "lib").mkdir(parents=True)
    (tmp_path / "code" / "lib" / "words").write_text("one")
    return tmp_path / "code"


@pytest.fixture
def watched(place: Path) -> WatchedDirectories:
    found = WatchedDirectories()
    found.begin("it", place)
    return found


def with_the_time_of_before(file: Path) -> None:
    about = file.stat()
    file.write_text("two")
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))


def mapped(file: Path) -> None:
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as memory:
        memory[:3] = b"two"


def replaced(file: Path) -> None:
    (file.parent.parent.parent / "other").write_text("two")
    (file.parent.parent.parent / "other").replace(file)


CHANGES = {
    "written": lambda file: file.write_text("two"),
    "written with the time of before": with_the_time_of_before,
    "mapped and changed": mapped,
    "replaced": replaced,
    "removed": Path.unlink,
    "renamed": lambda file: file.rename(file.with_name("other")),
    "other rights": lambda file: file.chmod(0o600),
    "more beside it": lambda file: file.with_name("__pycache__").mkdir(),
    "a link beside it": lambda file: file.with_name("link").symlink_to("words"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_told(watched: WatchedDirectories, place: Path, change: Callable[[Path], object]) -> None:
    assert watched.is_unchanged("it", place)
    change(place / "lib" / "words")
    assert not watched.is_unchanged("it", place)
    assert not watched.is_unchanged("it", place)  # until it is looked through and watched anew
    watched.begin("it", place)
    assert watched.is_unchanged("it", place)


def test_reading_and_the_time_of_the_last_use_are_no_changes(watched: WatchedDirectories, place: Path) -> None:
    (place / "lib" / "words").read_text()
    list((place / "lib").iterdir())
    os.utime(place)
    assert watched.is_unchanged("it", place)


def test_a_directory_that_was_moved_to_its_place_is_the_same(watched: WatchedDirectories, place: Path) -> None:
    moved = place.rename(place.with_name("moved"))
    assert watched.is_unchanged("it", moved)


def test_another_directory_in_its_place_is_not_the_same(watched: WatchedDirectories, place: Path) -> None:
    place.rename(place.with_name("moved"))
    place.mkdir()
    assert not watched.is_unchanged("it", place)


def test_one_that_is_gone_is_not_there_unchanged(watched: WatchedDirectories, place: Path) -> None:
    place.rename(place.with_name("moved"))
    assert not watched.is_unchanged("it", place)


def test_a_change_in_one_is_none_in_another(watched: WatchedDirectories, place: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    watched.begin("other", other)
    (other / "more").touch()
    assert (watched.is_unchanged("it", place), watched.is_unchanged("other", other)) == (True, False)


def test_one_with_too_many_directories_is_not_watched(place: Path) -> None:
    watched = WatchedDirectories(most=1)
    with pytest.raises(OSError, match="one of more than 1 directories"):
        watched.begin("it", place)
    assert not watched.is_unchanged("it", place)
