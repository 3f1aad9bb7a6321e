"""Lists of whole trees and hashes of files, as `muster-inside files` gives them."""

import os
import subprocess
from collections.abc import Iterator
from errno import EACCES, ELOOP, ENAMETOOLONG
from pathlib import Path

import pytest

from agent.runtimes.kernel.rights import may_switch
from tests.contract.door_side import program
from tests.contract.files_server import EXTENDED, FilesLine, FilesRefusedError, served, text

MOST_LISTS = 8
MOST_LEVELS = 200
NO_SUCH_FILE, FAILURE, BAD_MESSAGE = 2, 4, 5
NOBODY = 65534


@pytest.fixture
def line(tmp_path: Path) -> Iterator[FilesLine]:
    with served(tmp_path) as (socket, _):
        yield FilesLine(socket)


def _read(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def xxh64(data: bytes) -> int:
    """The hash by the words of its specification, for comparison."""
    primes = (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
    mask = (1 << 64) - 1

    def turned(value: int, bits: int) -> int:
        value &= mask
        return (value << bits | value >> 64 - bits) & mask

    def round_of(lane: int, value: int) -> int:
        return turned(lane + value * primes[1], 31) * primes[0] & mask

    whole = len(data) // 32 * 32
    result = primes[4]
    if whole:
        lanes = [primes[0] + primes[1], primes[1], 0, -primes[0]]
        for at in range(0, whole, 32):
            lanes = [round_of(lane, _read(data, at + 8 * each, 8)) for each, lane in enumerate(lanes)]
        result = sum(turned(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            result = (result ^ round_of(0, lane)) * primes[0] + primes[3] & mask
    result = result + len(data) & mask
    at = whole
    while len(data) - at >= 8:
        result = turned(result ^ round_of(0, _read(data, at, 8)), 27) * primes[0] + primes[3] & mask
        at += 8
    if len(data) - at >= 4:
        result = turned(result ^ _read(data, at, 4) * primes[0], 23) * primes[1] + primes[2] & mask
        at += 4
    for byte in data[at:]:
        result = turned(result ^ byte * primes[4], 11) * primes[0] & mask
    result = (result ^ result >> 33) * primes[1] & mask
    result = (result ^ result >> 29) * primes[2] & mask
    return result ^ result >> 32


def test_the_program_says_what_it_knows_beside_sftp(line: FilesLine) -> None:
    assert line.extensions == {
        "posix-rename@openssh.com": "1",
        "statvfs@openssh.com": "2",
        "fsync@openssh.com": "1",
        "hash@muster": "1",
        "list@muster": "1",
    }


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_a_hash_is_that_of_its_specification(line: FilesLine, tmp_path: Path, content: bytes, value: int) -> None:
    (tmp_path / "file").write_bytes(content)
    assert line.hash("file") == (len(content), value)
    assert xxh64(content) == value


def test_any_part_of_a_file_is_hashed(line: FilesLine, tmp_path: Path) -> None:
    content = os.urandom(300_001)
    (tmp_path / "file").write_bytes(content)
    for offset, length in [(0, 0), (0, 131_072), (0, 131_104), (1, 31), (5, 200_003), (299_999, 0), (299_999, 9)]:
        part = content[offset : offset + length] if length else content[offset:]
        assert line.hash("file", offset, length) == (len(part), xxh64(part)), (offset, length)
    assert line.hash("file", 400_000) == (0, xxh64(b""))


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("nothing", NO_SUCH_FILE, "no such file"),
        (".", FAILURE, "it is no regular file"),
        ("pipe", FAILURE, "it is no regular file"),
        ("/dev/zero", FAILURE, "it is no regular file"),
    ],
)
def test_only_files_are_hashed(line: FilesLine, tmp_path: Path, path: str, code: int, words: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FilesRefusedError, match=words) as refused:
        line.hash(path)
    assert refused.value.code == code


def test_a_hash_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    with (tmp_path / "endless").open("wb") as file:
        file.truncate(1 << 42)
    with served(tmp_path) as (socket, server):
        line = FilesLine(socket)
        body = text("hash@muster") + text("endless") + bytes(16)
        socket.sendall((5 + len(body)).to_bytes(4, "big") + bytes((EXTENDED, 0, 0, 0, 7)) + body)
        del line
        socket.close()
        assert server.wait(20) == 0


def test_a_list_tells_of_everything_below_what_the_kernel_has(line: FilesLine, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "below" / "further").mkdir(parents=True)
    (tree / "below" / "file").write_bytes(b"12345")
    (tree / "below" / "file").chmod(0o640)
    os.utime(tree / "below" / "file", ns=(1, 1_700_000_000_123_456_789))
    os.utime(tree / "below" / "further", ns=(1, -5))
    (tree / "link").symlink_to("../outside\nof it")
    (tree / "loop").symlink_to("..")
    os.mkfifo(tree / "pipe")
    found = {entry.path: entry for entry in line.entries("tree")}
    assert {path: (entry.kind, entry.size, entry.target) for path, entry in found.items()} == {
        "": ("d", 0, ""),
        "below": ("d", 0, ""),
        "below/file": ("f", 5, ""),
        "below/further": ("d", 0, ""),
        "link": ("l", 0, "../outside\nof it"),
        "loop": ("l", 0, ".."),
        "pipe": ("o", 0, ""),
    }
    assert (found["below/file"].mode, found["below/file"].changed) == (0o100640, 1_700_000_000_123_456_789)
    assert found["below/further"].changed == 0
    for path, entry in found.items():
        assert entry.mode == (tree / path).lstat().st_mode


def test_a_list_stays_on_one_level_unless_it_is_told_to_go_down(line: FilesLine, tmp_path: Path) -> None:
    (tmp_path / "tree" / "below").mkdir(parents=True)
    (tmp_path / "tree" / "below" / "file").touch()
    assert {entry.path for entry in line.entries("tree", flags=0)} == {"", "below"}


def test_a_list_of_a_file_has_that_file_and_of_a_link_what_it_leads_to(line: FilesLine, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"123")
    (tmp_path / "link").symlink_to("file")
    for path in ("file", "link"):
        assert [(entry.path, entry.kind, entry.size) for entry in line.entries(path)] == [("", "f", 3)]


def test_names_are_bytes_whatever_they_are(line: FilesLine, tmp_path: Path) -> None:
    names = {"with\nnewline", "größe", "-rf", "x" * 255, "\udcff\udcfe", " "}
    (tmp_path / "many").mkdir()
    for name in names:
        (tmp_path / "many" / name).touch()
    assert {entry.path for entry in line.entries("many")} == names | {""}


def test_a_large_tree_comes_in_pieces_with_every_directory_before_what_is_in_it(
    line: FilesLine, tmp_path: Path
) -> None:
    expected = set()
    for directory in range(100):
        below = tmp_path / "tree" / f"directory {directory}" / "below"
        below.mkdir(parents=True)
        for number in range(50):
            (below / f"file {number}").touch()
            (below.parent / f"file {number}").touch()
            expected |= {f"directory {directory}/below/file {number}", f"directory {directory}/file {number}"}
        expected |= {f"directory {directory}/below", f"directory {directory}"}
    handle, seen, pieces = line.opened("tree"), [""], 0
    while piece := line.piece(handle):
        pieces += 1
        for entry in piece:
            if entry.path:
                assert os.path.dirname(entry.path) in seen  # noqa: PTH120 - a pure path has `.` for the root
                if entry.kind == "d":
                    seen.append(entry.path)
                expected.remove(entry.path)
    assert not expected
    assert pieces > 5


@pytest.mark.skipif(not may_switch(), reason="only root can see less as somebody else")
def test_what_may_not_be_read_is_told_with_the_reason(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "closed").mkdir(parents=True)
    (tree / "closed" / "file").touch()
    (tree / "closed").chmod(0o700)
    (tree / "known").mkdir()
    (tree / "known" / "file").touch()
    (tree / "known").chmod(0o744)
    tree.chmod(0o755)
    opened = subprocess.run(
        ("muster-inside", "files"),
        executable=program(),
        input=_list_of("."),
        capture_output=True,
        check=True,
        cwd=tree,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
    ).stdout
    assert _errors(opened) == {("closed", EACCES), ("known/file", EACCES)}


def _list_of(path: str) -> bytes:
    """Requests for a list and its first piece, with handle 0."""
    asked = text("list@muster") + text(path) + b"\0\0\0\1"
    packets = (b"\1\0\0\0\3", bytes((EXTENDED, 0, 0, 0, 1)) + asked, bytes((12, 0, 0, 0, 2, 0, 0, 0, 1, 0)))
    return b"".join(len(packet).to_bytes(4, "big") + packet for packet in packets)


def _errors(raw: bytes) -> set[tuple[str, int]]:
    """The entries that are errors: a path, the kind, a number, and nothing else."""
    found = set()
    for name in ("closed", "known/file"):
        entry = text(name) + b"e"
        if (at := raw.find(entry)) >= 0:
            found.add((name, int.from_bytes(raw[at + len(entry) : at + len(entry) + 4], "big")))
    return found


def test_a_tree_that_is_too_deep_is_told_with_the_reason(line: FilesLine, tmp_path: Path) -> None:
    deep = tmp_path / "tree" / "/".join("d" * (MOST_LEVELS + 2))
    deep.mkdir(parents=True)
    entries = line.entries("tree")
    last = "/".join("d" * (MOST_LEVELS + 1))
    assert [(each.path, each.mode) for each in entries if each.kind == "e"] == [(last, ELOOP)]
    assert [each.path for each in entries if each.kind == "d"][-1] == last


def test_a_path_that_is_too_long_is_told_with_the_reason(line: FilesLine, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    directory = os.open(tree, os.O_PATH)
    for _ in range(17):
        os.mkdir("n" * 250, dir_fd=directory)
        below = os.open("n" * 250, os.O_PATH, dir_fd=directory)
        os.close(directory)
        directory = below
    os.close(directory)
    entries = line.entries("tree")
    assert [(each.path, each.mode) for each in entries if each.kind == "e"] == [
        ("/".join(["n" * 250] * 16), ENAMETOOLONG)
    ]


def test_a_directory_that_goes_away_meanwhile_is_left_out(line: FilesLine, tmp_path: Path) -> None:
    (tmp_path / "tree" / "below").mkdir(parents=True)
    handle = line.opened("tree")
    (tmp_path / "tree" / "below").rmdir()
    assert [entry.path for entry in line.piece(handle)] == [""]
    assert line.piece(handle) == []


def test_as_many_lists_as_there_are_places_are_open_and_one_more_is_refused(line: FilesLine) -> None:
    handles = [line.opened(".") for _ in range(MOST_LISTS)]
    with pytest.raises(FilesRefusedError, match="too many lists are open"):
        line.opened(".")
    line.ask(4, handles[0])
    line.opened(".")


def test_a_list_of_what_is_not_there_is_refused(line: FilesLine) -> None:
    with pytest.raises(FilesRefusedError) as refused:
        line.opened("nothing")
    assert refused.value.code == NO_SUCH_FILE


def test_requests_that_are_cut_off_are_refused(line: FilesLine) -> None:
    for name in ("hash@muster", "list@muster", "fsync@openssh.com"):
        with pytest.raises(FilesRefusedError):
            line.ask(EXTENDED, text(name) + text("."))


def test_a_file_is_on_the_disk_when_that_is_asked_for(line: FilesLine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    handle = line.ask(3, text("file") + (2).to_bytes(4, "big") + bytes(4))[1:]
    assert line.ask(EXTENDED, text("fsync@openssh.com") + handle)[0] == 101
    with pytest.raises(FilesRefusedError, match="failure"):
        line.ask(EXTENDED, text("fsync@openssh.com") + text("\x7f"))
