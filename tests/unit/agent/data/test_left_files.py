"""What counts as an output: files of the job, read so that nothing else can be slipped in."""

import os
import socket
from pathlib import Path

import pytest

from agent.data.left_files import LeftFiles, TooManyOutputsError, read_left_files
from muster.domain.data.output_terms import ALL_OUTPUTS, OutputTerms
from muster.domain.quantity import size_text

MUCH = 1 << 30


def read(directory: Path, owner: int | None = None, allowed: int = MUCH, terms: OutputTerms = ALL_OUTPUTS) -> LeftFiles:
    return read_left_files(directory, owner, allowed, terms)


def paths(found: LeftFiles) -> list[str]:
    return [each.path for each in found.tree.entries]


def test_files_count_with_what_they_hold_and_whether_they_may_be_run(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "model.pt").write_bytes(b"weights")
    (tmp_path / "run.sh").write_text("true")
    (tmp_path / "run.sh").chmod(0o755)
    found = read(tmp_path)

    assert [(each.path, each.kind, each.size) for each in found.tree.entries] == [
        ("a/b/model.pt", "-", 7),
        ("run.sh", "x", 4),
    ]
    assert found.left_out == ()
    assert found.files[found.tree.entries[0].content].read(2, 3) == b"igh"


def test_what_is_no_file_is_left_out_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "good").write_text("x")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "directory").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
    found = read(tmp_path)

    assert paths(found) == ["good"]
    assert dict(found.left_out) == {
        "link": "a link",
        "directory": "a link",
        "pipe": "no file",
        "socket": "no file",
    }


def test_files_of_other_users_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "foreign").write_text("x")
    found = read(tmp_path, owner=os.getuid() + 1)

    assert (paths(found), found.left_out) == ([], (("foreign", "of another user"),))


def test_names_that_no_tree_can_have_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "good").write_text("x")
    (tmp_path / "two\nlines").write_text("x")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).write_text("x")
    found = read(tmp_path)

    assert paths(found) == ["good"]
    assert len(found.left_out) == 2
    assert all(path.isascii() and path.isprintable() for path, _ in found.left_out)


def test_a_link_that_takes_the_place_of_a_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "out" / "file").write_text("public")
    found = read(tmp_path / "out")
    (tmp_path / "out" / "file").unlink()
    (tmp_path / "out" / "file").symlink_to(tmp_path / "secret")

    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        found.files[found.tree.entries[0].content].read(0, 6)


def test_a_link_that_takes_the_place_of_a_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "out" / "sub").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("secret")
    (tmp_path / "out" / "sub" / "file").write_text("public")
    found = read(tmp_path / "out")
    (tmp_path / "out" / "sub").rename(tmp_path / "away")
    (tmp_path / "out" / "sub").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        found.files[found.tree.entries[0].content].read(0, 6)


def test_more_than_a_project_may_keep_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 1 << 40)

    with pytest.raises(TooManyOutputsError, match=f"more than the {size_text(MUCH)} that its project may keep"):
        read(tmp_path)


def test_a_directory_that_lies_too_deep_is_left_out(tmp_path: Path) -> None:
    place = tmp_path
    for _ in range(202):
        place = place / "d"
        place.mkdir()
    (place / "file").write_text("x")
    found = read(tmp_path)

    assert paths(found) == []
    assert [reason for _, reason in found.left_out] == ["deeper than 200 directories"]


def test_only_files_with_wanted_names_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "plots").mkdir()
    for name in ("model.pt", "plots/loss.png", "cache.bin"):
        (tmp_path / name).write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("/etc/passwd")
    found = read(tmp_path, allowed=20, terms=OutputTerms(only=("*.pt", "plots/")))

    assert (paths(found), found.left_out) == (["model.pt", "plots/loss.png"], ())


def test_more_than_the_job_allows_is_refused_with_its_key(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"x" * 2**20)
    assert paths(read(tmp_path, terms=OutputTerms(limit=2**20))) == ["small"]
    (tmp_path / "more").write_bytes(b"x")
    with pytest.raises(TooManyOutputsError, match=r"they are more than the 1Mi of outputs\.limit"):
        read(tmp_path, terms=OutputTerms(limit=2**20))
