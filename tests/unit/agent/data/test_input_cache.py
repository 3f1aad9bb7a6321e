"""What a node keeps of inputs, what goes, and what is never given to anybody."""

import os
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.data.cache import InputCache
from agent.data.shown import UNCHANGED
from muster.domain.data.job_input import FoundInput
from muster.domain.jobs.failure import ExecutionError, FailureKind

KIB = 1024


def disk(free: int, whole: int = 1000 * KIB) -> Any:
    """A file system of so many bytes."""
    return lambda _: SimpleNamespace(f_blocks=whole, f_bavail=free, f_frsize=1)


def cache(path: Path, free: int = 900 * KIB, **more: Any) -> InputCache:
    executions = path / "executions"
    for name in ("a", "b"):
        (executions / name).mkdir(parents=True, exist_ok=True)
    return InputCache(path / "inputs", executions, disk=disk(free), **more)


def kept(there: InputCache, content: bytes, execution: str = "a", version: str = '"1"') -> FoundInput:
    """A file that was fetched for an execution."""
    url = f"https://example.org/{content[:1].decode()}"
    part = there.part(url)
    part.begin_anew(version)
    part.write(content)
    found = FoundInput(url=url, size=len(content), sha256=part.sha256, version=version)
    there.take(part, found, execution)
    part.close()
    return found


def test_a_file_is_shown_in_a_directory_that_nobody_can_write_to(tmp_path: Path) -> None:
    there = cache(tmp_path)
    found = kept(there, b"one")
    directory = there.shown("a.txt", found)
    assert [path.name for path in directory.iterdir()] == ["a.txt"]
    assert (directory / "a.txt").read_bytes() == b"one"
    assert (directory.stat().st_mode & 0o777, (directory / "a.txt").stat().st_mode & 0o777) == (0o555, 0o444)


def test_the_same_file_under_two_names_lies_there_once(tmp_path: Path) -> None:
    there = cache(tmp_path)
    found = kept(there, b"one")
    first, second = there.shown("a", found), there.shown("b", found)
    assert first != second
    assert (first / "a").samefile(second / "b")


def test_what_executions_see_stays_when_the_same_comes_from_elsewhere(tmp_path: Path) -> None:
    there = cache(tmp_path)
    seen = there.shown("a", kept(there, b"one"))
    before = (seen.stat().st_ino, (seen / "a").stat().st_ino)
    with closing(there.part("https://example.com/other")) as part:
        part.begin_anew("")
        part.write(b"one")
        again = FoundInput(url="https://example.com/other", size=3, sha256=part.sha256)
        there.take(part, again, "b")
    assert there.shown("a", again) == seen
    assert (seen.stat().st_ino, (seen / "a").stat().st_ino) == before


def test_a_directory_of_a_damaged_file_stays_for_those_who_see_it(tmp_path: Path) -> None:
    there = cache(tmp_path)
    found = kept(there, b"one")
    seen = there.shown("a", found)
    inode = seen.stat().st_ino
    (seen / "a").chmod(0o644)
    (seen / "a").write_bytes(b"two")
    assert there.has(found.sha256) is None
    assert there.shown("a", kept(there, b"one")) == seen
    assert (seen / "a").read_bytes() == b"one"
    [aside] = [path for path in seen.parent.iterdir() if path.stat().st_ino == inode]
    assert [path.read_bytes() for path in aside.iterdir()] == [b"two"]


def test_a_url_is_known_by_what_it_held_last_while_that_is_here(tmp_path: Path) -> None:
    there = cache(tmp_path)
    found = kept(there, b"one")
    assert there.known(found.url) == found
    (tmp_path / "inputs" / "objects" / found.sha256[:2] / found.sha256).unlink()
    assert there.known(found.url) is None


def test_a_file_that_somebody_has_written_to_is_here_no_more(tmp_path: Path) -> None:
    there = cache(tmp_path)
    found = kept(there, b"one")
    path = there.shown("a", found) / "a"
    path.chmod(0o644)
    path.write_bytes(b"two")
    assert there.has(found.sha256) is None
    assert there.known(found.url) is None


def test_a_broken_file_goes_on_where_it_was(tmp_path: Path) -> None:
    there = cache(tmp_path)
    part = there.part("https://example.org/a")
    part.begin_anew('"1"')
    part.write(b"on")
    part.close()
    again = there.part("https://example.org/a")
    assert (again.offset, again.version) == (2, '"1"')
    again.write(b"e")
    assert again.sha256 == sha256(b"one").hexdigest()
    again.close()


def test_what_nobody_uses_goes_first_and_the_longest_unused_before_all_else(tmp_path: Path) -> None:
    there = cache(tmp_path, size=40 * KIB)
    found = {letter: kept(there, letter.encode() * 10 * KIB, execution=letter) for letter in "abcd"}
    for age, letter in enumerate("bcda"):  # `a` runs, `b` too; nobody knows `c` and `d` any more
        os.utime(there.shown("x", found[letter]), (UNCHANGED + age, UNCHANGED + age))
    there.make_space(10 * KIB, "new")
    assert [letter for letter in "abcd" if there.has(found[letter].sha256) is not None] == ["a", "b", "d"]


def test_where_what_runs_leaves_too_little_disk_the_sentence_says_who_that_is(tmp_path: Path) -> None:
    there = cache(tmp_path, free=5 * KIB)
    found = kept(there, b"a" * 10 * KIB)
    with pytest.raises(
        ExecutionError, match=r"inputs\.new: 21 KiB are needed, and 5 KiB are free at .*what a use"
    ) as no:
        there.make_space(20 * KIB, "new")
    assert no.value.kind is FailureKind.DISK_FULL
    assert there.has(found.sha256) is not None


def test_what_an_execution_used_that_is_gone_is_free_again(tmp_path: Path) -> None:
    there = cache(tmp_path, free=5 * KIB)
    found = kept(there, b"a" * 30 * KIB)
    there.shown("x", found)
    (tmp_path / "executions" / "a").rmdir()
    there.make_space(20 * KIB, "new")
    assert there.has(found.sha256) is None
    assert [*(tmp_path / "inputs" / "leases").iterdir()] == []
