"""Files copied to and from what the real program serves: all of them, whatever their names, or nothing half-done."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from muster.client.files.copying import TransferProgress, TransferResult
from muster.client.files.local_tree import LocalTree
from muster.client.files.plan import NotCopied
from muster.client.files.remote_tree import RemoteTree
from muster.client.files.sftp import SftpClient, sftp_over
from muster.client.files.transfer_error import FilesLostError, FileTransferError
from muster.client.files.transfers import ClashError, CopySource, copy_all
from muster.client.files.tree import DEEPEST_TREE
from tests.contract.served_files import connected, everything, served_tree, started

LONG_AGO = 1_000_000_000
MUCH = 8 * 1024 * 1024 + 3


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@pytest.fixture
def there(tmp_path: Path) -> Path:
    (tmp_path / "there").mkdir()
    return tmp_path / "there"


async def up(client: SftpClient, source: Path, path: str, *, name: str = "", times: bool = True) -> TransferResult:
    given = [CopySource(tree=LocalTree(source), name=name or source.name)]
    return await copy_all(given, RemoteTree(client, path, f"dev:{path}"), times=times)


async def down(client: SftpClient, path: str, target: Path) -> TransferResult:
    given = [CopySource(tree=RemoteTree(client, path, f"dev:{path}"), name=path.rpartition("/")[2])]
    return await copy_all(given, LocalTree(target))


def fill(directory: Path) -> None:
    """Files and names of every kind."""
    for name in ("plain", "with blank", "with\nnewline", "größe", "-rf", "*", "x" * 255):
        (directory / name).write_bytes(name.encode() * 3)
    (directory / os.fsdecode(b"no \xff utf-8")).write_bytes(b"\xff")
    (directory / "empty").touch()
    (directory / "program").write_bytes(b"#!")
    (directory / "program").chmod(0o755)
    (directory / "big").write_bytes(os.urandom(MUCH))
    (directory / "deep" / "er").mkdir(parents=True)
    (directory / "deep" / "er" / "file").write_bytes(b"deep")
    (directory / "nothing inside").mkdir()
    (directory / "deep" / "link").symlink_to("../plain")
    (directory / "dangling").symlink_to("nowhere")
    (directory / "read only").mkdir()
    (directory / "read only" / "file").touch()
    for each in (directory / "plain", directory / "deep" / "er" / "file", directory / "deep"):
        os.utime(each, (LONG_AGO, LONG_AGO))
    (directory / "read only").chmod(0o555)


def files_below(directory: Path) -> list[Path]:
    return [each for each in directory.rglob("*") if each.is_file() and not each.is_symlink()]


async def test_a_tree_goes_there_and_comes_back_with_modes_times_and_links(here: Path, there: Path) -> None:
    (here / "tree").mkdir()
    fill(here / "tree")
    async with connected(there) as client:
        sent = await up(client, here / "tree", "tree")
        got = await down(client, "tree", here / "back")
    assert everything(there / "tree") == everything(here / "tree")
    assert everything(here / "back") == everything(here / "tree")
    assert (sent.files, sent.links, sent.directories, sent.failed, sent.left_out) == (13, 2, 5, (), ())
    assert sent == got
    assert sent.size == sum(len(each.read_bytes()) for each in files_below(here / "tree"))


async def test_ten_thousand_files_go_there_and_come_back(here: Path, there: Path) -> None:
    for number in range(100):
        (here / "many" / str(number)).mkdir(parents=True)
        for other in range(100):
            (here / "many" / str(number) / f"file {other}").write_bytes(b"%d" % other)
    async with connected(there) as client:
        sent = await up(client, here / "many", "many")
        got = await down(client, "many", here / "back")
    assert (sent.files, got.files) == (10_000, 10_000)
    assert everything(here / "back") == everything(here / "many") == everything(there / "many")


async def test_a_copy_goes_into_a_directory_and_else_takes_the_name(here: Path, there: Path) -> None:
    (here / "a").write_bytes(b"a")
    (there / "into").mkdir()
    async with connected(there) as client:
        await up(client, here / "a", "into")
        await up(client, here / "a", "named")
        target = RemoteTree(client, "new/", "dev:new/")
        await copy_all([CopySource(tree=LocalTree(here / "a"), name="a")], target, into=True)
        target = RemoteTree(client, "named", "dev:named")
        with pytest.raises(FileTransferError, match="dev:named: it is no directory"):
            await copy_all([CopySource(tree=LocalTree(here / "a"), name="a")], target, into=True)
    assert {path for path, what in everything(there).items() if what is not None} == {
        "into",
        "into/a",
        "named",
        "new",
        "new/a",
    }


async def test_a_device_is_not_replaced_by_a_file(here: Path, there: Path) -> None:
    (here / "a").write_bytes(b"a")
    os.mkfifo(there / "pipe")
    async with connected(there) as client:
        with pytest.raises(ClashError, match="something of another kind is in the way: dev:pipe"):
            await up(client, here / "a", "pipe")
    assert (there / "pipe").is_fifo()


async def test_several_sources_make_a_directory(here: Path, there: Path) -> None:
    for name in ("a", "b"):
        (here / name).write_bytes(name.encode())
    given = [CopySource(tree=LocalTree(here / name), name=name) for name in ("a", "b")]
    seen: list[TransferProgress] = []
    async with served_tree(there, "new") as target:
        done = await copy_all(given, target, on_progress=seen.append)
        with pytest.raises(FileTransferError, match="two of the sources are called a"):
            await copy_all([given[0], given[0]], target)
    assert (done.files, done.size) == (2, 2)
    assert seen[-1] == TransferProgress(files=2, all_files=2, size=2, all_size=2)
    assert (there / "new" / "b").read_bytes() == b"b"


async def test_without_times_what_is_copied_counts_as_new(here: Path, there: Path) -> None:
    (here / "a").touch()
    os.utime(here / "a", (LONG_AGO, LONG_AGO))
    async with connected(there) as client:
        await up(client, here / "a", "a", times=False)
    assert (there / "a").stat().st_mtime > LONG_AGO


async def test_nobody_gets_rights_with_a_file(here: Path, there: Path) -> None:
    (there / "a").write_bytes(b"#!")
    (there / "a").chmod(0o6755)
    async with connected(there) as client:
        await down(client, "a", here / "a")
    assert (here / "a").stat().st_mode & 0o7777 == 0o755


async def test_links_out_of_the_tree_and_pipes_are_left_out_and_named(here: Path, there: Path) -> None:
    (there / "tree").mkdir()
    (there / "tree" / "in").symlink_to("a")
    (there / "tree" / "out").symlink_to("/etc/passwd")
    (there / "tree" / "up").symlink_to("../there")
    os.mkfifo(there / "tree" / "pipe")
    async with connected(there) as client:
        got = await down(client, "tree", here / "back")
    assert {each.path: each.why for each in got.left_out} == {
        "dev:tree/out": "leads out of the directory, to /etc/passwd",
        "dev:tree/up": "leads out of the directory, to ../there",
        "dev:tree/pipe": "neither a file nor a directory nor a link",
    }
    assert list(everything(here / "back")) == ["in"]


async def test_a_link_here_is_never_written_through(here: Path, there: Path, tmp_path: Path) -> None:
    (there / "tree" / "sub").mkdir(parents=True)
    (there / "tree" / "sub" / "file").write_bytes(b"theirs")
    (there / "tree" / "name").write_bytes(b"theirs")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "precious").write_bytes(b"mine")
    (here / "back").mkdir()
    (here / "back" / "sub").symlink_to(tmp_path / "elsewhere")
    (here / "back" / "name").symlink_to(tmp_path / "precious")
    async with connected(there) as client:
        given = [CopySource(tree=RemoteTree(client, "tree", "dev:tree"), name="")]
        with pytest.raises(ClashError, match="back/sub"):
            await copy_all(given, LocalTree(here / "back"))
        (here / "back" / "sub").unlink()
        await copy_all(given, LocalTree(here / "back"))
    assert (tmp_path / "precious").read_bytes() == b"mine"
    assert (here / "back" / "name").read_bytes() == b"theirs"
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("way", ["up", "down"])
async def test_what_lies_too_deep_is_named_and_the_rest_is_copied(here: Path, there: Path, way: str) -> None:
    source = (here if way == "up" else there) / "tree"
    source.joinpath(*"d" * (DEEPEST_TREE + 5)).mkdir(parents=True)
    (source / "good").write_bytes(b"good")
    async with connected(there) as client:
        done = await (up(client, source, "back") if way == "up" else down(client, "tree", here / "back"))
    [failed] = done.failed
    assert set(failed.path.partition("tree/")[2]) == {"d", "/"}
    assert failed.why == "it lies too deep"
    assert (done.files, done.directories) == (
        1,
        DEEPEST_TREE + 2,
    )  # the tree itself, and the last one without its content


async def test_a_file_that_shrinks_is_named_and_the_rest_is_copied(here: Path, there: Path) -> None:
    (here / "tree").mkdir()
    (here / "tree" / "good").write_bytes(b"good")
    (here / "tree" / "log").write_bytes(os.urandom(MUCH))

    def shrink(now: TransferProgress) -> None:
        if now.size > len(b"good"):
            os.truncate(here / "tree" / "log", 5)

    async with served_tree(there, "tree") as target:
        given = [CopySource(tree=LocalTree(here / "tree"), name="tree")]
        done = await copy_all(given, target, on_progress=shrink)
    assert done.failed == (NotCopied(path=f"{here}/tree/log", why="it became shorter while it was copied"),)
    assert (done.files, done.size) == (1, 4)
    assert everything(there / "tree").keys() == {"good"}


async def test_a_file_that_changes_is_named_and_what_was_there_stays(here: Path, there: Path) -> None:
    (there / "log").write_bytes(os.urandom(MUCH))
    (here / "log").write_bytes(b"old")

    def change(now: TransferProgress) -> None:
        if now.size:
            with (there / "log").open("r+b") as file:
                file.write(b"what was read already is something else now")

    async with connected(there) as client:
        given = [CopySource(tree=RemoteTree(client, "log", "dev:log"), name="log")]
        done = await copy_all(given, LocalTree(here / "log"), on_progress=change)
    assert done.failed == (NotCopied(path="dev:log", why="it changed while it was copied; copy it again"),)
    assert everything(here).keys() == {"log"}
    assert (here / "log").read_bytes() == b"old"


async def test_a_file_that_grows_is_copied_as_long_as_it_was(here: Path, there: Path) -> None:
    (there / "log").write_bytes(b"x" * MUCH)

    def grow(now: TransferProgress) -> None:
        if now.size:
            with (there / "log").open("ab") as file:
                file.write(b"more")

    async with connected(there) as client:
        given = [CopySource(tree=RemoteTree(client, "log", "dev:log"), name="log")]
        done = await copy_all(given, LocalTree(here / "log"), on_progress=grow)
    assert (done.failed, (here / "log").stat().st_size) == ((), MUCH)


async def test_a_source_that_is_not_there_is_told(here: Path, there: Path) -> None:
    async with connected(there) as client:
        with pytest.raises(FileTransferError, match=r"dev:nothing: there is no such file or directory"):
            await down(client, "nothing", here)
        with pytest.raises(FileTransferError, match="there is no such file"):
            await up(client, here / "nothing", "x")
        with pytest.raises(FileTransferError, match="dev:/dev/zero: it is neither a file nor a directory"):
            await down(client, "/dev/zero", here)


async def test_a_file_without_a_size_is_read_to_its_end(here: Path, there: Path) -> None:
    async with connected(there) as client:
        got = await down(client, "/proc/sys/kernel/ostype", here / "ostype")
    assert (got.files, (here / "ostype").read_bytes()) == (1, b"Linux\n")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid():
        pytest.skip("a small file system needs root")
    at = tmp_path / "small"
    at.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(at)], check=True)
    yield at
    subprocess.run(["umount", str(at)], check=True)


async def test_a_full_disk_there_is_told_and_nothing_half_done_is_left(here: Path, small_disk: Path) -> None:
    (here / "big").write_bytes(os.urandom(MUCH))
    async with connected(small_disk) as client:
        with pytest.raises(FileTransferError, match="big: no space is left"):
            await up(client, here / "big", "big")
        assert everything(small_disk) == {}
        (here / "big").write_bytes(b"small")
        await up(client, here / "big", "big")
    assert (small_disk / "big").read_bytes() == b"small"


async def test_a_full_disk_here_is_told_and_nothing_half_done_is_left(there: Path, small_disk: Path) -> None:
    (there / "big").write_bytes(os.urandom(MUCH))
    (small_disk / "big").write_bytes(b"old")
    async with connected(there) as client:
        with pytest.raises(OSError, match="No space left"):
            await down(client, "big", small_disk / "big")
    assert everything(small_disk).keys() == {"big"}
    assert (small_disk / "big").read_bytes() == b"old"


@pytest.mark.parametrize("way", ["up", "down"])
async def test_a_copy_that_is_interrupted_leaves_what_was_there_and_can_be_repeated(
    here: Path, there: Path, way: str
) -> None:
    source, target = (here, there) if way == "up" else (there, here)
    (source / "tree").mkdir()
    (target / "tree").mkdir()
    for number in range(4):
        (source / "tree" / str(number)).write_bytes(os.urandom(MUCH))
        (target / "tree" / str(number)).write_bytes(b"old")
    begun = asyncio.Event()

    def look(now: TransferProgress) -> None:
        if now.size > MUCH // 2:
            begun.set()

    async with connected(there) as client:
        local, remote = LocalTree(here / "tree"), RemoteTree(client, "tree", "dev:tree")
        one, other = (local, remote) if way == "up" else (remote, local)
        given = [CopySource(tree=one, name="")]
        copying = asyncio.ensure_future(copy_all(given, other, on_progress=look))
        await begun.wait()
        copying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await copying
        names = everything(target / "tree").keys()
        contents = {(target / "tree" / name).read_bytes() for name in names}
        assert names == {"0", "1", "2", "3"}
        assert contents <= {b"old", *((source / "tree" / name).read_bytes() for name in names)}
        assert b"old" in contents
        assert (await copy_all(given, other)).files == 4
    assert everything(target / "tree") == everything(source / "tree")


async def test_a_server_that_dies_is_told_and_what_was_there_stays(here: Path, there: Path) -> None:
    (there / "big").write_bytes(os.urandom(MUCH))
    (here / "big").write_bytes(b"old")
    stream = await started(there)

    def kill(now: TransferProgress) -> None:
        if now.size and stream.process.returncode is None:
            with suppress(ProcessLookupError):  # it has been killed
                os.kill(stream.process.pid, signal.SIGKILL)

    async with sftp_over(stream) as client:
        given = [CopySource(tree=RemoteTree(client, "big", "dev:big"), name="big")]
        with pytest.raises(FilesLostError, match="the server of files"):
            await copy_all(given, LocalTree(here / "big"), on_progress=kill)
    assert everything(here).keys() == {"big"}
    assert (here / "big").read_bytes() == b"old"
