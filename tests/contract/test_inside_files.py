"""Files of an execution by SFTP, as `muster-inside files` serves them to paramiko, to OpenSSH, and to whoever errs."""

import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.door_side import ANSWER_LIMIT, program
from tests.contract.files_server import INIT, served

MUCH = 3_000_001
MOST_HANDLES = 128


@pytest.fixture
def files(tmp_path: Path) -> Iterator[paramiko.SFTPClient]:
    with served(tmp_path) as (line, _):
        yield paramiko.SFTPClient(line)  # type: ignore[arg-type]  # it takes any socket


def test_a_file_goes_there_and_comes_back(files: paramiko.SFTPClient, tmp_path: Path) -> None:
    content = os.urandom(MUCH)
    (tmp_path / "mine").write_bytes(content)
    files.put(str(tmp_path / "mine"), "theirs")
    # What paramiko asks for ahead it may ask for until both ends wait for each other to read.
    files.get("theirs", str(tmp_path / "back"), prefetch=False)
    assert (tmp_path / "theirs").read_bytes() == (tmp_path / "back").read_bytes() == content


def test_a_file_is_read_and_written_at_any_place(files: paramiko.SFTPClient, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    with files.open("file", "r+") as file:
        file.seek(4)
        assert file.read(3) == b"456"
        file.seek(8)
        file.write(b"abcd")
    with files.open("file", "a") as file:
        file.write(b"end")
    assert (tmp_path / "file").read_bytes() == b"01234567abcdend"


def test_a_new_file_takes_the_place_of_none_that_is_there(files: paramiko.SFTPClient, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="it exists already"):
        files.open("file", "wx")


def test_a_directory_has_all_names_whatever_they_are(files: paramiko.SFTPClient, tmp_path: Path) -> None:
    names = {f"name {number}" for number in range(2000)} | {"with\nnewline", "größe", "-rf", "x" * 255}
    (tmp_path / "many").mkdir()
    for name in names:
        (tmp_path / "many" / name).touch()
    assert set(files.listdir("many")) == names


def test_what_is_told_of_a_file_is_what_the_kernel_has(files: paramiko.SFTPClient, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "file").chmod(0o640)
    os.utime(tmp_path / "file", (1_000_000_000, 1_700_000_000))
    (tmp_path / "link").symlink_to("file")
    found = files.stat("link")
    assert (found.st_size, found.st_mode, found.st_mtime) == (5, 0o100640, 1_700_000_000)
    assert (found.st_uid, found.st_gid, found.st_atime) == (os.getuid(), os.getgid(), 1_000_000_000)
    assert oct(files.lstat("link").st_mode or 0) == "0o120777"
    [line] = [each.longname for each in files.listdir_attr(".") if each.filename == "file"]
    assert line == f"-rw-r----- 1 {os.getuid()} {os.getgid()} 5 2023-11-14 22:13 file"


def test_rights_size_and_times_of_a_file_change(files: paramiko.SFTPClient, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    files.chmod("file", 0o600)
    files.truncate("file", 2)
    files.utime("file", (5, 1_234_567_890))
    found = (tmp_path / "file").stat()
    assert (found.st_mode, found.st_size, found.st_mtime) == (0o100600, 2, 1_234_567_890)


def test_a_rename_replaces_only_when_it_is_told_to(files: paramiko.SFTPClient, tmp_path: Path) -> None:
    (tmp_path / "new").write_bytes(b"new")
    (tmp_path / "old").write_bytes(b"old")
    with pytest.raises(OSError, match="it exists already"):
        files.rename("new", "old")
    assert (tmp_path / "old").read_bytes() == b"old"
    files.posix_rename("new", "old")
    assert (tmp_path / "old").read_bytes() == b"new"


def test_links_and_paths_are_followed(files: paramiko.SFTPClient, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    files.symlink("real", "link")
    real = tmp_path.resolve() / "real"
    assert files.readlink("link") == "real"
    assert files.normalize("link/.") == str(real)
    assert files.normalize("link/new") == f"{real}/new"
    assert files.normalize("new") == f"{tmp_path.resolve()}/new"
    assert files.normalize("/nowhere") == "/nowhere"
    with pytest.raises(FileNotFoundError):
        files.normalize("nowhere/at/all")


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (lambda files: files.stat("nothing"), "no such file"),
        (lambda files: files.mkdir("full"), "it exists already"),
        (lambda files: files.rmdir("full"), "the directory is not empty"),
        (lambda files: files.listdir("full/file"), "no such file"),
    ],
    ids=["missing", "there already", "not empty", "no directory"],
)
def test_what_cannot_be_done_is_said_in_words(
    files: paramiko.SFTPClient, tmp_path: Path, what: Callable[[paramiko.SFTPClient], object], words: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(OSError, match=words):
        what(files)


def test_a_full_disk_is_told(files: paramiko.SFTPClient) -> None:
    with files.open("/dev/full", "w") as full, pytest.raises(OSError, match="no space is left"):
        full.write(b"x")


def test_as_many_files_as_there_are_places_are_open_and_one_more_is_refused(files: paramiko.SFTPClient) -> None:
    opened = [files.open("/dev/null") for _ in range(MOST_HANDLES)]
    with pytest.raises(OSError, match="too many files are open"):
        files.open("/dev/null")
    opened.pop().close()
    files.open("/dev/null").close()


def test_openssh_copies_whole_trees(tmp_path: Path) -> None:
    if shutil.which("sftp") is None:
        pytest.skip("needs sftp; install openssh-client")
    shutil.copy(program(), tmp_path / "muster-inside")
    (tmp_path / "tree" / "below").mkdir(parents=True)
    (tmp_path / "tree" / "below" / "file").write_bytes(os.urandom(100_000))
    batch = tmp_path / "batch"
    lines = (
        "mkdir far",
        "put -rp tree far",
        "get -rp far/tree back",
        "ls -l back",
        "df -h .",
        "rename far/tree far/moved",
    )
    batch.write_text("\n".join(lines))
    line = ("sftp", "-q", "-b", str(batch), "-D", f"{tmp_path}/muster-inside files")
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=ANSWER_LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    content = (tmp_path / "tree" / "below" / "file").read_bytes()
    assert (tmp_path / "back" / "below" / "file").read_bytes() == content
    assert (tmp_path / "far" / "moved" / "below" / "file").read_bytes() == content


def test_it_ends_well_when_nobody_asks_any_more(tmp_path: Path) -> None:
    with served(tmp_path) as (line, server):
        line.sendall(INIT)
        line.shutdown(socket.SHUT_WR)
        assert line.recv(9)[4:] == b"\2\0\0\0\3"
        assert server.wait(ANSWER_LIMIT) == 0


@settings(max_examples=60)
@given(kind=st.integers(0, 255), body=st.binary(max_size=60))
def test_whatever_is_sent_there_is_one_answer(kind: int, body: bytes) -> None:
    done = subprocess.run(
        ("muster-inside", "files"),
        executable=program(),
        input=INIT + struct.pack(">IB", len(body) + 1, kind) + body,
        capture_output=True,
        timeout=ANSWER_LIMIT,
        check=False,
        cwd="/proc/self/fdinfo",  # where nothing can be made or changed
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(list(packets(done.stdout))) == 2


def packets(raw: bytes) -> Iterator[bytes]:
    """Whole packets, one after the other."""
    while raw:
        [size] = struct.unpack(">I", raw[:4])
        assert len(raw) >= 4 + size
        yield raw[4 : 4 + size]
        raw = raw[4 + size :]
