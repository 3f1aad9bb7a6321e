"""A server of files that lies gets nothing written outside of the target, and no one waits for it for ever."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.client.files.content_hash import ContentHash
from muster.client.files.local_tree import LocalTree
from muster.client.files.packets import LARGEST_ANSWER, SftpKind, packed_number, packed_text
from muster.client.files.remote_tree import RemoteTree
from muster.client.files.sftp import sftp_over
from muster.client.files.transfer_error import FilesLostError, FileTransferError
from muster.client.files.transfers import CopySource, copy_all
from tests.contract.files_impostor import Answer, Impostor, handle, listed, status
from tests.contract.served_files import connected, everything

CONTENT = b"content"
END = 1
ROOT = (b"", b"d", 0, b"")

Told = tuple[bytes, bytes, int, bytes]


def serving(*answers: bytes, data: bytes = CONTENT, hashed: bytes = CONTENT) -> Answer:
    """A server that has these lists, gives this for every read, and says that every file holds that."""
    lists: Iterator[bytes] = iter(answers)
    content = ContentHash()
    content.update(hashed)
    reply = bytes([SftpKind.EXTENDED_REPLY])
    told = reply + packed_number(content.so_far.size, 8) + packed_number(content.so_far.value, 8)

    def answer(kind: int, body: bytes) -> bytes | None:
        if kind in {SftpKind.OPEN, SftpKind.OPENDIR} or (kind == SftpKind.EXTENDED and b"list@muster" in body):
            return handle()
        if kind == SftpKind.READDIR:
            return next(lists, status(END))
        if kind == SftpKind.READ:
            return bytes([SftpKind.DATA]) + packed_text(data)
        if kind == SftpKind.EXTENDED and b"hash@muster" in body:
            return told
        return status(0)

    return answer


async def copy(answer: Answer, target: Path) -> None:
    async with sftp_over(Impostor(answer)) as client:
        await copy_all([CopySource(tree=RemoteTree(client, "tree", "dev:tree"), name="")], LocalTree(target))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "outer" / "target").mkdir(parents=True)
    return tmp_path / "outer" / "target"


async def test_an_honest_server_is_believed(target: Path) -> None:
    entries: tuple[Told, ...] = (ROOT, (b"a", b"d", 0, b""), (b"a/b", b"f", 7, b""))
    await copy(serving(listed(*entries)), target)
    assert (target / "a" / "b").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "entries",
    [
        [(b"../evil", b"f", 7, b"")],
        [(b"..", b"d", 0, b""), (b"../evil", b"f", 7, b"")],
        [(b"/tmp/evil", b"f", 7, b"")],
        [(b"a/../../evil", b"f", 7, b"")],
        [(b"l", b"l", 0, b".."), (b"l/evil", b"f", 7, b"")],
        [(b"d", b"d", 0, b""), (b"d", b"l", 0, b".."), (b"d/evil", b"f", 7, b"")],
        [(b"d", b"l", 0, b".."), (b"d", b"d", 0, b""), (b"d/evil", b"f", 7, b"")],
        [(b"evil\0", b"f", 7, b"")],
        [(b"", b"f", 7, b"")],
        [(b"x", b"?", 0, b"")],
    ],
)
async def test_names_that_lead_elsewhere_write_nothing(target: Path, entries: list[Told]) -> None:
    with pytest.raises(FilesLostError):
        await copy(serving(listed(ROOT, *entries)), target)
    assert everything(target.parent).keys() == {"target"}


async def test_a_link_out_of_the_target_is_not_made(target: Path) -> None:
    links: tuple[Told, ...] = ((b"l", b"l", 0, b"../.."), (b"m", b"l", 0, b"/etc"), (b"k", b"l", 0, b"a/../../x"))
    await copy(serving(listed(ROOT, *links)), target)
    assert everything(target) == {}


async def test_content_that_is_not_what_the_server_says_is_dropped(target: Path) -> None:
    async with sftp_over(Impostor(serving(listed(ROOT, (b"a", b"f", 7, b"")), hashed=b"another"))) as client:
        given = [CopySource(tree=RemoteTree(client, "tree", "dev:tree"), name="")]
        done = await copy_all(given, LocalTree(target))
    assert [each.path for each in done.failed] == ["dev:tree/a"]
    assert everything(target) == {}


async def test_what_was_not_written_as_it_was_sent_is_told(target: Path) -> None:
    (target / "mine").write_bytes(b"mine")

    def answer(kind: int, body: bytes) -> bytes | None:
        if kind in {SftpKind.STAT, SftpKind.LSTAT} or (kind == SftpKind.EXTENDED and b"list@muster" in body):
            return status(2, "no such file")
        return serving(hashed=b"theirs")(kind, body)

    async with sftp_over(Impostor(answer)) as client:
        given = [CopySource(tree=LocalTree(target / "mine"), name="mine")]
        with pytest.raises(FileTransferError, match="holds something else than was sent"):
            await copy_all(given, RemoteTree(client, "x", "dev:x"))


@pytest.mark.parametrize(
    "read",
    [b"", CONTENT + b"more than was asked for"],
    ids=["nothing", "too much"],
)
async def test_data_that_cannot_be_is_refused(target: Path, read: bytes) -> None:
    with pytest.raises(FilesLostError):
        await copy(serving(listed(ROOT, (b"a", b"f", 7, b"")), data=read), target)
    assert everything(target) == {}


@pytest.mark.parametrize(
    "said",
    [
        packed_number(LARGEST_ANSWER + 1),
        packed_number(0),
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        packed_number(9) + bytes([SftpKind.STATUS]) + packed_number(4711) + packed_number(0),
        packed_number(5) + bytes([SftpKind.VERSION]) + packed_number(3),
    ],
    ids=["too large", "too small", "no SFTP", "not asked", "greets twice"],
)
async def test_what_is_no_answer_ends_it(target: Path, said: bytes) -> None:
    impostor = Impostor(lambda *_: impostor.say_raw(said))
    async with sftp_over(impostor) as client:
        given = [CopySource(tree=RemoteTree(client, "tree", "dev:tree"), name="")]
        with pytest.raises(FilesLostError, match="speaks no SFTP"):
            await copy_all(given, LocalTree(target))
        with pytest.raises(FilesLostError):
            await client.look(b"x", follow=True)


async def test_a_server_without_lists_and_hashes_is_asked_in_plain_sftp(target: Path) -> None:
    """The same files without the extensions: directories one by one, and contents read for their hashes."""
    there = target / "there"
    (there / "a" / "b").mkdir(parents=True)
    (there / "a" / "b" / "file").write_bytes(CONTENT)
    (there / "a" / "link").symlink_to("b")
    async with connected(there) as client:
        whole = await RemoteTree(client, "a", "dev:a").listing()
        client.extensions = frozenset()
        plain = RemoteTree(client, "a", "dev:a")
        found = await plain.listing()
        assert whole is not None
        assert found is not None
        assert {each.path: (each.kind, each.size, each.changed, each.target) for each in found.entries.values()} == {
            each.path: (each.kind, each.size, each.changed, each.target) for each in whole.entries.values()
        }
        assert await RemoteTree(client, "nothing", "x").listing() is None
        done = await copy_all([CopySource(tree=plain, name="a")], LocalTree(target / "back"))
        sent = await copy_all([CopySource(tree=LocalTree(target / "back"), name="a")], RemoteTree(client, "again", "x"))
    assert (done.files, sent.files) == (1, 1)
    assert everything(there / "a") == everything(target / "back") == everything(there / "again")
