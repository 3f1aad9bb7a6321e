"""Directories made alike by the real program: what differs, in both directions, with the rules of git."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from muster.cli.attaching.transfers import SyncWanted, copied, synced
from muster.client.attachments.places import LocalPlace, RemotePlace
from muster.client.files.byte_stream import ByteStream
from muster.client.files.copying import TransferResult
from muster.client.files.local_tree import LocalTree
from muster.client.files.plan import PlanRules
from muster.client.files.transfer_error import FileTransferError
from muster.client.files.transfers import ClashError, sync_trees
from muster.transfer.ignore_rules import IgnoreRules
from tests.contract.served_files import everything, served_tree, started

LONG_AGO = 1_000_000_000
ALIKE = PlanRules(delete=True)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@pytest.fixture
def there(tmp_path: Path) -> Path:
    (tmp_path / "there").mkdir()
    return tmp_path / "there"


async def sync(
    here: Path, there: Path, rules: PlanRules = ALIKE, *, down: bool = False, excluded: tuple[str, ...] = ()
) -> TransferResult:
    async with served_tree(there, "code") as remote:
        return await sync_trees(LocalTree(here), remote, down=down, rules=rules, ignored=IgnoreRules(excluded))


def write(path: Path, content: bytes, at: int = LONG_AGO) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (at, at))


def files_in(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def taken_by_git(directory: Path) -> set[str]:
    git = ["git", "-C", str(directory)]
    subprocess.run([*git, "init", "-q"], check=True)
    listed = subprocess.run([*git, "ls-files", "-coz", "--exclude-standard"], check=True, capture_output=True)
    return set(listed.stdout.decode().split("\0")) - {""}


async def test_only_what_differs_is_sent(here: Path, there: Path) -> None:
    write(here / "a" / "same", b"same")
    write(here / "longer", b"1")
    write(here / "touched", b"touched")
    write(here / "changed", b"before")
    write(here / "gone", b"gone")
    (here / "link").symlink_to("longer")
    assert (await sync(here, there)).files == 5

    write(here / "longer", b"12", LONG_AGO + 1)
    write(here / "touched", b"touched", LONG_AGO + 1)
    write(here / "changed", b"after!", LONG_AGO + 1)
    write(here / "new", b"new")
    (here / "gone").unlink()
    done = await sync(here, there)

    assert (done.files, done.size, done.adjusted, done.removed, done.unchanged) == (3, 11, 1, 1, 2)
    assert everything(there / "code") == everything(here)
    assert (await sync(here, there)).unchanged == 6


async def test_what_only_the_other_side_has_stays_unless_it_is_to_go(here: Path, there: Path) -> None:
    write(here / "a", b"a")
    write(there / "code" / "results" / "b", b"b")
    await sync(here, there, PlanRules())
    assert (there / "code" / "results" / "b").exists()
    assert (await sync(here, there)).removed == 2
    assert everything(there / "code").keys() == {"a"}


async def test_what_changed_on_both_sides_is_named_and_nothing_is_done(here: Path, there: Path) -> None:
    write(here / "a", b"here", LONG_AGO + 5)
    write(there / "code" / "a", b"there, later", LONG_AGO + 9)
    write(here / "b", b"new")
    with pytest.raises(ClashError, match=r"1 file is newer there than what would replace them: dev:code/a; nothing"):
        await sync(here, there)
    assert everything(there / "code").keys() == {"a"}
    await sync(here, there, PlanRules(overwrite=True))
    assert everything(there / "code") == everything(here)


async def test_the_other_way_round_this_side_is_changed(here: Path, there: Path) -> None:
    write(there / "code" / "out" / "model", b"weights")
    write(here / "mine", b"mine", LONG_AGO)
    assert (await sync(here, there, PlanRules(), down=True)).files == 1
    assert (here / "out" / "model").read_bytes() == b"weights"
    assert (here / "mine").exists()
    write(here / "out" / "model", b"edited", LONG_AGO + 5)
    with pytest.raises(ClashError, match="out/model"):
        await sync(here, there, down=True)


async def test_a_directory_gives_way_only_when_it_is_told_to(here: Path, there: Path) -> None:
    write(here / "a", b"file")
    write(there / "code" / "a" / "b", b"in a directory")
    with pytest.raises(ClashError, match="something of another kind is in the way: dev:code/a"):
        await sync(here, there)
    await sync(here, there, PlanRules(overwrite=True))
    assert everything(there / "code") == everything(here)


async def test_ignored_files_are_neither_sent_nor_removed(here: Path, there: Path) -> None:
    write(here / ".gitignore", b"*.log\n/build/\n")
    write(here / ".musterignore", b"data/\n!keep.log\n")
    write(here / "src" / ".gitignore", b"*.o\n")
    for name in ("a.log", "keep.log", "build/x", "src/build/y", "data/z", "src/a.o", "a.o", ".git/config", "skip.me"):
        write(here / name, b"here")
    for name in ("b.log", "build/theirs", "src/b.o", "old"):
        write(there / "code" / name, b"there")
    await sync(here, there, excluded=("skip.*",))
    assert files_in(there / "code") == {
        ".gitignore",
        ".musterignore",
        "src/.gitignore",
        "keep.log",
        "src/build/y",
        "a.o",
        "b.log",
        "build/theirs",
        "src/b.o",
    }


async def test_what_is_sent_is_what_git_would_take(here: Path, there: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    write(here / ".gitignore", b"# all but one\n/logs/*\n!/logs/kept\n**/cache\n\\#odd\n*.tmp \nfoo/bar\n")
    write(here / "sub" / ".gitignore", b"!*.tmp\n/only\n")
    names = (
        "logs/a logs/kept logs/deep/b cache/c sub/cache/d cache2 #odd a.tmp sub/b.tmp only sub/only foo/bar sub/foo/bar"
    )
    for name in names.split():
        write(here / name, b"x")
    wanted = taken_by_git(here)
    await sync(here, there)
    assert files_in(there / "code") == wanted


async def test_a_directory_that_is_not_there_is_told(here: Path, there: Path) -> None:
    with pytest.raises(FileTransferError, match="there is no such directory"):
        await sync(here, there, down=True)
    with pytest.raises(FileTransferError, match="there is no such directory"):
        await sync(here / "nowhere", there)


async def test_all_ranks_get_files_and_give_them_into_directories_of_their_own(here: Path, there: Path) -> None:
    for rank in range(12):
        (there / str(rank)).mkdir()

    async def open_files(job: str, rank: int | None) -> ByteStream:
        assert job == "train"
        return await started(there / str(rank))

    write(here / "code" / "train.py", b"print()")
    ranks = list(range(12))
    sent = await copied([LocalPlace(path=str(here / "code"))], RemotePlace(job="train", path=""), open_files, ranks)
    assert [(each.rank, each.sentence, each.code) for each in sent] == [
        (rank, "1 file, 7 B, verified", 0) for rank in range(12)
    ]
    for rank in range(12):
        write(there / str(rank) / "out" / "log", b"%d" % rank)
    (there / "5" / "out" / "log").unlink()
    (there / "5" / "out").rmdir()

    got = await copied(
        [RemotePlace(job="train", path="out/log")], LocalPlace(path=str(here / "back")), open_files, ranks
    )
    assert got[5].error == "train:out/log: there is no such file or directory"
    assert [each.code for each in got] == [0] * 5 + [1] + [0] * 6
    assert {path.parent.name: path.read_bytes() for path in (here / "back").glob("*/log")} == {
        str(rank): b"%d" % rank for rank in range(12) if rank != 5
    }

    wanted = SyncWanted(
        local=LocalPlace(path=str(here / "synced")), remote=RemotePlace(job="train", path="code"), down=True
    )
    assert {each.sentence for each in await synced(wanted, open_files, ranks)} == {"1 file, 7 B, verified"}
    assert len(list((here / "synced").glob("*/train.py"))) == 12
