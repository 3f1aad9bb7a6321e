"""Files of trees that are fetched: whole and checked, or not there; what is there already is not fetched."""

from collections.abc import AsyncIterator, Iterable
from hashlib import sha256
from pathlib import Path

import pytest

from muster.domain.data.swarm import ContentSpan
from muster.domain.data.tree import ContentEntry, ContentKind
from muster.transfer.depot_client import DepotClient
from muster.transfer.downloads import DownloadError, FilesFetched, fetch_files
from muster.transfer.objects import WrongContentError


class Depot(DepotClient):
    """A depot with these contents, which may end in the middle; what is asked of it is answered here."""

    def __init__(self, *contents: bytes) -> None:
        self.contents = {sha256(each).hexdigest(): each for each in contents}
        self.asked: list[ContentSpan] = []
        self.breaks_after: int | None = None

    async def get(self, spans: Iterable[ContentSpan]) -> AsyncIterator[bytes]:
        for span in spans:
            self.asked.append(span)
            data = self.contents[span.digest][span.offset : span.offset + span.length]
            if self.breaks_after is not None:
                yield data[: self.breaks_after]
                raise ConnectionError
            yield data


def entry(path: str, content: bytes, kind: ContentKind = ContentKind.FILE) -> ContentEntry:
    return ContentEntry(path=path, kind=kind, size=len(content), content=sha256(content).hexdigest())


async def fetched(depot: Depot, into: Path, *entries: ContentEntry) -> FilesFetched:
    return await fetch_files(depot, entries, into, lambda _: None)


def files(directory: Path) -> dict[str, bytes]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


async def test_files_are_in_their_places_with_their_rights(tmp_path: Path) -> None:
    depot = Depot(b"one", b"two", b"")
    wanted = [entry("a/one", b"one"), entry("same", b"one"), entry("run", b"two", ContentKind.PROGRAM), entry("e", b"")]
    came = await fetched(depot, tmp_path, *wanted)

    assert files(tmp_path) == {"a/one": b"one", "same": b"one", "run": b"two", "e": b""}
    assert (tmp_path / "run").stat().st_mode & 0o111
    assert not (tmp_path / "same").stat().st_mode & 0o111
    assert (came.files, came.bytes, came.fetched) == (4, 9, 4)


async def test_two_files_of_one_directory_that_hold_the_same_are_both_there(tmp_path: Path) -> None:
    await fetched(Depot(b"one"), tmp_path, entry("a", b"one"), entry("b", b"one"))

    assert files(tmp_path) == {"a": b"one", "b": b"one"}


async def test_what_is_there_already_is_not_fetched(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"one")
    (tmp_path / "two").write_bytes(b"old")
    depot = Depot(b"one", b"two")
    came = await fetched(depot, tmp_path, entry("one", b"one"), entry("two", b"two"))

    assert [each.digest for each in depot.asked] == [sha256(b"two").hexdigest()]
    assert (files(tmp_path), came.fetched) == ({"one": b"one", "two": b"two"}, 1)


async def test_a_break_is_gone_on_with_where_it_was(tmp_path: Path) -> None:
    depot = Depot(b"0123456789")
    depot.breaks_after = 4
    with pytest.raises(ConnectionError):
        await fetched(depot, tmp_path, entry("digits", b"0123456789"))
    assert "digits" not in files(tmp_path)
    depot.breaks_after = None
    await fetched(depot, tmp_path, entry("digits", b"0123456789"))

    assert files(tmp_path) == {"digits": b"0123456789"}
    assert (depot.asked[-1].offset, depot.asked[-1].length) == (4, 6)


async def test_what_holds_something_else_than_its_name_says_is_never_there(tmp_path: Path) -> None:
    depot = Depot(b"good")
    depot.contents[sha256(b"good").hexdigest()] = b"evil"
    with pytest.raises(WrongContentError):
        await fetched(depot, tmp_path, entry("file", b"good"))

    assert files(tmp_path) == {}


async def test_a_link_that_leads_out_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    (tmp_path / "into" / "out").symlink_to(tmp_path)
    with pytest.raises(DownloadError, match="leads out of"):
        await fetched(Depot(b"x"), tmp_path / "into", entry("out/file", b"x"))

    assert not (tmp_path / "file").exists()


async def test_a_link_in_the_place_of_a_file_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "file").symlink_to("precious")
    await fetched(Depot(b"x"), tmp_path, entry("file", b"x"))

    assert (tmp_path / "precious").read_text() == "precious"
    assert (tmp_path / "file").read_text() == "x"
    assert not (tmp_path / "file").is_symlink()


async def test_a_directory_in_the_place_of_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(DownloadError, match="is a directory"):
        await fetched(Depot(b"x"), tmp_path, entry("file", b"x"))
