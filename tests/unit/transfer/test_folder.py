import os
import socket
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from muster.domain.data.tree import ContentKind
from muster.transfer.folder import Folder, FolderError, FolderLimits, read_folder
from muster.transfer.remembered import NOTHING_REMEMBERED, TreeSummary

LONG_AGO = 1_700_000_000_000_000_000
FAR_AHEAD = 9_000_000_000_000_000_000
"""A time at which all files of a test are settled."""


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def paths(folder: Folder) -> list[str]:
    return [each.path for each in folder.tree.entries]


def read(folder: Path, before: Folder | None = None) -> Folder:
    return read_folder(folder, now_ns=FAR_AHEAD, remembered=before.remembered if before else NOTHING_REMEMBERED)


def test_a_folder_is_a_tree_of_its_files_and_links(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": "print()", "bin/run": "#!/bin/sh"})
    (tmp_path / "bin/run").chmod(0o755)
    (tmp_path / "latest").symlink_to("bin/run")
    (tmp_path / "empty").mkdir()
    found = read(tmp_path)
    assert [(each.path, each.kind, each.content) for each in found.tree.entries] == [
        ("bin/run", ContentKind.PROGRAM, sha256(b"#!/bin/sh").hexdigest()),
        ("latest", ContentKind.LINK, "bin/run"),
        ("train.py", ContentKind.FILE, sha256(b"print()").hexdigest()),
    ]
    assert found.file_of(sha256(b"print()").hexdigest()) == tmp_path / "train.py"


def test_the_same_sources_are_the_same_tree_wherever_and_whenever_they_are_written(tmp_path: Path) -> None:
    for name in ("one", "other"):
        write(tmp_path / name, {"a": "1", "b/c": "2"})
    os.utime(tmp_path / "one/a", ns=(LONG_AGO, LONG_AGO))
    (tmp_path / "other/a").chmod(0o600)
    assert read(tmp_path / "one").tree.digest == read(tmp_path / "other").tree.digest


def test_files_are_left_out_as_git_leaves_them_out(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".gitignore": "*.o\n/build/\nlogs/*\n!logs/keep\n",
            "src/.gitignore": "!kept.o\ngenerated\\ file\n**/deep/*.txt\n",
            "a.o": "",
            "build/x": "",
            "src/build/x": "",
            "src/kept.o": "",
            "src/generated file": "",
            "src/x/deep/a.txt": "",
            "logs/gone": "",
            "logs/keep": "",
            "train.py": "",
        },
    )
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    told = subprocess.run(
        ["git", "-C", str(tmp_path), "ls-files", "-co", "--exclude-standard", "-z"], check=True, capture_output=True
    )
    assert paths(read(tmp_path)) == sorted(told.stdout.decode().split("\0")[:-1])


def test_rules_of_muster_stand_above_those_of_git(tmp_path: Path) -> None:
    write(
        tmp_path, {".gitignore": "*.json\n", ".musterignore": "!config.json\nnotes\n", "config.json": "", "notes": ""}
    )
    assert paths(read(tmp_path)) == [".gitignore", ".musterignore", "config.json"]


def test_the_pointer_of_a_further_working_tree_of_git_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, {".git": "gitdir: /elsewhere", "sub/.git": "gitdir: ../x", "a": ""})
    assert paths(read(tmp_path)) == ["a"]


def test_a_folder_that_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1", "b": "2", "c": "3"})
    first = read(tmp_path)
    assert first.hashed == 3
    again = read(tmp_path, first)
    assert again.hashed == 0
    assert again.tree == first.tree


def test_the_tree_of_a_folder_that_has_not_changed_is_known_without_its_entries(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1", "bin/run": "2", ".gitignore": "*.o\n", "b.o": "", "bin/c.o": ""})
    (tmp_path / "bin/run").chmod(0o755)
    (tmp_path / "latest").symlink_to("bin/run")
    first = read(tmp_path)
    again = read(tmp_path, first)
    assert (first.unchanged, again.unchanged) == (False, True)
    assert again.summary == TreeSummary.of(first.tree)
    assert (again.tree, again.remembered) == (first.tree, first.remembered)


def test_a_file_that_is_gone_or_came_is_a_change(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1", "b": "2"})
    first = read(tmp_path)
    (tmp_path / "b").unlink()
    without = read(tmp_path, first)
    assert (without.unchanged, without.hashed, paths(without)) == (False, 0, ["a"])
    write(tmp_path, {"c": "3"})
    assert (read(tmp_path, without).unchanged, read(tmp_path, without).hashed) == (False, 1)


def test_a_link_that_leads_elsewhere_by_now_is_a_change(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1", "b": "2"})
    (tmp_path / "link").symlink_to("a")
    first = read(tmp_path)
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("b")
    assert [each.content for each in read(tmp_path, first).tree.entries if each.is_link] == ["b"]


def test_rules_that_have_changed_count_for_files_that_have_not(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "out\n", "src/a.o": "", "src/a.c": "", "src/out": ""})
    first = read(tmp_path)
    assert paths(first) == [".gitignore", "src/a.c", "src/a.o"]
    write(tmp_path, {".gitignore": "*.o\n"})
    second = read(tmp_path, first)
    assert paths(second) == [".gitignore", "src/a.c", "src/out"]
    (tmp_path / ".gitignore").unlink()
    assert paths(read(tmp_path, second)) == ["src/a.c", "src/a.o", "src/out"]


def test_a_file_that_has_changed_is_read_again_whatever_its_time_says(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1", "b": "2"})
    os.utime(tmp_path / "a", ns=(LONG_AGO, LONG_AGO))
    first = read(tmp_path)
    (tmp_path / "a").write_text("x")
    os.utime(tmp_path / "a", ns=(LONG_AGO, LONG_AGO))
    again = read(tmp_path, first)
    assert again.hashed == 1
    assert again.tree.entries[0].content == sha256(b"x").hexdigest()


def test_a_file_that_was_changed_just_now_is_read_again_next_time(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1"})
    now = (tmp_path / "a").stat().st_mtime_ns
    first = read_folder(tmp_path, now_ns=now)
    assert first.remembered.tree is None
    assert read(tmp_path, first).hashed == 1


def test_a_mode_that_has_changed_makes_another_tree(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1"})
    first = read(tmp_path)
    (tmp_path / "a").chmod(0o755)
    assert read(tmp_path, first).tree.entries[0].kind is ContentKind.PROGRAM


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "sub/../../outside", "."])
def test_a_link_that_leads_out_of_the_folder_is_refused_with_its_path(tmp_path: Path, target: str) -> None:
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(FolderError, match=r"link leads to .*, which is not in the folder"):
        read(tmp_path)


def test_nothing_behind_a_link_is_read(tmp_path: Path) -> None:
    write(tmp_path, {"folder/real/a": "1", "outside/secret": "x"})
    (tmp_path / "folder/link").symlink_to("real")
    assert paths(read(tmp_path / "folder")) == ["link", "real/a"]


def test_what_is_no_file_is_refused_with_its_path_and_a_rule_that_helps(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FolderError, match=r"pipe is no file: put /pipe into \.musterignore"):
        read(tmp_path)
    (tmp_path / ".musterignore").write_text("/pipe\n")
    assert paths(read(tmp_path)) == [".musterignore"]


def test_a_socket_is_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        with pytest.raises(FolderError, match="s is no file"):
            read(tmp_path)


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"bad\xff")).write_text("")
    with pytest.raises(FolderError, match="no UTF-8: rename it"):
        read(tmp_path)


def test_a_folder_over_its_limit_shows_its_ten_largest_entries_as_rules(tmp_path: Path) -> None:
    write(tmp_path, {f"set-{number:02}/data": "x" * (10 + number) for number in range(12)})
    write(tmp_path, {"model.bin": "x" * 100})
    with pytest.raises(FolderError) as refused:
        read_folder(tmp_path, now_ns=FAR_AHEAD, limits=FolderLimits(size=50))
    first, *lines = str(refused.value).splitlines()
    assert "at most 50 B are taken" in first
    assert [line.split()[-1] for line in lines] == [
        "/model.bin",
        *(f"/set-{number:02}/" for number in range(11, 2, -1)),
    ]
    (tmp_path / ".musterignore").write_text("\n".join(line.split()[-1] for line in lines) + "\n")
    assert paths(read(tmp_path)) == [".musterignore", "set-00/data", "set-01/data", "set-02/data"]


def test_the_entries_of_a_lone_directory_are_shown_where_all_lies_in_it(tmp_path: Path) -> None:
    write(tmp_path, {"project/src/a": "1", "project/src/b": "2", "project/data/c": "3"})
    with pytest.raises(FolderError) as refused:
        read_folder(tmp_path, now_ns=FAR_AHEAD, limits=FolderLimits(files=2))
    first, *lines = str(refused.value).splitlines()
    assert "has 3 files; at most 2" in first
    assert [line.split()[-1] for line in lines] == ["/project/src/", "/project/data/"]


def test_a_folder_over_its_limit_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, {"a": "12345"})
    read_bytes: list[int] = []
    with pytest.raises(FolderError):
        read_folder(tmp_path, now_ns=FAR_AHEAD, limits=FolderLimits(size=4), seen=read_bytes.append)
    assert read_bytes == []


def test_how_much_is_read_is_told(tmp_path: Path) -> None:
    write(tmp_path, {"a": "12345", "b": "12"})
    read_bytes: list[int] = []
    read_folder(tmp_path, now_ns=FAR_AHEAD, seen=read_bytes.append)
    assert sum(read_bytes) == 7
